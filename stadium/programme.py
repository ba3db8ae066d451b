"""The programme: slots in which match follows match for ever.

Match n of a slot starts at `first_start + n * period`, so any match can be found and generated on its own, at any time
and in any process. A period is longer than the longest match of its kind.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from random import Random
from typing import Literal

from stadium import keys, told
from stadium.cricket import play as cricket_play
from stadium.cricket.play import FIFTY, T10, T20, Rules
from stadium.cricket.script import CricketScript, NoticeKind
from stadium.football import play as football_play
from stadium.football.script import FootballScript, Period
from stadium.people import (
    COMPETITIONS,
    CRICKET_TEAMS,
    FOOTBALL_TEAMS,
    GROUNDS,
    Team,
    cricket_team,
    football_team,
)

LINGER_SECONDS = 3600.0  # how long a finished match stays in the lists
SITES: dict[str, str] = {"cricket": "crex", "football": "sofascore"}
PERIODS = {20: 12_000.0, 10: 7_200.0, 50: 25_200.0}
FOOTBALL_PERIOD = 9_000.0

Start = Callable[[CricketScript | FootballScript], float]  # when a slot's first match starts, given its script


@dataclass(frozen=True)
class Slot:
    number: int
    sport: Literal["cricket", "football"]
    start: Start
    rules: Rules = T20
    homes: tuple[str, ...] = ()  # the sites that show it, the one that knows best first; empty: the one of its sport

    @property
    def sites(self) -> tuple[str, ...]:
        return self.homes or (SITES[self.sport],)

    @property
    def period(self) -> float:
        return FOOTBALL_PERIOD if self.sport == "football" else PERIODS[self.rules.overs]


@dataclass(frozen=True)
class Match:
    """One match of the programme, whole, as one site tells it. Times in the script count from `starts_at`, in
    simulated seconds.
    """

    number: int  # unique over the programme and all time, the same at every site
    slot: Slot
    turn: int
    starts_at: float
    script: CricketScript | FootballScript
    site: str
    delay_seconds: float = 0.0  # on the wall: this site is so much behind

    def at(self, site: str) -> Match:
        """The same match as another of its sites tells it."""
        return self if site == self.site else replace(self, site=site, **told.at(self, site))

    @cached_property
    def key(self) -> str:
        return keys.key_at(self.site, self.number)

    @property
    def teams(self) -> tuple[Team, Team]:
        return self.script.teams

    @property
    def ends_at(self) -> float:
        return self.starts_at + self.script.ends_at

    @cached_property
    def times(self) -> tuple[float, ...]:
        return tuple(self.starts_at + event.at for event in self.script.events)

    def index_at(self, simulated: float) -> int:
        """How many events of the script have happened."""
        return bisect_right(self.times, simulated)

    @property
    def venue(self) -> str:
        place = self.teams[0].name.split()
        if self.slot.sport == "football":
            return f"Estádio {place[-1]}"
        return f"{GROUNDS[self.slot.number % len(GROUNDS)]}, {place[0]}"

    @property
    def series(self) -> tuple[str, str]:
        if not isinstance(self.script, CricketScript):
            return "Brasileirão Série A", "BSA"
        name, short = COMPETITIONS[self.slot.number % len(COMPETITIONS)]
        return f"{name} {self.format}", short

    @property
    def format(self) -> str:
        overs = self.script.overs if isinstance(self.script, CricketScript) else 0
        return "ODI" if overs == 50 else f"T{overs}"


class Programme:
    def __init__(self, text: str, seed: int) -> None:
        self.text, self.seed = text, seed
        self.slots = slots_of(text)
        self._first_starts: dict[int, float] = {}
        self._match = lru_cache(maxsize=max(128, 3 * len(self.slots)))(self._generate)
        self._elsewhere = lru_cache(maxsize=max(128, 3 * len(self.slots)))(self._tell)
        self._script = lru_cache(maxsize=len(self.slots))(self._compose)  # a first script is asked for twice
        for slot in self.slots:
            self._first_starts[slot.number] = slot.start(self._script(slot, 0))

    def match(self, slot: Slot, turn: int, site: str = "") -> Match:
        """As `site` tells it; empty: as the site that knows best does."""
        return self._elsewhere(slot.number, turn, site) if site else self._match(slot.number, turn)

    def _tell(self, slot_number: int, turn: int, site: str) -> Match:
        return self._match(slot_number, turn).at(site)

    def find(self, number: int | None, simulated: float) -> Match | None:
        """The match with this number, if it has been announced by now."""
        if number is None:
            return None
        turn, index = divmod(number, len(self.slots))
        slot = self.slots[index]
        horizon = 38 if slot.sport == "football" else 1  # a league's rounds are known long before
        if self._start(slot, turn) - horizon * slot.period > simulated:
            return None
        return self.match(slot, turn)

    def current_turn(self, slot: Slot, simulated: float) -> int:
        return max(int((simulated - self._first_starts[slot.number]) // slot.period), 0)

    def on_show(self, simulated: float) -> list[Match]:
        """What a list page shows: running, lately finished, and the next of every slot that has nothing running."""
        return [match for slot in self.slots for match in self._slot_on_show(slot, simulated)]

    def _slot_on_show(self, slot: Slot, simulated: float) -> list[Match]:
        turn = self.current_turn(slot, simulated)
        earlier = [self.match(slot, turn - 1)] if turn else []
        current = self.match(slot, turn)
        coming = [self.match(slot, turn + 1)] if simulated >= current.ends_at else []
        return [m for m in [*earlier, current, *coming] if simulated < m.ends_at + LINGER_SECONDS]

    def _start(self, slot: Slot, turn: int) -> float:
        return self._first_starts[slot.number] + turn * slot.period

    def _generate(self, slot_number: int, turn: int) -> Match:
        slot = self.slots[slot_number]
        number = turn * len(self.slots) + slot_number
        return Match(number, slot, turn, self._start(slot, turn), self._script(slot, turn), slot.sites[0])

    def _compose(self, slot: Slot, turn: int) -> CricketScript | FootballScript:
        random = Random(f"{self.seed}:{slot.number}:{turn}")
        if slot.sport == "football":
            return football_play.Play(random, self._teams(random, slot, football_team, FOOTBALL_TEAMS)).run()
        teams = self._teams(random, slot, cricket_team, CRICKET_TEAMS)
        return cricket_play.Play(random, slot.rules, teams, may_rain=turn > 0).run()

    def _teams(self, random: Random, slot: Slot, team: Callable[[int], Team], pool: int) -> tuple[Team, Team]:
        """Every slot has teams of its own, so no team ever plays two matches at once."""
        band = max(min(pool // len(self.slots), 8), 2)
        first, second = random.sample(range(band), 2)
        return team((slot.number * band + first) % pool), team((slot.number * band + second) % pool)


def slots_of(text: str) -> tuple[Slot, ...]:
    """The slots of `demo`, `single`, `load:N`, `mixed:C:F`, `members:N` or `board:N`."""
    name, *numbers = text.split(":")
    try:
        counts = [int(number) for number in numbers]
        if name == "demo" and not counts:
            return _demo()
        if name == "single" and not counts:
            return (Slot(0, "cricket", lambda script: -300.0),)
        if name == "load" and len(counts) == 1 and 0 < counts[0] <= CRICKET_TEAMS // 2:
            return tuple(Slot(i, "cricket", _staggered(i), FIFTY) for i in range(counts[0]))
        if name == "mixed" and len(counts) == 2 and sum(counts) > 0 and min(counts) >= 0 and counts[1] <= 50:
            return _mixed(*counts)
        if name == "members" and len(counts) == 1 and 0 < counts[0] <= CRICKET_TEAMS // 2:
            return tuple(Slot(i, "cricket", _staggered(i), homes=("crexpro",)) for i in range(counts[0]))
        if name == "board" and len(counts) == 1 and 0 < counts[0] <= CRICKET_TEAMS // 2:
            return tuple(Slot(i, "cricket", _staggered(i), FIFTY, homes=("board",)) for i in range(counts[0]))
    except ValueError:
        pass
    known = "demo, single, load:N (N up to 400), mixed:C:F (F up to 50), members:N or board:N (N up to 400)"
    raise ValueError(f"programme must be {known}, not {text!r}")


def _staggered(index: int) -> Start:
    return lambda script: -(300.0 + 37.0 * index % 2400)


def _mixed(cricket: int, football: int) -> tuple[Slot, ...]:
    first = tuple(Slot(i, "cricket", _staggered(i)) for i in range(cricket))
    return first + tuple(Slot(i, "football", _staggered(i)) for i in range(cricket, cricket + football))


def _demo() -> tuple[Slot, ...]:
    """At pace 10 a minute on the wall is 600 simulated seconds."""
    return (
        Slot(0, "cricket", lambda script: -900.0),  # early in the first innings
        Slot(1, "cricket", lambda script: -min(_break(script) + 3_400.0, script.ends_at - 1_200.0)),  # in a chase
        Slot(2, "cricket", lambda script: -_break(script) + 250.0),  # about to enter the innings break
        Slot(3, "cricket", lambda script: -script.ends_at + 900.0),  # about to finish
        Slot(4, "cricket", lambda script: 1_500.0),  # starts in two and a half minutes
        Slot(5, "cricket", lambda script: -2_000.0, T10),  # a short one
        Slot(6, "cricket", lambda script: -3_300.0),  # late in the first innings
        Slot(7, "football", lambda script: -1_300.0),  # in the first half
        Slot(8, "football", lambda script: -_halftime(script) - 500.0),  # at halftime
    )


def _break(script: CricketScript | FootballScript) -> float:
    assert isinstance(script, CricketScript)
    return script.time_of(NoticeKind.INNINGS_BREAK)


def _halftime(script: CricketScript | FootballScript) -> float:
    assert isinstance(script, FootballScript)
    return script.time_of(Period.HALFTIME)
