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
_FIRST_EVENT_ID = 15_000_000
_FIRST_OBJECT_ID = 1_200_000
OBJECT_ID_SITES = ("espncricinfo", "espn", "espnsoccer")
EVENT_ID_SITES = ("sofascore", "sofascorecricket")


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


def crex_key(number: int) -> str:
    return base36(_LOWEST + scramble(number))


def number_of_crex_key(key: str) -> int | None:
    """Returns the match number of a key, or None if the key is not valid. Keys are case sensitive."""
    if len(key) != 4 or any(char not in DIGITS for char in key):
        return None
    value = int(key, 36) - _LOWEST
    return unscramble(value) if 0 <= value < _PRIME else None


def event_id(number: int) -> int:
    return _FIRST_EVENT_ID + scramble(number)


def number_of_event_id(value: int) -> int | None:
    scrambled = value - _FIRST_EVENT_ID
    return unscramble(scrambled) if 0 <= scrambled < _PRIME else None


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
    return number_of_event_id(value // 131) if value % 131 == 0 else None


def object_id(number: int) -> int:
    """The id of a match at ESPN and ESPNcricinfo, which share their ids."""
    return _FIRST_OBJECT_ID + scramble(number)


def number_of_object_id(value: int) -> int | None:
    scrambled = value - _FIRST_OBJECT_ID
    return unscramble(scrambled) if 0 <= scrambled < _PRIME else None


def key_at(site: str, number: int) -> str:
    """Returns the id of a match at a site."""
    if site in EVENT_ID_SITES:
        return str(event_id(number))
    return str(object_id(number)) if site in OBJECT_ID_SITES else crex_key(number)


def number_of_key(site: str, key: str) -> int | None:
    """Returns the match number of a site's key, or None if the key is not valid."""
    if site not in EVENT_ID_SITES and site not in OBJECT_ID_SITES:
        return number_of_crex_key(key)
    if not (key.isascii() and key.isdigit()):
        return None
    return number_of_event_id(int(key)) if site in EVENT_ID_SITES else number_of_object_id(int(key))
