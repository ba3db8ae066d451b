"""What teams are called: the same team under two names, and two teams under almost the same name. Pure.

Sources write "Royal Challengers Bengaluru", "RCB" and "R. Challengers Bangalore". They also write "India" and
"India Women", which are two teams however alike the rest is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

Aliases = Mapping[str, str]  # by the squeezed alias, what the team is called here

NO_ALIASES: Aliases = {}
EXACT, BY_SHORT_NAME, BY_WORDS, ALIKE = 1.0, 0.9, 0.8, 0.7  # how sure it is that two names mean one team
ALIKE_RATIO = 0.88
SHORTEST_ALIKE = 6  # letters; shorter names resemble each other by chance
SHORTEST_JOINED = 3  # letters before the grade: INDW is India's women, GAW is a name
_MAX = 60

# Words that say which of a club's or country's teams it is. Whatever is here makes another team.
_WOMEN = {
    "women",
    "womens",
    "woman",
    "w",
    "wmn",
    "ladies",
    "girls",
    "fem",
    "femenino",
    "feminino",
    "femenil",
    "feminin",
}
_SECOND = {"a", "b", "ii", "iii", "xi", "reserves", "reserve", "reservas", "aspirantes"}
_AGE = re.compile(r"(?:u|under|sub)\s?-?\s?(\d{2})s?\b")
_JOINED = re.compile(r"^([A-Z]{2,5}?)[- ]?(W|U\d{2}W?)$")  # short names: INDW, IND-W, AUSU19
# Words that clubs carry and sources leave out.
# fmt: off
_PLAIN = {
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


def squeezed(text: str) -> str:
    """Letters and figures, small and without their marks: what is compared."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in plain if char.isalnum() and not unicodedata.combining(char))[:_MAX]


@dataclass(frozen=True)
class TeamName:
    """A team as one source names it, taken apart."""

    name: str = ""  # squeezed, without the words below, by its alias where it has one
    short: str = ""
    words: frozenset[str] = frozenset()
    grade: str = ""  # "women", "u19", "a": another team than the one without

    @property
    def is_known(self) -> bool:
        return bool(self.name)


@lru_cache(maxsize=4096)
def _parted(text: str) -> tuple[str, tuple[str, ...], frozenset[str]]:
    """A name without its grade, its words, and the grade."""
    if (joined := _JOINED.match(text)) and (len(joined[1]) >= SHORTEST_JOINED or not text[len(joined[1])].isalnum()):
        text = f"{joined[1]} {joined[2].replace('W', ' W')}"
    plain = unicodedata.normalize("NFKD", text.casefold()).replace("'", "")
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    grade = {f"u{age}" for age in _AGE.findall(plain)}
    words = re.findall(r"[^\W_]+", _AGE.sub(" ", plain))
    kept = []
    for place, word in enumerate(words):
        if place and word in _WOMEN:
            grade.add("women")
        elif place and word in _SECOND:
            grade.add(word)
        else:
            kept.append(word)
    meaning = tuple(word for word in kept if word not in _PLAIN) or tuple(kept)
    return "".join(meaning), meaning, frozenset(grade)


def team(name: str, short_name: str = "", aliases: Aliases = NO_ALIASES) -> TeamName:
    """Taken apart. What is undecided ("TBC", "Winner of A1") is nobody."""
    if not name.strip() or _UNDECIDED.match(name.strip()):
        return TeamName()
    bare, words, grade = _by_alias(*_parted(aliases.get(squeezed(name), name.strip())), aliases)
    short, _, short_grade = _by_alias(*_parted(short_name.strip()), aliases)
    # A short name with another grade than the name is half of a name: "IND" beside "India Women" is the women's too.
    return TeamName(bare, short if short_grade <= grade else "", frozenset(words), "+".join(sorted(grade)))


def _by_alias(
    bare: str, words: tuple[str, ...], grade: frozenset[str], aliases: Aliases
) -> tuple[str, tuple[str, ...], frozenset[str]]:
    """The alias of a country is good for all of its teams."""
    known = aliases.get(bare)
    return (*_parted(known)[:2], grade) if known else (bare, words, grade)


def sameness(one: TeamName, other: TeamName) -> float:
    """0 to 1: how sure it is that both are one team."""
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
    is_long = min(len(one.name), len(other.name)) >= SHORTEST_ALIKE
    return ALIKE if is_long and _are_alike(*sorted((one.name, other.name))) else 0.0


@lru_cache(maxsize=4096)
def _are_alike(one: str, other: str) -> bool:
    """But for a letter or two. In this order, for the last is a hundred times as dear as the first."""
    matcher = SequenceMatcher(None, one, other)
    ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return all(ratio() >= ALIKE_RATIO for ratio in ratios)
