"""The stadium's world at any moment: clock, programme, and folded states with what is worth keeping of them."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Generic, TypeVar

from stadium.clock import StadiumClock
from stadium.config import StadiumConfig
from stadium.cricket.script import CricketScript
from stadium.cricket.state import CricketState
from stadium.football.script import FootballScript
from stadium.football.state import FootballState
from stadium.keys import number_of_key
from stadium.programme import Match, Programme

State = CricketState | FootballState
T = TypeVar("T")


class Shelf(Generic[T]):
    """A small cache that forgets what was least lately used."""

    def __init__(self, size: int) -> None:
        self._size, self._items = size, OrderedDict[object, T]()

    def get(self, key: object, make: Callable[[], T]) -> T:
        if key in self._items:
            self._items.move_to_end(key)
            return self._items[key]
        self._items[key] = value = make()
        if len(self._items) > self._size:
            self._items.popitem(last=False)
        return value


class World:
    def __init__(self, config: StadiumConfig, wall_clock: Callable[[], float] = time.time) -> None:
        self.config = config
        self.clock = StadiumClock(config.pace, config.state_file, wall_clock)
        self.programme = Programme(config.programme, config.seed, config.replay)
        self._manners = {**self.programme.manners, **dict(config.told)}
        self.reset_manners()
        told = sum(1 + len(slot.sites) for slot in self.programme.slots)
        size = max(96, 2 * told)  # all that is on show, and some of the past
        self._states: Shelf[list[State]] = Shelf(size)
        self._ids: Shelf[list[int]] = Shelf(size)
        self.rendered: Shelf[bytes] = Shelf(4 * size)

    def on_show(self, site: str, simulated: float | None = None) -> list[Match]:
        moment = self.clock.now() if simulated is None else simulated
        matches = self.programme.on_show(moment)
        return [self.told(match, site) for match in matches if site in match.slot.sites]

    def find(self, site: str, key: str) -> Match | None:
        match = self.programme.find(number_of_key(site, key), self.clock.now())
        if match is None or site not in match.slot.sites:
            return None
        return self.told(match, site)

    def told(self, match: Match, site: str) -> Match:
        """The match as the site tells it by now: some of its mistakes may have been put right."""
        manner = self.programme.manner(match.slot, site)
        if not manner.mistakes or manner.corrects_after is None:
            return self.programme.match(match.slot, match.turn, site)
        settled = self.clock.simulated_at(self.clock.wall() - manner.delay_seconds - manner.corrects_after)
        corrected = bisect_right(self.programme.mistakes(match.slot, match.turn, site), settled)
        return self.programme.match(match.slot, match.turn, site, corrected)

    def reset_manners(self) -> None:
        """Every site tells its matches as it did at the start."""
        self.programme.manners = dict(self._manners)

    def truth(self, match: Match) -> Match:
        """The match as it is, whatever the site makes of it."""
        return self.programme.match(match.slot, match.turn).at(match.site)

    def another(self, match: Match) -> Match:
        """Any other match of the same site, for the fault that mixes matches up."""
        others = [other for other in self.on_show(match.site) if other.number != match.number]
        if others or match.slot.is_once:
            return others[0] if others else match
        return self.programme.match(match.slot, match.turn + 1, match.site)

    def index(self, match: Match) -> int:
        """How many events of its script a match's site shows by now."""
        return match.index_at(self.clock.simulated_at(self.clock.wall() - match.delay_seconds))

    def state(self, match: Match, index: int) -> State:
        """The fold of the first `index` events. The last state of a match is kept and moved on; going back folds anew.

        Callers only read it, and only until they ask for the next one.
        """
        held = self._states.get(match.edition, lambda: [_blank(match)])
        if held[0].applied > index:
            held[0] = _blank(match)
        state = held[0]
        for event in match.script.events[state.applied : index]:
            state.apply(event)  # type: ignore[arg-type]  # a script holds events of its own sport only
        return state

    def cricket(self, match: Match, index: int) -> CricketState:
        state = self.state(match, index)
        assert isinstance(state, CricketState)
        return state

    def football(self, match: Match, index: int) -> FootballState:
        state = self.state(match, index)
        assert isinstance(state, FootballState)
        return state

    def ids(self, match: Match, count: int) -> list[int]:
        """Ids of the first `count` events, all of which must have happened: wall milliseconds, strictly increasing."""
        ids = self._ids.get((match.number, match.site), list)
        for moment in match.times[len(ids) : count]:
            milliseconds = int(self.clock.wall_at(moment) * 1000)
            ids.append(max(milliseconds, ids[-1] + 1) if ids else milliseconds)
        return ids[:count]

    def start_wall(self, match: Match) -> float:
        return self.clock.wall_at(match.starts_at)


def _blank(match: Match) -> State:
    if isinstance(match.script, CricketScript):
        return CricketState(match.script)
    assert isinstance(match.script, FootballScript)
    return FootballState(match.script)


def iso(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
