"""Compares team names: one team under two names, and two teams under almost the same name. Pure.

Sources write "Royal Challengers Bengaluru", "RCB" and "R. Challengers Bangalore". They also write "India" and
"India Women", which are two teams however similar the rest is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rapidfuzz import fuzz

Aliases = Mapping[str, str]  # from the squeezed alias to the name of the team

NO_ALIASES: Aliases = {}
EXACT, BY_SHORT_NAME, BY_WORDS, BY_SPELLING = 1.0, 0.9, 0.8, 0.7  # similarity of two names, by what they share
# In percent, calibrated on the team names of the tests and the team file: "Royal Challengers Bangalore" and
# "... Bengaluru" are exactly at it, no two different teams reach it.
SPELLING_PERCENT = 88.0
SHORTEST_BY_SPELLING = 6  # letters; shorter names are similar by chance
SHORTEST_JOINED = 3  # letters before the grade: INDW is India's women, GAW is a name
_MAX = 60

# Words that name one of several teams of a club or country: with them it is another team.
# fmt: off
_WOMEN = {
    "women", "womens", "woman", "w", "wmn", "ladies", "girls", "fem", "femenino", "feminino", "femenil", "feminin",
}
# fmt: on
_SECOND = {"a", "b", "ii", "iii", "xi", "reserves", "reserve", "reservas", "aspirantes"}
_AGE = re.compile(r"(?:u|under|sub)\s?-?\s?(\d{2})s?\b")
_JOINED = re.compile(r"^([A-Z]{2,5}?)[- ]?(W|U\d{2}W?)$")  # short names: INDW, IND-W, AUSU19
# Words of club names that some sources leave out.
# fmt: off
_OPTIONAL = {
    "fc", "cf", "cc", "sc", "ac", "afc", "ec", "cr", "se", "ca", "cd", "rc", "fk", "sk", "if", "bk", "sv", "club",
    "clube", "futebol", "football", "futbol", "cricket", "team", "the", "de", "do", "da", "del", "e", "esporte",
    "regatas", "sport", "men", "mens",
}
# fmt: on
_UNDECIDED = re.compile(
    r"^(tbc|tbd|tba|to be (?:confirmed|decided|announced)|(?:semi|quarter)?-?final.*|[a-d]\d|q\d|qualifier \d.*"
    r"|.*\b(?:winners?|losers?)\b.*)$",
    re.IGNORECASE,
)


@lru_cache(maxsize=16_384)  # a list filtered by team reads both names of every match
def plain(text: str) -> str:
    """Returns the text without accents and capitals, so that `Atletico` finds Atlético."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in folded if not unicodedata.combining(char))


def squeezed(text: str) -> str:
    """Returns the letters and digits of a name in lower case, without accents."""
    return "".join(char for char in plain(text) if char.isalnum())[:_MAX]


@dataclass(frozen=True)
class TeamName:
    """The parts of a team's name at one source."""

    name: str = ""  # squeezed, without optional words and grade; resolved by its alias
    short: str = ""
    words: frozenset[str] = frozenset()
    grade: str = ""  # "women", "u19", "a": not the team without a grade

    @property
    def is_known(self) -> bool:
        return bool(self.name)


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


@lru_cache(maxsize=4096)
def _split(text: str) -> tuple[str, tuple[str, ...], frozenset[str]]:
    """Returns a name without its grade and optional words, the words of it, and the grade."""
    kept, grade = _graded(text)
    meaning = tuple(word for word in kept if word not in _OPTIONAL) or kept
    return "".join(meaning), meaning, grade


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
        elif place and word in _SECOND:
            grade.add(word)
        else:
            kept.append(word)
    return tuple(kept), frozenset(grade)


def team(name: str, short_name: str = "", aliases: Aliases = NO_ALIASES) -> TeamName:
    """Splits a name into its parts. A placeholder ("TBC", "Winner of A1") gives an unknown team."""
    if not name.strip() or _UNDECIDED.match(name.strip()):
        return TeamName()
    bare, words, grade = _by_alias(*_split(aliases.get(squeezed(name), name.strip())), aliases)
    short, _, short_grade = _by_alias(*_split(short_name.strip()), aliases)
    # A short name may leave the grade out: "IND" beside "India Women" is the women's team.
    return TeamName(bare, short if short_grade <= grade else "", frozenset(words), "+".join(sorted(grade)))


def _by_alias(
    bare: str, words: tuple[str, ...], grade: frozenset[str], aliases: Aliases
) -> tuple[str, tuple[str, ...], frozenset[str]]:
    """Resolves an alias; a country's alias holds for all of its teams."""
    known = aliases.get(bare)
    return (*_split(known)[:2], grade) if known else (bare, words, grade)


def similarity(one: TeamName, other: TeamName) -> float:
    """Returns how likely both names mean one team, from 0 to 1."""
    if not (one.is_known and other.is_known) or one.grade != other.grade:
        return 0.0
    if one.name == other.name:
        return EXACT
    if one.name == other.short or other.name == one.short:
        return BY_SHORT_NAME
    if one.words and other.words and (one.words <= other.words or other.words <= one.words):
        return BY_WORDS
    if one.short and one.short == other.short and (one.words & other.words or one.name[:3] == other.name[:3]):
        return BY_WORDS
    is_long = min(len(one.name), len(other.name)) >= SHORTEST_BY_SPELLING
    return BY_SPELLING if is_long and fuzz.ratio(one.name, other.name) >= SPELLING_PERCENT else 0.0
