"""The programme: slots with an endless sequence of generated matches, or with a recording that is played once.

Match n of a slot starts at `first_start + n * period`, so any process can generate any match at any time. A period is
longer than the longest match of its kind.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import count
from random import Random

from stadium.cricket.generator import MatchGenerator as CricketGenerator
from stadium.cricket.script import CricketScript
from stadium.football.generator import MatchGenerator as FootballGenerator
from stadium.football.script import FootballScript
from stadium.matches.distortion import UNDISTORTED, Distortion, distort, mistake_places
from stadium.matches.ids import key_at
from stadium.matches.programme_parser import ReplayOptions, Slot, parse_programme
from stadium.matches.teams import (
    COMPETITIONS,
    CRICKET_TEAMS,
    FOOTBALL_TEAMS,
    GROUNDS,
    Team,
    cricket_team,
    football_team,
)
from stadium.shapes import DAY_SECONDS, checked, renamed, shaped

LINGER_SECONDS = 3600.0  # a finished match stays in the lists so long; a recording that is played once stays always


@dataclass(frozen=True)
class Match:
    """One complete match of the programme, in the version of one site.

    Times in the script are simulated seconds after `starts_at`.
    """

    number: int  # unique in the programme, the same at every site
    slot: Slot
    turn: int
    starts_at: float
    script: CricketScript | FootballScript
    site: str
    venue: str  # the same at every site
    distortion: Distortion = UNDISTORTED
    corrected: int = 0  # number of the site's mistakes that have been corrected

    def at(self, site: str) -> Match:
        """Returns the same match under the key of another of its sites."""
        return self if site == self.site else replace(self, site=site)

    @cached_property
    def key(self) -> str:
        return key_at(self.site, self.number)

    @property
    def version(self) -> tuple[object, ...]:
        """Identifies the script; a cache key for everything rendered from it."""
        return self.number, self.site, self.distortion, self.corrected

    @property
    def delay_seconds(self) -> float:
        return self.distortion.delay_seconds

    @property
    def teams(self) -> tuple[Team, Team]:
        return self.script.teams

    @property
    def ends_at(self) -> float:
        return self.starts_at + self.script.ends_at

    @cached_property
    def times(self) -> tuple[float, ...]:
        return tuple(self.starts_at + event.at for event in self.script.events)

    def event_count_at(self, simulated: float) -> int:
        """Returns how many events of the script have happened."""
        return bisect_right(self.times, simulated)

    @property
    def series(self) -> tuple[str, str]:
        if not isinstance(self.script, CricketScript):
            return "Brasileirão Série A", "BSA"
        if self.script.fixture:
            return self.script.fixture.series, self.script.fixture.series_short
        name, short = COMPETITIONS[self.slot.number % len(COMPETITIONS)]
        return f"{name} {self.format}", short

    @property
    def format(self) -> str:
        return self.script.format if isinstance(self.script, CricketScript) else "football"


class Programme:
    """`distortions`, by site, may change while the sites run."""

    def __init__(self, text: str, seed: int, replay: ReplayOptions | None = None) -> None:
        self.text, self.seed = text, seed
        parsed = parse_programme(text, replay)
        self.slots, self.rejected = parsed.slots, parsed.rejected
        self.distortions = dict(parsed.distortions)
        self.shapes: dict[str, tuple[str, ...]] = {}  # by site
        self._recorded = {slot.match_number: slot for slot in self.slots if slot.recording}
        self._first_starts: dict[int, float] = {}
        size = max(128, 3 * len(self.slots))
        versions = max(128, 3 * sum(len(slot.sites) for slot in self.slots))
        self._match = lru_cache(maxsize=size)(self._generate)
        self._version = lru_cache(maxsize=versions)(self._distort)
        self._mistake_times = lru_cache(maxsize=versions)(self._find_mistake_times)
        self._script = lru_cache(maxsize=len(self.slots))(self._generate_script)  # a first script is used twice
        for slot in self.slots:
            self._first_starts[slot.number] = slot.start(self._script(slot, 0))

    def set_shapes(self, shapes: Mapping[str, tuple[str, ...]]) -> None:
        """Changes the shapes of all sites; raises a ValueError for one that a site cannot have."""
        self.shapes = {site: checked(site, names) for site, names in shapes.items() if names}
        for cache in (self._match, self._version, self._mistake_times):
            cache.cache_clear()

    def match(self, slot: Slot, turn: int, site: str = "", corrected: int = 0) -> Match:
        """Returns the version of `site` with `corrected` mistakes corrected; without a site the undistorted one."""
        if not site:
            return self._match(slot.number, turn)
        return self._version(slot.number, turn, site, self.distortion(slot, site), corrected)

    def distortion(self, slot: Slot, site: str) -> Distortion:
        distortion = self.distortions.get(site, UNDISTORTED)
        return distortion if site != slot.sites[0] else Distortion(delay_seconds=distortion.delay_seconds)

    def mistake_times(self, slot: Slot, turn: int, site: str) -> tuple[float, ...]:
        """Returns the simulated times of the events that the site shows wrongly."""
        return self._mistake_times(slot.number, turn, site, self.distortion(slot, site))

    def _find_mistake_times(self, slot_number: int, turn: int, site: str, distortion: Distortion) -> tuple[float, ...]:
        match = self._match(slot_number, turn)
        places = mistake_places(match.script, distortion, self._version_seed(match, site))
        return tuple(match.times[place] for place in places)

    def _distort(self, slot_number: int, turn: int, site: str, distortion: Distortion, corrected: int) -> Match:
        match = self._match(slot_number, turn)
        script = distort(match.script, site, distortion, self._version_seed(match, site), corrected)
        return replace(match, site=site, script=script, distortion=distortion, corrected=corrected)

    def _version_seed(self, match: Match, site: str) -> str:
        return f"{self.seed}:{match.number}:{site}"

    def find(self, number: int | None, simulated: float) -> Match | None:
        """Returns the match with this number if it has been announced."""
        place = None if number is None else self._place(number)
        if place is None:
            return None
        slot, turn = place
        horizon = 38 if slot.sport == "football" else 1  # a league announces its rounds long before
        if not slot.recording and self._start(slot, turn) - horizon * slot.period > simulated:
            return None
        return self.match(slot, turn)

    def _place(self, number: int) -> tuple[Slot, int] | None:
        if self._recorded:
            return (self._recorded[number], 0) if number in self._recorded else None
        turn, index = divmod(number, len(self.slots))
        return self.slots[index], turn

    def current_turn(self, slot: Slot, simulated: float) -> int:
        return max(int((simulated - self._first_starts[slot.number]) // self._period(slot)), 0)

    def listed_matches(self, simulated: float) -> list[Match]:
        """Returns running and recently finished matches, and the next one of each slot without a running match."""
        return [match for slot in self.slots for match in self._listed_of_slot(slot, simulated)]

    def _listed_of_slot(self, slot: Slot, simulated: float) -> list[Match]:
        if slot.recording:
            return [self.match(slot, 0)]
        turn = self.current_turn(slot, simulated)
        earlier = [self.match(slot, turn - 1)] if turn else []
        current = self.match(slot, turn)
        coming = [self.match(slot, turn + 1)] if simulated >= current.ends_at else []
        return [m for m in [*earlier, current, *coming] if simulated < m.ends_at + LINGER_SECONDS]

    def _start(self, slot: Slot, turn: int) -> float:
        return self._first_starts[slot.number] + (turn * self._period(slot) if turn else 0.0)

    def _period(self, slot: Slot) -> float:
        return slot.period + (DAY_SECONDS if "suspended" in self._shapes_of(slot) else 0.0)

    def _shapes_of(self, slot: Slot) -> tuple[str, ...]:
        return self.shapes.get(slot.sites[0], ())

    def _generate(self, slot_number: int, turn: int) -> Match:
        slot = self.slots[slot_number]
        number = slot.match_number if slot.recording else turn * len(self.slots) + slot_number
        names = self._shapes_of(slot)
        script = shaped(self._generate_script(slot, turn, names), names) if names else self._script(slot, turn)
        return Match(number, slot, turn, self._start(slot, turn), script, slot.sites[0], _venue(slot, script))

    def _generate_script(self, slot: Slot, turn: int, names: tuple[str, ...] = ()) -> CricketScript | FootballScript:
        if slot.recording:
            return slot.recording.script
        seed = f"{self.seed}:{slot.number}:{turn}"
        random = Random(seed)
        teams = self._teams(random, slot.number, slot.sport)
        if "doubleheader" in names:
            teams = self._teams(Random(f"{self.seed}:{slot.number}:{turn // 2}"), slot.number, slot.sport)
        elif {"women", "under_19"} & set(names) and slot.number % 2:
            first, second = self._teams(Random(f"{self.seed}:{slot.number - 1}:{turn}"), slot.number - 1, slot.sport)
            teams = renamed(first, names), renamed(second, names)
        if slot.sport == "football":
            if "shootout" in names:
                others = (Random(f"{seed}:{number}") for number in count())
                scripts = (FootballGenerator(one, teams, variant="knockout").run() for one in others)
                return next(script for script in scripts if script.has_shootout)
            return FootballGenerator(random, teams, may_vary=turn > 0 and not names).run()
        rules = replace(slot.rules, balls_per_over=5) if "hundred" in names else slot.rules
        return CricketGenerator(random, rules, teams, may_rain=turn > 0 and not names).run()

    def _teams(self, random: Random, number: int, sport: str) -> tuple[Team, Team]:
        """Each slot has its own teams, so no team plays two matches at once."""
        team, pool = (football_team, FOOTBALL_TEAMS) if sport == "football" else (cricket_team, CRICKET_TEAMS)
        band = max(min(pool // len(self.slots), 8), 2)
        first, second = random.sample(range(band), 2)
        return team((number * band + first) % pool), team((number * band + second) % pool)

    def replay_summary(self) -> list[str]:
        """Lists the recordings that are played, their invented parts, and the files that can't be played."""
        lines = [f"left out: {error}" for error in self.rejected]
        for slot in self.slots:
            match = self.match(slot, 0)
            if slot.recording and isinstance(match.script, CricketScript) and match.script.fixture:
                names = " v ".join(team.name for team in match.teams)
                where = ", ".join(f"{site} {key_at(site, match.number)}" for site in slot.sites)
                lines.append(f"plays {slot.recording.name}: {names}, {match.format} ({where})")
                lines.append(f"  made up: {', '.join(match.script.fixture.invented)}")
        return lines


def _venue(slot: Slot, script: CricketScript | FootballScript) -> str:
    if isinstance(script, CricketScript) and script.fixture:
        return script.fixture.venue
    place = script.teams[0].name.split()
    if slot.sport == "football":
        return f"Estádio {place[-1]}"
    return f"{GROUNDS[slot.number % len(GROUNDS)]}, {place[0]}"
