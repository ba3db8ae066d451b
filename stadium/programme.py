"""The programme: slots in which match follows match for ever, or a recording that is played once.

Match n of a slot starts at `first_start + n * period`, so any match can be found and generated on its own, at any time
and in any process. A period is longer than the longest match of its kind.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from random import Random

from stadium import keys, told
from stadium.cricket import play as cricket_play
from stadium.cricket.script import CricketScript
from stadium.football import play as football_play
from stadium.football.script import FootballScript
from stadium.people import (
    COMPETITIONS,
    CRICKET_TEAMS,
    FOOTBALL_TEAMS,
    GROUNDS,
    Team,
    cricket_team,
    football_team,
)
from stadium.slots import PERIODS, REPLAY_TURNS, SITES, ReplayOptions, Slot, bill_of, slots_of
from stadium.told import RIGHT, Manner

__all__ = ["PERIODS", "SITES", "Match", "Programme", "Slot", "slots_of"]
LINGER_SECONDS = 3600.0  # how long a finished match stays in the lists; a recording that is played once stays for ever


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
    venue: str  # the same at every site, whatever they call the teams
    manner: Manner = RIGHT
    corrected: int = 0  # how many of the site's mistakes have been put right

    def at(self, site: str) -> Match:
        """The same match, as truly told, under the key that another of its sites has for it."""
        return self if site == self.site else replace(self, site=site)

    @cached_property
    def key(self) -> str:
        return keys.key_at(self.site, self.number)

    @property
    def edition(self) -> tuple[object, ...]:
        """Whatever is made of the match's script is good for this edition of it only."""
        return self.number, self.site, self.manner, self.corrected

    @property
    def delay_seconds(self) -> float:
        """On the wall: this site is so much behind."""
        return self.manner.delay_seconds

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
    def series(self) -> tuple[str, str]:
        if not isinstance(self.script, CricketScript):
            return "Brasileirão Série A", "BSA"
        if self.script.occasion:
            return self.script.occasion.series, self.script.occasion.series_short
        name, short = COMPETITIONS[self.slot.number % len(COMPETITIONS)]
        return f"{name} {self.format}", short

    @property
    def format(self) -> str:
        return self.script.format if isinstance(self.script, CricketScript) else "football"


