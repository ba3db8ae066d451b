"""Generates days of fixtures as two sites list them: the same matches under other names, and traps. Seeded.

A day is one sport. Each team plays once a day in it, so a pair of fixtures is one match only if it was made as one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.pairing import world
from scraping.names import plain
from scraping.payloads import DiscoveredMatch, Sport, Status, Team

START = datetime(2026, 3, 2, tzinfo=UTC)
PAIRS_A_DAY = 24
Names = tuple[str, ...]  # of one team
Shown = tuple[str, str]  # name and short name, as one site shows them

# How often each kind is made, in a hundred. Postponed ones are for a person by design.
SAME = {
    "plain": 10, "accents": 14, "transliteration": 13, "sponsors": 8, "city and country": 17, "abbreviations": 14,
    "codes": 5, "women": 6, "under 19": 4, "second team": 3, "swapped": 3, "doubleheader": 2, "postponed": 1,
}  # fmt: skip
TRAPS = {
    "similar name": 40, "women": 10, "women by the series": 6, "under 19": 8, "second team": 10, "next match": 10,
    "other opponent": 16,
}  # fmt: skip
USUAL = 0.5  # so often a site uses the usual name
CRICKET_SHARE = 0.3


@dataclass(frozen=True)
class Pair:
    kind: str
    ours: DiscoveredMatch
    theirs: DiscoveredMatch
    is_same: bool


@dataclass(frozen=True)
class _Match:
    teams: tuple[Names, Names]
    start: datetime
    series: str
    sport: Sport


def _block(text: str) -> tuple[Names, ...]:
    return tuple(tuple(name.strip() for name in line.split(";")) for line in text.strip().splitlines())


def _codes() -> tuple[Names, ...]:
    entries = (entry.strip().rpartition(" ") for entry in world.CODES.replace("\n", " ").split(","))
    return tuple((name, code) for name, _, code in entries)


FOOTBALL = {
    "accents": _block(world.ACCENTED),
    "transliteration": _block(world.TRANSLITERATED),
    "sponsors": _block(world.SPONSORED),
    "city and country": _block(world.CITIES) + _block(world.NATIONS),
    "abbreviations": _block(world.ABBREVIATED),
    "codes": _codes(),
}
CRICKET = {"abbreviations": _block(world.CRICKET), "codes": _codes(), "city and country": _block(world.NATIONS)}
RIVALS = {
    Sport.FOOTBALL: _block(world.RIVAL_NATIONS) + _block(world.RIVAL_CLUBS),
    Sport.CRICKET: _block(world.RIVAL_NATIONS) + _block(world.RIVALS_IN_CRICKET),
}
SERIES = ("Premier League", "Cup, Round 3", "League Phase - Matchday 5", "Super League 2026", "")


def days(pairs: int, seed: int) -> Iterator[tuple[Pair, ...]]:
    """Yields days until there are as many pairs."""
    made, number = 0, 0
    while made < pairs:
        found = _Day(random.Random(f"{seed}:{number}"), number).pairs()
        made, number = made + len(found), number + 1
        yield found


class _Day:
    def __init__(self, chance: random.Random, number: int) -> None:
        self.chance = chance
        self.date = START + timedelta(days=7 * number)
        self.sport = Sport.CRICKET if chance.random() < CRICKET_SHARE else Sport.FOOTBALL
        self.blocks = CRICKET if self.sport is Sport.CRICKET else FOOTBALL
        self._played: set[str] = set()
        self._ids = 0

    def pairs(self) -> tuple[Pair, ...]:
        found: list[Pair] = []
        while len(found) < PAIRS_A_DAY:
            found += self._trap() if self.chance.random() < 0.33 else self._same()
        return tuple(found)

    def _same(self) -> list[Pair]:
        kind = self._of(SAME)
        block = kind if kind in self.blocks else self.chance.choice(list(self.blocks))
        match = self._match(block, 2)
        if match is None:
            return []
        special: dict[str, Callable[[str, _Match], list[Pair]]] = {
            "women": self._women, "under 19": self._young, "second team": self._second, "swapped": self._swapped,
            "doubleheader": self._doubleheader, "postponed": self._postponed, "plain": self._plain,
        }  # fmt: skip
        return special.get(kind, self._other_names)(kind if kind in special else block, match)

    def _trap(self) -> list[Pair]:
        kind = self._of(TRAPS)
        match = self._match(self.chance.choice(list(self.blocks)), 3)
        if match is None:
            return []
        one, opponent = match.teams
        ours, theirs = self._listed(match), self._listed(match)
        if kind == "similar name":
            one, other = ((name,) for name in self.chance.sample(self.chance.choice(RIVALS[self.sport]), 2))
            if self._are_taken((one, other)):
                return []
            ours, theirs = (self._listed(match, teams=(name, opponent)) for name in (one, other))
        elif kind == "women":
            theirs = self._listed(match, mark=self._mark(world.WOMEN_WORDS))
        elif kind == "women by the series":
            theirs = self._listed(match, series=f"Women's {match.series or 'League'}")
            ours = self._listed(match, series=match.series or "League")
        elif kind == "under 19":
            theirs = self._listed(match, mark=self._mark(world.YOUTH_WORDS))
        elif kind == "second team":
            theirs = self._listed(match, mark=self._mark(world.SECOND_WORDS))
        elif kind == "next match":
            hours = self.chance.choice((4, 5, 24, 48, 72))
            theirs = self._listed(match, start=match.start + timedelta(hours=hours))
        else:
            third = self._team(self.chance.choice(list(self.blocks.values())))
            if third is None:
                return []
            theirs = self._listed(match, teams=(one, third))
        return [Pair(f"trap: {kind}", ours, theirs, is_same=False)]

    def _plain(self, kind: str, match: _Match) -> list[Pair]:
        teams = tuple((team[0],) for team in match.teams)
        return [
            self._pair(kind, match, teams=teams),
        ]

    def _other_names(self, kind: str, match: _Match) -> list[Pair]:
        return [self._pair(kind, match)]

    def _swapped(self, kind: str, match: _Match) -> list[Pair]:
        ours, theirs = self._listed(match), self._listed(match, teams=match.teams[::-1])
        return [Pair(kind, ours, theirs, is_same=True)]

    def _women(self, kind: str, match: _Match) -> list[Pair]:
        ours = self._listed(match, mark=self._mark(world.WOMEN_WORDS))
        if self.chance.random() < 0.3:
            theirs = self._listed(match, series=f"Women's {match.series or 'League'}")
        else:
            theirs = self._listed(match, mark=self._mark(world.WOMEN_WORDS))
        return [Pair(kind, ours, theirs, is_same=True)]

    def _young(self, kind: str, match: _Match) -> list[Pair]:
        ours, theirs = (self._listed(match, mark=self._mark(world.YOUTH_WORDS)) for _ in range(2))
        return [Pair(kind, ours, theirs, is_same=True)]

    def _second(self, kind: str, match: _Match) -> list[Pair]:
        ours, theirs = (self._listed(match, mark=self._mark(world.SECOND_WORDS)) for _ in range(2))
        return [Pair(kind, ours, theirs, is_same=True)]

    def _doubleheader(self, kind: str, match: _Match) -> list[Pair]:
        evening = match.start + timedelta(hours=4, minutes=30)
        return [self._pair(kind, match), self._pair(kind, match, start=evening)]

    def _postponed(self, kind: str, match: _Match) -> list[Pair]:
        moved = self.chance.choice((timedelta(minutes=25), timedelta(minutes=90), timedelta(days=2)))
        series = "Premier League, Round 12"
        ours = self._listed(match, series=series)
        return [Pair(kind, ours, self._listed(match, series=series, start=match.start + moved), is_same=True)]

    def _pair(self, kind: str, match: _Match, **changes: object) -> Pair:
        ours, theirs = (self._listed(match, **changes) for _ in range(2))  # type: ignore[arg-type]
        return Pair(kind, ours, theirs, is_same=True)

    def _listed(
        self,
        match: _Match,
        *,
        teams: Sequence[Names] | None = None,
        start: datetime | None = None,
        series: str | None = None,
        mark: Callable[[str], str] = str,
    ) -> DiscoveredMatch:
        """Returns the match as one site lists it: names, short names and start vary."""
        shown = [self._shown(names) for names in teams or match.teams]
        named = tuple(Team(name=mark(name), short_name=short) for name, short in shown)
        self._ids += 1
        late = timedelta(minutes=self.chance.choice((0, 0, 0, 0, 5, -5, 10)))
        return DiscoveredMatch(
            source_event_id=f"{self.date:%y%m%d}-{self._ids}",
            url="https://site.example/",
            title=f"{named[0].name} vs {named[1].name}",
            sport=self.sport,
            status=Status.UPCOMING,
            start_time=(start or match.start) + late,
            teams=named,
            series=match.series if series is None else series,
        )

    def _shown(self, names: Names) -> Shown:
        name = names[0] if self.chance.random() < USUAL else self.chance.choice(names)
        if len(name) > 3 and self.chance.random() < 0.1:
            name = plain(name).title() if self.chance.random() < 0.5 else name.upper()
        code = names[-1] if len(names[-1]) <= 3 else "".join(char for char in plain(names[0]) if char.isalpha())[:3]
        return name, code.upper() if self.chance.random() < 0.5 else ""

    def _mark(self, words: Sequence[str]) -> Callable[[str], str]:
        word = self.chance.choice(words)
        return lambda name: f"{name} {word.strip()}"

    def _match(self, block: str, tries: int) -> _Match | None:
        for _ in range(tries):
            first, second = self._team(self.blocks[block]), self._team(self.blocks[block])
            if first and second:
                start = self.date + timedelta(minutes=15 * self.chance.randrange(24, 72))
                return _Match((first, second), start, self.chance.choice(SERIES), self.sport)
        return None

    def _team(self, block: Sequence[Names]) -> Names | None:
        """Returns a team that has not played on this day, under no name."""
        for _ in range(20):
            names = self.chance.choice(block)
            if not self._are_taken((names,)):
                return names
        return None

    def _are_taken(self, teams: Sequence[Names]) -> bool:
        keys = {plain(name) for names in teams for name in names}
        if keys & self._played:
            return True
        self._played |= keys
        return False

    def _of(self, weights: dict[str, int]) -> str:
        return self.chance.choices(list(weights), list(weights.values()))[0]
