"""Are two matches, found at two sources, one and the same? Pure: facts in, a score with its reasons out.

Joined by mistake, two matches destroy each other; left apart by mistake, one match is served twice. So anything that
speaks against it, however much speaks for it, is for a person to decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from scraping import names
from scraping.names import NO_ALIASES, Aliases, TeamName

CLOSE = timedelta(minutes=30)  # sources round, and one of them knows of a delay before the other
NEAR = timedelta(hours=3)  # a start that was moved; farther apart it is the second match of the day, or of the series
SURE_TEAMS = names.BY_WORDS
LEAST_TEAMS = names.ALIKE
TEAMS_SHARE, START_SHARE, SERIES_SHARE = 0.6, 0.3, 0.1
UNKNOWN_START = 0.5

_NUMBER = re.compile(r"\b(\d{1,3})(?:st|nd|rd|th)?\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d(?:[/-]\d{2,4})?\b")
_FORMATS = {
    "test": re.compile(r"\btests?\b|\bfirst.class\b|\b4.day\b", re.IGNORECASE),
    "odi": re.compile(r"\bodis?\b|\bone.day\b|\blist.a\b", re.IGNORECASE),
    "t20": re.compile(r"\bt20i?s?\b|\btwenty20\b|\bipl\b|\bbbl\b|\bpsl\b|\bcpl\b", re.IGNORECASE),
    "t10": re.compile(r"\bt10\b", re.IGNORECASE),
}
_COMMON = {"the", "of", "in", "and", "tour", "league", "cup", "series", "trophy", "premier", "men", "mens"}


class Answer(StrEnum):
    SAME = "same"
    UNSURE = "unsure"
    APART = "apart"


@dataclass(frozen=True)
class Facts:
    """What is known of a match before it is known whose it is."""

    sport: str
    teams: tuple[TeamName, TeamName] | None = None
    start: datetime | None = None
    series: str = ""  # with the round or the number in the series, where the source tells it
    format: str = ""
    is_live: bool = False

    @property
    def is_comparable(self) -> bool:
        return self.teams is not None and all(team.is_known for team in self.teams)


@dataclass(frozen=True)
class Verdict:
    score: float  # 0 to 1
    reasons: tuple[str, ...]
    answer: Answer


def score(a: Facts, b: Facts, aliases: Aliases = NO_ALIASES) -> Verdict:
    """Do both tell of one match? `aliases` name the series too, where an operator has given one an alias."""
    if a.sport != b.sport:
        return Verdict(0.0, ("another sport",), Answer.APART)
    if a.teams is None or b.teams is None or not (a.is_comparable and b.is_comparable):
        return Verdict(0.0, ("the teams are not known yet",), Answer.APART)
    of_start, when, is_doubtful = _compare_starts(a, b)  # first: it is cheap, and most are far apart
    if of_start == 0.0:
        return Verdict(0.0, (when,), Answer.APART)
    of_teams, words = _compare_teams(a.teams, b.teams)
    if of_teams < LEAST_TEAMS:
        return Verdict(0.0, ("other teams",), Answer.APART)
    doubts = [] if of_teams >= SURE_TEAMS else [words]
    if is_doubtful:
        doubts.append(when)
    of_series, kind, contradiction = _compare_series(a, b, aliases)
    if contradiction:
        doubts.append(contradiction)
    total = round(TEAMS_SHARE * of_teams + START_SHARE * of_start + SERIES_SHARE * of_series, 2)
    reasons = tuple(dict.fromkeys(reason for reason in (words, when, kind, contradiction) if reason))
    return Verdict(total, reasons, Answer.UNSURE if doubts else Answer.SAME)


def _compare_teams(ours: tuple[TeamName, TeamName], theirs: tuple[TeamName, TeamName]) -> tuple[float, str]:
    """As sure as of the less sure one of both teams, in the order that fits better."""
    straight = min(names.sameness(ours[0], theirs[0]), names.sameness(ours[1], theirs[1]))
    crossed = min(names.sameness(ours[0], theirs[1]), names.sameness(ours[1], theirs[0]))
    order = "" if straight >= crossed else ", the other way round"
    sure = max(straight, crossed)
    words = "the same teams" if sure == names.EXACT else "teams of almost the same name"
    return sure, f"{words}{order}"


def _compare_starts(a: Facts, b: Facts) -> tuple[float, str, bool]:
    """How close, in words, and whether that is a reason to doubt. 0: too far apart for one match."""
    both_live = a.is_live and b.is_live
    if a.start is None or b.start is None:
        # The same two teams do not play two matches at the same time.
        return UNKNOWN_START, "both are live, a start is unknown" if both_live else "a start is unknown", not both_live
    apart = abs(a.start - b.start)
    minutes = round(apart.total_seconds() / 60)
    if apart <= CLOSE:
        return 1.0, "they start at the same time" if not minutes else f"{minutes} minutes between the starts", False
    if apart <= NEAR or both_live:
        return max(0.1, 1.0 - apart / NEAR), f"{minutes} minutes between the starts", True
    return 0.0, f"{minutes} minutes between the starts: at most another match of these teams", False


def _compare_series(a: Facts, b: Facts, aliases: Aliases) -> tuple[float, str, str]:
    """How much the series says for it, in words, and what it says against it."""
    formats = [_format(one) for one in (a, b)]
    if all(formats) and not formats[0] & formats[1]:
        return 0.0, "", f"{'/'.join(sorted(formats[0]))} here, {'/'.join(sorted(formats[1]))} there"
    if not a.series or not b.series:
        return 0.5, "", ""
    numbers = [set(_NUMBER.findall(_YEAR.sub(" ", one.series))) for one in (a, b)]
    if all(numbers) and not numbers[0] & numbers[1]:
        return 0.0, "", f"number {', '.join(sorted(numbers[0]))} here, {', '.join(sorted(numbers[1]))} there"
    is_shared = bool(_words(a.series, aliases) & _words(b.series, aliases))
    return (1.0, "the same series by name", "") if is_shared else (0.3, "another name of the series", "")


def _format(one: Facts) -> frozenset[str]:
    text = f"{one.format} {one.series}"
    return frozenset(name for name, words in _FORMATS.items() if words.search(text))


def _words(text: str, aliases: Aliases) -> set[str]:
    known = aliases.get(names.squeezed(text), text)
    words = {names.squeezed(word) for word in _YEAR.sub(" ", known).split()}
    return {word for word in words if len(word) > 1 and not word.isdecimal() and word not in _COMMON}