class Programme:
    """`manners` says how each site tells matches that another one knows better; it may change while the sites run."""

    def __init__(self, text: str, seed: int, replay: ReplayOptions | None = None) -> None:
        self.text, self.seed = text, seed
        bill = bill_of(text, replay)
        self.slots, self.complaints = bill.slots, bill.complaints
        self.manners = dict(bill.manners)
        self._by_first_number = {slot.first_number: slot for slot in self.slots if slot.recording}
        self._first_starts: dict[int, float] = {}
        size = max(128, 3 * len(self.slots))
        tellings = max(128, 3 * sum(len(slot.sites) for slot in self.slots))
        self._match = lru_cache(maxsize=size)(self._generate)
        self._telling = lru_cache(maxsize=tellings)(self._tell)
        self._mistakes = lru_cache(maxsize=tellings)(self._mistaken)
        self._script = lru_cache(maxsize=len(self.slots))(self._compose)  # a first script is asked for twice
        for slot in self.slots:
            self._first_starts[slot.number] = slot.start(self._script(slot, 0))

    def match(self, slot: Slot, turn: int, site: str = "", corrected: int = 0) -> Match:
        """As `site` tells it, with so many mistakes put right; empty: as the site that knows best does."""
        if not site:
            return self._match(slot.number, turn)
        return self._telling(slot.number, turn, site, self.manner(slot, site), corrected)

    def manner(self, slot: Slot, site: str) -> Manner:
        manner = self.manners.get(site, RIGHT)
        return manner if site != slot.sites[0] else Manner(manner.delay_seconds)

    def mistakes(self, slot: Slot, turn: int, site: str) -> tuple[float, ...]:
        """When the events that the site tells wrongly happened, in simulated seconds."""
        return self._mistakes(slot.number, turn, site, self.manner(slot, site))

    def _mistaken(self, slot_number: int, turn: int, site: str, manner: Manner) -> tuple[float, ...]:
        match = self._match(slot_number, turn)
        places = told.mistaken(match.script, manner, self._telling_seed(match, site))
        return tuple(match.times[place] for place in places)

    def _tell(self, slot_number: int, turn: int, site: str, manner: Manner, corrected: int) -> Match:
        match = self._match(slot_number, turn)
        script = told.retold(match.script, site, manner, self._telling_seed(match, site), corrected)
        return replace(match, site=site, script=script, manner=manner, corrected=corrected)

    def _telling_seed(self, match: Match, site: str) -> str:
        return f"{self.seed}:{match.number}:{site}"

    def find(self, number: int | None, simulated: float) -> Match | None:
        """The match with this number, if it has been announced by now."""
        place = None if number is None else self._place(number)
        if place is None:
            return None
        slot, turn = place
        horizon = 38 if slot.sport == "football" else 1  # a league's rounds are known long before
        if not slot.is_once and self._start(slot, turn) - horizon * slot.period > simulated:
            return None
        return self.match(slot, turn)

    def _place(self, number: int) -> tuple[Slot, int] | None:
        if not self._by_first_number:
            turn, index = divmod(number, len(self.slots))
            return self.slots[index], turn
        turn = number % REPLAY_TURNS
        slot = self._by_first_number.get(number - turn)
        return None if slot is None or (slot.is_once and turn) else (slot, turn)

    def current_turn(self, slot: Slot, simulated: float) -> int:
        return max(int((simulated - self._first_starts[slot.number]) // slot.period), 0)

    def on_show(self, simulated: float) -> list[Match]:
        """What a list page shows: running, lately finished, and the next of every slot that has nothing running."""
        return [match for slot in self.slots for match in self._slot_on_show(slot, simulated)]

    def _slot_on_show(self, slot: Slot, simulated: float) -> list[Match]:
        if slot.is_once:
            return [self.match(slot, 0)]
        turn = self.current_turn(slot, simulated)
        earlier = [self.match(slot, turn - 1)] if turn else []
        current = self.match(slot, turn)
        coming = [self.match(slot, turn + 1)] if simulated >= current.ends_at else []
        return [m for m in [*earlier, current, *coming] if simulated < m.ends_at + LINGER_SECONDS]

    def _start(self, slot: Slot, turn: int) -> float:
        return self._first_starts[slot.number] + (turn * slot.period if turn else 0.0)

    def _generate(self, slot_number: int, turn: int) -> Match:
        slot = self.slots[slot_number]
        number = slot.first_number + turn % REPLAY_TURNS if slot.recording else turn * len(self.slots) + slot_number
        script = self._script(slot, turn)
        return Match(number, slot, turn, self._start(slot, turn), script, slot.sites[0], _venue(slot, script))

    def _compose(self, slot: Slot, turn: int) -> CricketScript | FootballScript:
        if slot.recording:
            return slot.recording.script
        random = Random(f"{self.seed}:{slot.number}:{turn}")
        if slot.sport == "football":
            sides = self._teams(random, slot, football_team, FOOTBALL_TEAMS)
            return football_play.Play(random, sides, may_vary=turn > 0).run()
        teams = self._teams(random, slot, cricket_team, CRICKET_TEAMS)
        return cricket_play.Play(random, slot.rules, teams, may_rain=turn > 0).run()

    def _teams(self, random: Random, slot: Slot, team: Callable[[int], Team], pool: int) -> tuple[Team, Team]:
        """Every slot has teams of its own, so no team ever plays two matches at once."""
        band = max(min(pool // len(self.slots), 8), 2)
        first, second = random.sample(range(band), 2)
        return team((slot.number * band + first) % pool), team((slot.number * band + second) % pool)

    def announcement(self) -> list[str]:
        """What is played from recordings, what was made up for it, and which files can't be played."""
        lines = [f"left out: {complaint}" for complaint in self.complaints]
        for slot in self.slots:
            match = self.match(slot, 0)
            if slot.recording and isinstance(match.script, CricketScript) and match.script.occasion:
                names = " v ".join(team.name for team in match.teams)
                where = ", ".join(f"{site} {keys.key_at(site, match.number)}" for site in slot.sites)
                lines.append(f"plays {slot.recording.name}: {names}, {match.format} ({where})")
                lines.append(f"  made up: {', '.join(match.script.occasion.invented)}")
        return lines


def _venue(slot: Slot, script: CricketScript | FootballScript) -> str:
    if isinstance(script, CricketScript) and script.occasion:
        return script.occasion.venue
    place = script.teams[0].name.split()
    if slot.sport == "football":
        return f"Estádio {place[-1]}"
    return f"{GROUNDS[slot.number % len(GROUNDS)]}, {place[0]}"
