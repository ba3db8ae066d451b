"""Compares team names: one team under two names, and two teams under almost the same name. Pure.

Sources write "Royal Challengers Bengaluru", "RCB" and "R. Challengers Bangalore". They also write "India" and
"India Women", "Guinea" and "Equatorial Guinea": two teams however similar the rest is. So a name that is only a part of
another one, or only similar, is never sure: a sure one differs by spelling, script, the name of the city in another
language, a sponsor, the type of the club, an abbreviation of its words, or by an alias.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rapidfuzz import fuzz

from scraping.names import words as normal
from scraping.names.words import plain

Aliases = Mapping[str, str]  # from the squeezed alias to the name of the team

NO_ALIASES: Aliases = {}
# Similarity of two names, by what they share. Sure from an abbreviation on; initials beside a sure name.
EXACT, BY_SHORT_NAME, BY_ABBREVIATION, BY_INITIALS, BY_WORDS, BY_SPELLING = 1.0, 0.9, 0.85, 0.83, 0.8, 0.7
SPELLING_PERCENT = 82.0  # similar, and never sure: Austria and Australia are
SHORTEST_BY_SPELLING = 6  # letters; shorter names are similar by chance
SHORTEST_JOINED = 3  # letters before the grade: INDW is India's women, GAW is a name
SHORTEST_ABBREVIATION = 3  # letters; with fewer it is an initial
LONGEST_CONTRACTION = 0.75  # of the word: Jrs, Utd, Ctral
SHORTEST_BY_SOUND = 4  # letters of an alias; shorter ones are codes
COMMON_TYPES = {"fc"}  # added to the name of any club
SHORTEST_SHARED = 4
_SOUND = "~"  # before an alias in the table that is written by its sound
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
_DOTTED = re.compile(r"\b(?:\w\.){2,}")  # U.A.E., L.A. Galaxy
_JOINED = re.compile(r"^([A-Z]{2,5}?)[- ]?(W|U\d{2}W?)$")  # short names: INDW, IND-W, AUSU19
_UNDECIDED = re.compile(
    r"^(tbc|tbd|tba|to be (?:confirmed|decided|announced)|(?:semi|quarter)?-?final.*|[a-d]\d|q\d|qualifier \d.*"
    r"|.*\b(?:winners?|losers?)\b.*)$",
    re.IGNORECASE,
)


def squeezed(text: str) -> str:
    """Returns the letters and digits of a name in lower case, without accents."""
    return "".join(char for char in plain(text) if char.isalnum())[:_MAX]


@lru_cache(maxsize=8)  # it is needed at every reading of a match of two sources
def alias_table(rows: tuple[tuple[str, str], ...]) -> Aliases:
    """Returns the table of aliases (squeezed) with their names. The names are in it too: they are listed teams.

    Aliases are also found in other scripts and transliterations, unless two teams would have the same.
    """
    table = dict(rows)
    table = {squeezed(name): name for name in table.values()} | table
    sounds: dict[str, set[str]] = {}
    for alias, name in table.items():
        if len(alias) >= SHORTEST_BY_SOUND:
            sounds.setdefault(_SOUND + normal.sound(alias), set()).add(name)
    return {sound: names.pop() for sound, names in sounds.items() if len(names) == 1} | table


@dataclass(frozen=True)
class TeamName:
    name: str = ""  # its words together, resolved by its alias
    short: str = ""
    parts: tuple[str, ...] = ()  # its words in their normal form, without optional words and grade
    grade: str = ""  # "women", "u19", "a": not the team without a grade
    spelled: tuple[str, ...] = field(default=(), compare=False)  # its words as they are written, in Latin letters
    whole: str = field(default="", compare=False)  # with its optional words, together
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
    whole: str  # those in their normal form
    meant: str  # also without optional words
    parts: tuple[str, ...]  # those in their normal form
    spelled: tuple[str, ...]  # and in Latin letters
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
    initials = {_initials(tuple(map(normal.latin, some))) for some in (kept, meaning)}
    return _Parts(
        "".join(words),
        normal.sound("".join(words)),
        "".join(meaning),
        tuple(map(normal.sound, meaning)),
        tuple(map(normal.latin, meaning)),
        grade,
        frozenset(types),
        frozenset(initials) if kept[1:] else frozenset(),
    )


@lru_cache(maxsize=4096)
def _graded(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    if (joined := _JOINED.match(text)) and (len(joined[1]) >= SHORTEST_JOINED or not text[len(joined[1])].isalnum()):
        text = f"{joined[1]} {joined[2].replace('W', ' W')}"
    bare = plain(_DOTTED.sub(lambda found: f"{found[0].replace('.', '')} ", text.replace("'", "")))
    grade = {f"u{age}" for age in _AGE.findall(bare)}
    words = re.findall(r"[^\W_]+(?:\.$|\.(?=\s))?", _AGE.sub(" ", bare))
    kept = []
    for place, written in enumerate(words):
        word = written.rstrip(".")
        if len(word) == 1 and word != written:  # an initial: Bolton W.
            kept.append(word)
        elif place and word in _WOMEN:
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
    grade = "+".join(sorted(own.grade))
    return TeamName(own.name, code, own.parts, grade, own.spelled, own.whole, listed, own.types, own.initials)


def _by_alias(text: str, aliases: Aliases) -> tuple[_Parts, str]:
    """Returns parts and listed team of the name that the text is an alias of, also of its women's and youth teams."""
    found = _split(text.strip())
    if (known := aliases.get(squeezed(text))) is not None:
        meant = _split(known)
        return replace(meant, types=found.types), meant.kept
    known = aliases.get(found.kept) or aliases.get(_SOUND + found.whole)
    if known is None and found.types <= COMMON_TYPES:  # FSV Frankfurt is not Frankfurt
        known = aliases.get(found.meant)
    if known is None:
        return found, ""
    meant = _split(known)
    return replace(meant, grade=found.grade | meant.grade, types=found.types), meant.kept


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
    if one.whole == other.whole:  # Al Shabab, Alshabab
        return EXACT
    return max(_by_code(one, other), _by_code(other, one), _by_words(one, other))


