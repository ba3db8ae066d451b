"""The running simulation: clock, programme, and the cached state of each match as each site shows it."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, TypeVar

from cachetools import LRUCache

from stadium.config import StadiumConfig
from stadium.cricket.script import CricketScript
from stadium.cricket.state import CricketState
from stadium.football.script import FootballScript
from stadium.football.state import FootballState
from stadium.matches.clock import StadiumClock
from stadium.matches.event_log import EventLog, Render
from stadium.matches.ids import number_of_key
from stadium.matches.programme import Match, Programme

State = CricketState | FootballState
T = TypeVar("T")


class Cache(LRUCache[object, T]):
    def get_or_make(self, key: object, make: Callable[[], T]) -> T:
        if key not in self:
            self[key] = make()
        return self[key]


class Simulation:
    def __init__(self, config: StadiumConfig, wall_clock: Callable[[], float] = time.time) -> None:
        self.config = config
        self.clock = StadiumClock(config.pace, config.state_file, wall_clock)
        self.programme = Programme(config.programme, config.seed, config.replay)
        self._initial_distortions = {**self.programme.distortions, **dict(config.distortions)}
        self.reset_distortions()
        versions = sum(1 + len(slot.sites) for slot in self.programme.slots)
        size = max(96, 2 * versions)  # all listed matches, and some of the past
        self._states: Cache[list[State]] = Cache(size)
        self._ids: Cache[list[int]] = Cache(size)
        self._logs: Cache[EventLog[Any]] = Cache(size)
        self.rendered: Cache[bytes] = Cache(4 * size)
        self.set_shapes(dict(config.shapes))

    def listed_matches(self, site: str, simulated: float | None = None) -> list[Match]:
        moment = self.clock.now() if simulated is None else simulated
        matches = self.programme.listed_matches(moment)
        return [self.site_version(match, site) for match in matches if site in match.slot.sites]

    def find(self, site: str, key: str) -> Match | None:
        match = self.programme.find(number_of_key(site, key), self.clock.now())
        if match is None or site not in match.slot.sites:
            return None
        return self.site_version(match, site)

    def site_version(self, match: Match, site: str) -> Match:
        """Returns the match as the site shows it now, with the mistakes corrected that are due."""
        distortion = self.programme.distortion(match.slot, site)
        if not distortion.mistakes or distortion.corrects_after is None:
            return self.programme.match(match.slot, match.turn, site)
        corrected_until = self.clock.simulated_at(
            self.clock.wall() - distortion.delay_seconds - distortion.corrects_after
        )
        corrected = bisect_right(self.programme.mistake_times(match.slot, match.turn, site), corrected_until)
        return self.programme.match(match.slot, match.turn, site, corrected)

    def reset_distortions(self) -> None:
        self.programme.distortions = dict(self._initial_distortions)

    def set_shapes(self, shapes: Mapping[str, tuple[str, ...]]) -> None:
        """Changes the shapes of all sites, and forgets what was computed from others."""
        self.programme.set_shapes(shapes)
        for cache in (self._states, self._ids, self._logs, self.rendered):
            cache.clear()

    def undistorted(self, match: Match) -> Match:
        """Returns the match under the key of its site, but without the site's distortion."""
        return self.programme.match(match.slot, match.turn).at(match.site)

    def other_match(self, match: Match) -> Match:
        """Returns any other match of the same site, for the fault `wrong_match`."""
        others = [other for other in self.listed_matches(match.site) if other.number != match.number]
        if others or match.slot.recording:
            return others[0] if others else match
        return self.programme.match(match.slot, match.turn + 1, match.site)

    def event_count(self, match: Match) -> int:
        """Returns how many events of the script the match's site shows now."""
        return match.event_count_at(self.clock.simulated_at(self.clock.wall() - match.delay_seconds))

    def state(self, match: Match, count: int) -> State:
        """Returns the state after the first `count` events.

        The last state of a match is cached and advanced; an earlier count is computed from the start. Callers only
        read the state, and only until the next call.
        """
        cached = self._states.get_or_make(match.version, lambda: [_initial_state(match)])
        if cached[0].applied > count:
            cached[0] = _initial_state(match)
        state = cached[0]
        for event in match.script.events[state.applied : count]:
            state.apply(event)  # type: ignore[arg-type]  # a script holds events of its own sport only
        return state

    def cricket(self, match: Match, count: int | None = None) -> CricketState:
        state = self.state(match, self.event_count(match) if count is None else count)
        assert isinstance(state, CricketState)
        return state

    def football(self, match: Match) -> FootballState:
        state = self.state(match, self.event_count(match))
        assert isinstance(state, FootballState)
        return state

    def ids(self, match: Match, count: int) -> list[int]:
        """Returns the ids of the first `count` events, all of which must have happened.

        An id is the event's wall time in milliseconds, made strictly increasing.
        """
        ids = self._ids.get_or_make((match.number, match.site), list)
        for moment in match.times[len(ids) : count]:
            milliseconds = int(self.clock.wall_at(moment) * 1000)
            ids.append(max(milliseconds, ids[-1] + 1) if ids else milliseconds)
        return ids[:count]

    def log(self, match: Match, render: Render[T]) -> EventLog[T]:
        """Returns the events that the match's site shows now. `render` must be the same function in every call."""
        key, ids = (match.version, render), self.ids(match, self.event_count(match))
        log = self._logs.get_or_make(key, lambda: EventLog(match, render))
        if log.state.applied > len(ids):  # the clock was set back
            log = self._logs[key] = EventLog(match, render)
        log.advance(ids)
        return log

    def start_wall(self, match: Match) -> float:
        return self.clock.wall_at(match.starts_at)

    def start_day(self, match: Match) -> date:
        return datetime.fromtimestamp(self.start_wall(match), UTC).date()


def _initial_state(match: Match) -> State:
    if isinstance(match.script, CricketScript):
        return CricketState(match.script)
    assert isinstance(match.script, FootballScript)
    return FootballState(match.script)


def iso(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
