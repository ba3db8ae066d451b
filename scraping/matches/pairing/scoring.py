"""Compares two matches of two sources. Pure: facts in, a score with its reasons out.

Two matches merged by mistake spoil each other's data; one match kept apart by mistake is served twice. So a single
contradiction, however high the score, leaves the decision to a person.
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
POSTPONED = timedelta(days=6)  # or one that was postponed, if it has the same number
SURE_TEAMS = names.BY_ABBREVIATION
SURE_BESIDE_ANOTHER = names.BY_INITIALS
LEAST_TEAMS = names.BY_SPELLING
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


class PairOutcome(StrEnum):
    SAME = "same"
    UNSURE = "unsure"
    APART = "apart"


@dataclass(frozen=True)
class Facts:
    """The facts of a match at one source. Only matches of one sport are compared."""

    teams: tuple[TeamName, TeamName] | None = None
    start: datetime | None = None
    series: str = ""  # with the round or the number in the series, where the source has it
    format: str = ""
    is_live: bool = False
    title: str = ""


@dataclass(frozen=True)
class PairComparison:
    score: float  # 0 to 1
    reasons: tuple[str, ...]
    outcome: PairOutcome


def score(a: Facts, b: Facts, aliases: Aliases = NO_ALIASES) -> PairComparison:
    """Compares two matches. `aliases` also hold for series that an operator has given an alias."""
    if a.teams is None or b.teams is None or not all(team.is_known for team in (*a.teams, *b.teams)):
        return PairComparison(0.0, ("the teams are not known yet",), PairOutcome.APART)
    of_start, when, is_doubtful = _compare_starts(a, b)  # first: it is cheap, and most are far apart
    if of_start == 0.0 and not _may_be_postponed(a, b):
        return PairComparison(0.0, (when,), PairOutcome.APART)
    grades = [names.grade_in(f"{one.series} {one.title}") for one in (a, b)]
    of_teams, is_sure, teams = _compare_teams(_graded(a.teams, grades[0]), _graded(b.teams, grades[1]))
    unstated = ""
    if of_teams == 0.0 and grades[0] != grades[1] and not (a.series and b.series):
        of_teams, is_sure, teams = _compare_teams(a.teams, b.teams)
        unstated = f"{' '.join(sorted(grades[0] ^ grades[1]))} by the series of one only"
    if of_teams < LEAST_TEAMS:
        return PairComparison(0.0, ("other teams",), PairOutcome.APART)
    of_series, kind, contradiction = _compare_series(a, b, aliases)
    is_moved = of_start == 0.0
    if is_moved and (contradiction or not is_sure):
        return PairComparison(0.0, (when,), PairOutcome.APART)
    contradiction = contradiction or unstated
    is_unsure = not is_sure or is_doubtful or is_moved or bool(contradiction)
    total = round(TEAMS_SHARE * of_teams + START_SHARE * of_start + SERIES_SHARE * of_series, 2)
    reasons = tuple(dict.fromkeys(reason for reason in (teams, when, kind, contradiction) if reason))
    return PairComparison(total, reasons, PairOutcome.UNSURE if is_unsure else PairOutcome.SAME)


def _graded(teams: tuple[TeamName, TeamName], grade: frozenset[str]) -> tuple[TeamName, TeamName]:
    return (names.with_grade(teams[0], grade), names.with_grade(teams[1], grade)) if grade else teams


def _compare_teams(ours: tuple[TeamName, TeamName], theirs: tuple[TeamName, TeamName]) -> tuple[float, bool, str]:
    """Returns the lower similarity of both teams in the order that fits better, whether it is sure, and the reason."""
    straight = sorted((names.similarity(ours[0], theirs[0]), names.similarity(ours[1], theirs[1])))
    crossed = sorted((names.similarity(ours[0], theirs[1]), names.similarity(ours[1], theirs[0])))
    order = "" if straight >= crossed else ", the other way round"
    worse, better = max(straight, crossed)
    is_sure = better >= SURE_TEAMS and worse >= SURE_BESIDE_ANOTHER
    reason = "the same teams" if worse == names.EXACT else "teams of almost the same name"
    if not worse and better >= SURE_TEAMS and any(map(names.share_a_word, ours, theirs if not order else theirs[::-1])):
        return LEAST_TEAMS, False, f"one team is the same, the other shares a word of its name{order}"
    return worse, is_sure, f"{reason}{order}"


def _may_be_postponed(a: Facts, b: Facts) -> bool:
    """Returns whether two starts may be those of one match that was moved: by the same number or round."""
    if a.start is None or b.start is None or abs(a.start - b.start) > POSTPONED:
        return False
    numbers = [_numbers(one) for one in (a, b)]
    return bool(numbers[0] & numbers[1])


def _compare_starts(a: Facts, b: Facts) -> tuple[float, str, bool]:
    """Returns how close the starts are (0: too far apart for one match), the reason, and whether it is doubtful."""
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
    """Returns how similar the series are, the reason, and a contradiction if there is one."""
    formats = [_format(one) for one in (a, b)]
    if all(formats) and not formats[0] & formats[1]:
        return 0.0, "", f"{'/'.join(sorted(formats[0]))} here, {'/'.join(sorted(formats[1]))} there"
    if not a.series or not b.series:
        return 0.5, "", ""
    numbers = [_numbers(one) for one in (a, b)]
    if all(numbers) and not numbers[0] & numbers[1]:
        return 0.0, "", f"number {', '.join(sorted(numbers[0]))} here, {', '.join(sorted(numbers[1]))} there"
    is_shared = bool(_words(a.series, aliases) & _words(b.series, aliases))
    return (1.0, "the same series by name", "") if is_shared else (0.3, "another name of the series", "")


def _numbers(one: Facts) -> set[str]:
    return set(_NUMBER.findall(_YEAR.sub(" ", one.series)))


def _format(one: Facts) -> frozenset[str]:
    text = f"{one.format} {one.series}"
    return frozenset(name for name, pattern in _FORMATS.items() if pattern.search(text))


def _words(text: str, aliases: Aliases) -> set[str]:
    known = aliases.get(names.squeezed(text), text)
    words = {names.squeezed(word) for word in _YEAR.sub(" ", known).split()}
    return {word for word in words if len(word) > 1 and not word.isdecimal() and word not in _COMMON}