def share_a_word(one: TeamName, other: TeamName) -> bool:
    """Returns whether two names that are not similar share a word, and are not known as two teams."""
    if (one.listed and other.listed) or not has_same_grade(one, other) or one.parts == other.parts:
        return False
    return any(len(word) >= SHORTEST_SHARED for word in one.words & other.words)


def has_same_grade(one: TeamName, other: TeamName) -> bool:
    return one.grade == other.grade or _grades(one.grade) == _grades(other.grade)


@lru_cache(maxsize=256)
def _grades(grade: str) -> frozenset[str]:
    return frozenset(_ONE_GRADE.get(part, part) for part in grade.split("+"))


def _by_code(one: TeamName, other: TeamName) -> float:
    """Compares a name that may be a code, "RCB", with the short name, the initials and the letters of the other."""
    code = one.spelled[0] if len(one.spelled) == 1 and len(one.spelled[0]) <= LONGEST_CODE else ""
    if one.name == other.short:
        return BY_SHORT_NAME if code and one.name not in other.parts else BY_WORDS
    if code and code in other.initials:
        return BY_ABBREVIATION if len(code) >= SHORTEST_ABBREVIATION else BY_INITIALS
    return BY_SPELLING if len(code) >= SHORTEST_ABBREVIATION and _has_letters(code, "".join(other.spelled)) else 0.0


def _by_words(one: TeamName, other: TeamName) -> float:
    if len(one.parts) == len(other.parts) > 1 and (shortest := _abbreviates(one, other)):
        return BY_ABBREVIATION if shortest >= SHORTEST_ABBREVIATION else BY_INITIALS
    if _has_initials(one, other) or _has_initials(other, one):
        return BY_ABBREVIATION
    if one.words == other.words:  # in another order
        return BY_ABBREVIATION
    if one.words <= other.words or other.words <= one.words:
        return BY_WORDS
    if one.short and one.short == other.short and (one.words & other.words or one.name[:3] == other.name[:3]):
        return BY_WORDS
    is_long = min(len(one.name), len(other.name)) >= SHORTEST_BY_SPELLING
    return BY_SPELLING if is_long and fuzz.ratio(one.name, other.name) >= SPELLING_PERCENT else 0.0


def _abbreviates(one: TeamName, other: TeamName) -> int:
    """Returns the length of the shortest abbreviation, if each word equals or abbreviates its counterpart; else 0."""
    shortest = 0
    for own, their, same in zip(one.spelled, other.spelled, map(str.__eq__, one.parts, other.parts), strict=True):
        short, long = sorted((own, their), key=len)
        if not (same or long.startswith(short) or _is_contraction(short, long)):
            return 0
        if not same:
            shortest = min(shortest or len(short), len(short))
    return shortest


def _is_contraction(short: str, long: str) -> bool:
    is_short = SHORTEST_ABBREVIATION <= len(short) <= LONGEST_CONTRACTION * len(long)
    return is_short and short[-1] == long[-1] and _has_letters(short, long)


def _has_letters(short: str, long: str) -> bool:
    """Returns whether the letters of the short word are in the long one, in their order, from its first on."""
    letters = iter(long)
    return short[0] == long[0] and all(letter in letters for letter in short)


def _has_initials(one: TeamName, other: TeamName) -> bool:
    """Returns whether its last or first word has the initials of the other: Gimnasia LP, SJ Earthquakes."""
    same = len(one.parts) - 1
    if not 0 < same < len(other.parts) - 1:
        return False
    last, first = (_initials(words) for words in (other.spelled[same:], other.spelled[:-same]))
    is_last = one.parts[:same] == other.parts[:same] and one.spelled[same] == last
    return is_last or (one.parts[1:] == other.parts[-same:] and one.spelled[0] == first)


def _initials(words: tuple[str, ...]) -> str:
    return "".join(word[0] for word in words)
