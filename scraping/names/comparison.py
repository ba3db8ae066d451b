"""Compares team names: one team under two names, and two teams under almost the same name. Pure.

Sources write "Royal Challengers Bengaluru", "RCB" and "R. Challengers Bangalore". They also write "India" and
"India Women", "Guinea" and "Equatorial Guinea": two teams however similar the rest is. So a name that is only a part of
another one, or only similar, is never sure: a sure one differs by spelling, script, the name of the city in another
language, a sponsor, the type of the club, an abbreviation of its words, or by an alias.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rapidfuzz import fuzz

from scraping.names import words as normal
from scraping.names.words import plain

Aliases = Mapping[str, str]  # from the squeezed alias to the name of the team

NO_ALIASES: Aliases = {}
# Similarity of two names, by what they share. Sure from an abbreviation on; initials are sure beside an exact name.
EXACT, BY_SHORT_NAME, BY_ABBREVIATION, BY_INITIALS, BY_WORDS, BY_SPELLING = 1.0, 0.9, 0.85, 0.83, 0.8, 0.7
# In percent, calibrated on the team names of the tests and the team file: no two different teams reach it.
SPELLING_PERCENT = 88.0
SHORTEST_BY_SPELLING = 6  # letters; shorter names are similar by chance
SHORTEST_JOINED = 3  # letters before the grade: INDW is India's women, GAW is a name
SHORTEST_ABBREVIATION = 3  # letters; with fewer it is an initial
LONGEST_CODE = 5
_MAX = 60

# Words that name one of several teams of a club or country: with them it is another team.
# fmt: off
_WOMEN = {
    "women", "womens", "woman", "w", "wmn", "ladies", "girls", "fem", "femenino", "feminino", "femenil", "feminin",
    "femeni", "feminine", "feminines", "feminina", "femenina", "femminile", "frauen", "damen", "vrouwen", "dames",
    "kvinner",
}
# fmt: on
_SECOND = {"a", "b", "ii", "iii", "xi", "reserves", "reserve", "reservas", "aspirantes"}
_BEFORE = {"jong": "ii"}  # Jong Ajax
_ONE_GRADE = {"b": "ii", "reserves": "ii", "reserve": "ii", "reservas": "ii"}
_AGE = re.compile(r"(?:u|under|sub)\s?-?\s?(\d{2})s?\b")
_WOMEN_IN_TEXT = re.compile(
    r"\b(?:wom[ae]ns?|ladies|girls|fem(?:en|in|min)\w*|frauen|damen|vrouwen|kvinner|wbbl|wpl|wcpl|nwsl|wsl|wt20i?|wodi)\b|\(w\)"
)
_JOINED = re.compile(r"^([A-Z]{2,5}?)[- ]?(W|U\d{2}W?)$")  # short names: INDW, IND-W, AUSU19
_UNDECIDED = re.compile(
    r"^(tbc|tbd|tba|to be (?:confirmed|decided|announced)|(?:semi|quarter)?-?final.*|[a-d]\d|q\d|qualifier \d.*"
    r"|.*\b(?:winners?|losers?)\b.*)$",
    re.IGNORECASE,
)


def squeezed(text: str) -> str:
    """Returns the letters and digits of a name in lower case, without accents."""
    return "".join(char for char in plain(text) if char.isalnum())[:_MAX]


@dataclass(frozen=True)
class TeamName:
    """The parts of a team's name at one source."""

    name: str = ""  # its words together, resolved by its alias
    short: str = ""
    parts: tuple[str, ...] = ()  # its words in their normal form, without optional words and grade
    grade: str = ""  # "women", "u19", "a": not the team without a grade
    listed: str = field(default="", compare=False)  # the team of the table of aliases, without the grade
    types: frozenset[str] = field(default=frozenset(), compare=False)  # "fc", "sc"
    initials: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def is_known(self) -> bool:
        return bool(self.name)

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.parts)


def identity(name: str, aliases: Aliases = NO_ALIASES) -> str:
    """Returns the key of a team: names with one key mean one team. Empty for a placeholder ("TBC").

    Stricter than `similarity`: every word of a club's name counts, so that EC Vitória and Vitória SC are two teams.
    An alias makes two names one team; a country's alias holds for all of its teams.
    """
    text = aliases.get(squeezed(name), name).strip()
    if not text or _UNDECIDED.match(text):
        return ""
    words, grade = _graded(text)
    if known := aliases.get("".join(words)):
        words = _graded(known)[0]
    return "+".join(("".join(words), *sorted(grade)))


@dataclass(frozen=True)
class _Parts:
    kept: str  # all words but the grade, together
    meant: str  # also without optional words
    parts: tuple[str, ...]  # those in their normal form
    grade: frozenset[str]
    types: frozenset[str]
    initials: frozenset[str]

    @property
    def name(self) -> str:
        return "".join(self.parts)


@lru_cache(maxsize=4096)
def _split(text: str) -> _Parts:
    words, grade = _graded(text)
    kept = tuple(normal.join_sponsors(" ".join(words)).split())
    meaning = tuple(word for word in kept if not normal.is_optional(word)) or kept
    types = {normal.TYPES[word] for word in kept if word in normal.TYPES and word not in meaning}
    initials = {"".join(word[0] for word in map(normal.latin, some) if word) for some in (kept, meaning)}
    return _Parts(
        "".join(words),
        "".join(meaning),
        tuple(map(normal.sound, meaning)),
        grade,
        frozenset(types),
        frozenset(initials) if kept[1:] else frozenset(),
    )


