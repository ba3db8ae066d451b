"""Names and keys that a recording does not have: short names of teams, and the sites' keys for teams and players."""

from __future__ import annotations

import zlib

from stadium.keys import base36
from stadium.people import Player, Team

_TEAM_KEYS = range(1_300, 36**3)  # what the generated teams leave free, up to three characters
_PLAYER_KEYS = range(10_000, 36**3)
_PLAYER_NUMBERS = 200_000
_LONGEST = 4


def short_name(name: str) -> str:
    """`Sri Lanka` is SL, `India` is IND, `Chennai Super Kings` is CSK."""
    words = [word for word in "".join(char if char.isalnum() else " " for char in name).split() if word]
    if len(words) == 1:
        return words[0][:3].upper()
    return "".join(word if word.isupper() and len(word) == 2 else word[0] for word in words).upper()[:_LONGEST]


def short_names(first: str, second: str) -> tuple[str, str]:
    """Of the two sides of a match; never the same."""
    one, two = short_name(first), short_name(second)
    if one != two:
        return one, two
    for length in range(3, max(len(first), len(second)) + 1):
        one, two = (_letters(name)[:length] for name in (first, second))
        if one != two:
            return one, two
    return f"{short_name(first)}1", f"{short_name(second)}2"


def _letters(name: str) -> str:
    return "".join(char for char in name if char.isalnum()).upper()


class Roster:
    """Gives everybody a key of his own, the same in every match of a programme."""

    def __init__(self) -> None:
        self._teams: dict[int, str] = {}
        self._people: dict[int, str] = {}

    def player(self, name: str, identity: str) -> Player:
        value = _claim(self._people, _PLAYER_KEYS, identity)
        return Player(base36(value), _PLAYER_NUMBERS + value, name)

    def team(self, name: str, gender: str, short: str, players: tuple[Player, ...]) -> Team:
        value = _claim(self._teams, _TEAM_KEYS, f"{name}:{gender}")
        return Team(value, base36(value), name, short, players)


def _claim(taken: dict[int, str], values: range, identity: str) -> int:
    """A number by the identity alone, or the next free one if somebody else has it."""
    place = zlib.crc32(identity.encode()) % len(values)
    while taken.setdefault(values[place], identity) != identity:
        place = (place + 1) % len(values)
    return values[place]
