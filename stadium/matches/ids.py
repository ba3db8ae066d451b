"""Match ids of the sites, each derived from the match's number in the programme and convertible back to it.

Any process finds a match from its id alone, without a table that has to survive a restart. The number is scrambled by
a multiplication modulo a prime, because the ids of real sites are not consecutive either.
"""

from __future__ import annotations

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWEST = 36**3
_PRIME = 1_632_949  # the largest prime below 36**4 - 36**3, so that every key has four characters
_FACTOR = 700_703
_INVERSE = pow(_FACTOR, -1, _PRIME)
SOFASCORE_SITES = ("sofascore", "sofascorecricket")
_FIRST_EVENT_ID = 15_000_000
_FIRST_IDS = dict.fromkeys(SOFASCORE_SITES, _FIRST_EVENT_ID) | dict.fromkeys(
    ("espncricinfo", "espn", "espnsoccer"), 1_200_000
)  # by site; the others have keys of four characters


def base36(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
    return text or "0"


def scramble(number: int) -> int:
    return (number * _FACTOR + 4_211) % _PRIME


def unscramble(number: int) -> int:
    return (number - 4_211) * _INVERSE % _PRIME


def key_at(site: str, number: int) -> str:
    """Returns the id of a match at a site."""
    first = _FIRST_IDS.get(site)
    return base36(_LOWEST + scramble(number)) if first is None else str(first + scramble(number))


def number_of_key(site: str, key: str) -> int | None:
    """Returns the match number of a site's key, or None if the key is not valid. Keys are case sensitive."""
    first = _FIRST_IDS.get(site)
    if first is None:
        is_valid = len(key) == 4 and all(char in DIGITS for char in key)
    else:
        is_valid = key.isascii() and key.isdigit()
    value = int(key, 36 if first is None else 10) - (first or _LOWEST) if is_valid else -1
    return unscramble(value) if 0 <= value < _PRIME else None


def event_id(number: int) -> int:
    """Returns the id of a match at Sofascore."""
    return _FIRST_EVENT_ID + scramble(number)


def custom_id(number: int) -> str:
    rest, text = event_id(number) * 131, ""
    while rest:
        rest, digit = divmod(rest, len(LETTERS))
        text += LETTERS[digit]
    return text


def number_of_custom_id(text: str) -> int | None:
    value = 0
    for char in reversed(text):
        if char not in LETTERS:
            return None
        value = value * len(LETTERS) + LETTERS.index(char)
    return number_of_key("sofascore", str(value // 131)) if value % 131 == 0 else None