@lru_cache(maxsize=4096)
def _graded(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Returns the words of a name without its grade, and the grade."""
    if (joined := _JOINED.match(text)) and (len(joined[1]) >= SHORTEST_JOINED or not text[len(joined[1])].isalnum()):
        text = f"{joined[1]} {joined[2].replace('W', ' W')}"
    bare = plain(text.replace("'", ""))
    grade = {f"u{age}" for age in _AGE.findall(bare)}
    words = re.findall(r"[^\W_]+", _AGE.sub(" ", bare))
    kept = []
    for place, word in enumerate(words):
        if place and word in _WOMEN:
            grade.add("women")
        elif not place and word in _BEFORE and words[1:]:
            grade.add(_BEFORE[word])
        elif place and word in _SECOND:
            grade.add(word)
        else:
            kept.append(word)
    return tuple(kept), frozenset(grade)


def team(name: str, short_name: str = "", aliases: Aliases = NO_ALIASES) -> TeamName:
    """Splits a name into its parts. A placeholder ("TBC", "Winner of A1") gives an unknown team."""
    if not name.strip() or _UNDECIDED.match(name.strip()):
        return TeamName()
    own, listed = _by_alias(name, aliases)
    short, short_listed = _by_alias(short_name, aliases)
    if short_listed != listed:  # SA is South Africa, and not beside "South Australia"
        short = _split(short_name.strip())
    # A short name may leave the grade out: "IND" beside "India Women" is the women's team.
    code = short.name if short.grade <= own.grade else ""
    return TeamName(own.name, code, own.parts, "+".join(sorted(own.grade)), listed, own.types, own.initials)


def _by_alias(text: str, aliases: Aliases) -> tuple[_Parts, str]:
    """Returns the parts of the name that the text is an alias of, and the listed team; a country's alias holds for all
    of its teams, a club's for its women's and youth teams.
    """
    found = _split(text.strip())
    if (known := aliases.get(squeezed(text))) is not None:
        meant = _split(known)
        return replace(meant, types=found.types), meant.kept
    known = aliases.get(found.kept) or aliases.get(found.meant)
    if known is None:
        return found, ""
    meant = _split(known)
    return replace(meant, grade=found.grade, types=found.types), meant.kept


def grade_in(text: str) -> frozenset[str]:
    """Returns the grade that the name of a series or a title states: "women", "u19"."""
    bare = plain(text.replace("'", ""))
    women = {"women"} if _WOMEN_IN_TEXT.search(bare) else set()
    return frozenset(women | {f"u{age}" for age in _AGE.findall(bare)})


def with_grade(one: TeamName, grade: Iterable[str]) -> TeamName:
    """Returns the name with a grade that its series states and it leaves out itself."""
    return replace(one, grade="+".join(sorted({*filter(None, one.grade.split("+")), *grade})))


def similarity(one: TeamName, other: TeamName) -> float:
    """Returns how likely both names mean one team, from 0 to 1."""
    if not (one.is_known and other.is_known) or not has_same_grade(one, other):
        return 0.0
    if one.listed and other.listed:
        return EXACT if one.listed == other.listed else 0.0
    if one.name == other.name:
        is_same_type = not (one.types and other.types) or bool(one.types & other.types)
        return EXACT if is_same_type else BY_WORDS
    return max(_by_code(one, other), _by_code(other, one), _by_words(one, other))


def has_same_grade(one: TeamName, other: TeamName) -> bool:
    return one.grade == other.grade or _grades(one.grade) == _grades(other.grade)


@lru_cache(maxsize=256)
def _grades(grade: str) -> frozenset[str]:
    return frozenset(_ONE_GRADE.get(part, part) for part in grade.split("+"))


def _by_code(one: TeamName, other: TeamName) -> float:
    """Compares a name that may be a code, "RCB", with the short name and the initials of the other."""
    is_code = len(one.parts) == 1 and len(one.name) <= LONGEST_CODE
    if one.name == other.short:
        return BY_SHORT_NAME if is_code and one.name not in other.parts else BY_WORDS
    if is_code and one.name in other.initials:
        return BY_ABBREVIATION if len(one.name) >= SHORTEST_ABBREVIATION else BY_INITIALS
    return 0.0


def _by_words(one: TeamName, other: TeamName) -> float:
    if len(one.parts) == len(other.parts) > 1 and (shortest := _abbreviates(one.parts, other.parts)):
        return BY_ABBREVIATION if shortest >= SHORTEST_ABBREVIATION else BY_INITIALS
    if one.words <= other.words or other.words <= one.words:
        return BY_WORDS
    if one.short and one.short == other.short and (one.words & other.words or one.name[:3] == other.name[:3]):
        return BY_WORDS
    is_long = min(len(one.name), len(other.name)) >= SHORTEST_BY_SPELLING
    return BY_SPELLING if is_long and fuzz.ratio(one.name, other.name) >= SPELLING_PERCENT else 0.0


def _abbreviates(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Returns the length of the shortest abbreviation, if each word begins with its counterpart; else 0."""
    pairs = [sorted(pair, key=len) for pair in zip(one, other, strict=True)]
    if not all(long.startswith(short) for short, long in pairs):
        return 0
    return min(len(short) for short, long in pairs if short != long)
