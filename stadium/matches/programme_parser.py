"""Parses a programme text, like `demo` or `load:300`, into slots: sport, sites, rules and start of their matches."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Literal, get_args

from stadium.cricket.generator import FIFTY, T10, T20, Rules
from stadium.cricket.script import CricketScript, NoticeKind
from stadium.cricsheet.conversion import Folder, Recording, load_all
from stadium.endpoints import Site
from stadium.football.script import FootballScript, Period
from stadium.matches.distortion import Distortion
from stadium.matches.teams import CRICKET_TEAMS, FOOTBALL_TEAMS

DEFAULT_SITES: dict[str, str] = {"cricket": "crex", "football": "sofascore"}
FOOTBALL_SITES = ("sofascore", "espnsoccer")
PAIR = ("crex", "espncricinfo")
EVERYWHERE = ("crex", "espncricinfo", "espn", "sofascorecricket")
PERIODS = {20: 12_000.0, 10: 7_200.0, 50: 25_200.0}
FOOTBALL_PERIOD = 11_000.0  # includes extra time and a shoot-out
REPLAY_LEAD_SECONDS = 3.0  # of wall time, before the first recording starts
REPLAY_STAGGER_SECONDS = 2.0  # of wall time, from one recording to the next
_FIRST_REPLAY = 500_000
_REPLAY_NUMBERS = 10_000
DEMO_DISTORTIONS = {
    "espncricinfo": Distortion(delay_seconds=2.0, other_names=True, swaps_sides=True),
    "espnsoccer": Distortion(delay_seconds=2.0, other_names=True),
}
PROGRAMME_FORMATS = (
    "demo, single, load:N (N up to 400), mixed:C:F (F up to 50), members:N, board:N or pair:N (N up to 400), "
    "many:N (N up to 30), only:SITE,SITE:N (N up to 50) or replay:FOLDER"
)

Start = Callable[[CricketScript | FootballScript], float]  # start of a slot's first match, given its script


@dataclass(frozen=True)
class Slot:
    number: int
    sport: Literal["cricket", "football"]
    start: Start
    rules: Rules = T20
    chosen_sites: tuple[str, ...] = ()  # the exact site first; empty: the default site of the sport
    recording: Recording | None = None
    match_number: int = 0  # of a recording

    @property
    def sites(self) -> tuple[str, ...]:
        return self.chosen_sites or (DEFAULT_SITES[self.sport],)

    @property
    def period(self) -> float:
        """A recording is played once."""
        if self.recording:
            return inf
        return FOOTBALL_PERIOD if self.sport == "football" else PERIODS[self.rules.overs]


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    sites: tuple[str, ...] = ("crex",)
    is_at_once: bool = False
    pace: float = 10.0


@dataclass(frozen=True)
class ParsedProgramme:
    slots: tuple[Slot, ...]
    distortions: dict[str, Distortion] = field(default_factory=dict)
    rejected: tuple[str, ...] = ()  # error messages of files that can't be played


def parse_programme(text: str, replay: ReplayOptions | None = None) -> ParsedProgramme:
    """Raises a ValueError if the text is not valid or no recording can be played."""
    name, _, rest = text.partition(":")
    if name == "replay" and rest:
        return _replays(load_all(Path(rest)), replay or ReplayOptions())
    return ParsedProgramme(parse_slots(text), DEMO_DISTORTIONS if name == "demo" else {})


def parse_slots(text: str) -> tuple[Slot, ...]:
    """Returns the slots of every programme except a replay."""
    name, *numbers = text.split(":")
    try:
        if name == "only" and len(numbers) == 2:
            return _only(tuple(numbers[0].split(",")), int(numbers[1]))
        counts = [int(number) for number in numbers]
        if name in ("demo", "single") and not counts:
            return _demo() if name == "demo" else (Slot(0, "cricket", lambda script: -300.0),)
        if name == "mixed" and len(counts) == 2 and sum(counts) > 0 and min(counts) >= 0 and counts[1] <= 50:
            return _mixed(*counts)
        if name in _COUNTED and len(counts) == 1 and 0 < counts[0] <= _COUNTED[name][0]:
            return _COUNTED[name][1](counts[0])
    except ValueError:
        pass
    raise ValueError(f"programme must be {PROGRAMME_FORMATS}, not {text!r}")


def _staggered(index: int) -> Start:
    return lambda script: -(300.0 + 37.0 * index % 2400)


def _cricket(count: int, rules: Rules = T20, chosen_sites: tuple[str, ...] = ()) -> tuple[Slot, ...]:
    return tuple(Slot(i, "cricket", _staggered(i), rules, chosen_sites) for i in range(count))


def _mixed(cricket: int, football: int) -> tuple[Slot, ...]:
    first = _cricket(cricket)
    return first + tuple(Slot(i, "football", _staggered(i)) for i in range(cricket, cricket + football))


def _many(count: int) -> tuple[Slot, ...]:
    football = tuple(Slot(count + i, "football", _staggered(i), chosen_sites=FOOTBALL_SITES) for i in range(count))
    return _cricket(count, chosen_sites=EVERYWHERE) + football


def _only(sites: tuple[str, ...], count: int) -> tuple[Slot, ...]:
    football = [site in FOOTBALL_SITES for site in sites]
    is_known = all(site in get_args(Site) for site in sites)
    if not is_known or any(football) != all(football) or not 0 < count <= 50:
        raise ValueError
    slots = _cricket(count, chosen_sites=sites)
    return tuple(replace(slot, sport="football") for slot in slots) if football[0] else slots


_COUNTED: dict[str, tuple[int, Callable[[int], tuple[Slot, ...]]]] = {
    "load": (CRICKET_TEAMS // 2, lambda count: _cricket(count, FIFTY)),
    "members": (CRICKET_TEAMS // 2, lambda count: _cricket(count, chosen_sites=("crexpro",))),
    "board": (CRICKET_TEAMS // 2, lambda count: _cricket(count, FIFTY, ("board",))),
    "pair": (CRICKET_TEAMS // 2, lambda count: _cricket(count, chosen_sites=PAIR)),
    "many": (FOOTBALL_TEAMS // 4, _many),
}


def _demo() -> tuple[Slot, ...]:
    """At pace 10 a minute of wall time is 600 simulated seconds."""
    return (
        Slot(0, "cricket", lambda script: -900.0, chosen_sites=PAIR),  # early in the first innings
        Slot(1, "cricket", lambda script: -min(_break(script) + 3_400.0, script.ends_at - 1_200.0)),  # in a chase
        Slot(2, "cricket", lambda script: -_break(script) + 250.0),  # about to enter the innings break
        Slot(3, "cricket", lambda script: -script.ends_at + 900.0),  # about to finish
        Slot(4, "cricket", lambda script: 1_500.0),  # starts in two and a half minutes
        Slot(5, "cricket", lambda script: -2_000.0, T10),  # a short one
        Slot(6, "cricket", lambda script: -3_300.0, chosen_sites=PAIR),  # late in the first innings
        Slot(7, "football", lambda script: -1_300.0, chosen_sites=FOOTBALL_SITES),  # in the first half
        Slot(8, "football", lambda script: -_halftime(script) - 500.0),  # at halftime
    )


def _break(script: CricketScript | FootballScript) -> float:
    assert isinstance(script, CricketScript)
    return script.time_of(NoticeKind.INNINGS_BREAK)


def _halftime(script: CricketScript | FootballScript) -> float:
    assert isinstance(script, FootballScript)
    return script.time_of(Period.HALFTIME)


def _replays(folder: Folder, options: ReplayOptions) -> ParsedProgramme:
    """Match numbers, and therefore keys, derive from file names: another file in the folder does not change them."""
    slots: list[Slot] = []
    taken: set[int] = set()
    for place, recording in enumerate(folder.recordings):
        block = zlib.crc32(recording.name.encode()) % _REPLAY_NUMBERS
        while block in taken:
            block = (block + 1) % _REPLAY_NUMBERS
        taken.add(block)
        wait = REPLAY_LEAD_SECONDS + (0.0 if options.is_at_once else place * REPLAY_STAGGER_SECONDS)
        slots.append(
            Slot(
                place, "cricket", _after(wait * options.pace), chosen_sites=options.sites, recording=recording,
                match_number=_FIRST_REPLAY + block,
            )
        )  # fmt: skip
    return ParsedProgramme(tuple(slots), rejected=folder.rejected)


def _after(seconds: float) -> Start:
    return lambda script: seconds
