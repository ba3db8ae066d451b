"""Teams, players and fixture of a recorded match, with the short names and site keys that a recording lacks."""

from __future__ import annotations

import zlib

from stadium.cricket.script import Dismissal, Fixture, Wicket
from stadium.cricsheet.document import CricsheetError, Delivery, Document, Out
from stadium.matches.ids import base36
from stadium.matches.teams import Player, Team, ordinal

FORMATS = {"Test": "TEST", "MDM": "FC", "ODI": "ODI", "ODM": "ODM", "T20": "T20", "IT20": "T20"}
EXTRAS = {"noballs": "nb", "wides": "wd", "byes": "b", "legbyes": "lb", "penalty": "pen"}  # most significant first
KINDS = {
    "bowled": Dismissal.BOWLED,
    "caught": Dismissal.CAUGHT,
    "caught and bowled": Dismissal.CAUGHT_AND_BOWLED,
    "run out": Dismissal.RUN_OUT,
    "stumped": Dismissal.STUMPED,
    "hit wicket": Dismissal.HIT_WICKET,
    "lbw": Dismissal.LBW,
    "retired out": Dismissal.RETIRED_OUT,
    "obstructing the field": Dismissal.OBSTRUCTING,
    "handled the ball": Dismissal.HANDLED_BALL,
    "hit the ball twice": Dismissal.HIT_TWICE,
    "timed out": Dismissal.TIMED_OUT,
    "retired hurt": Dismissal.RETIRED_HURT,
    "retired not out": Dismissal.RETIRED_NOT_OUT,
}
ELEVEN = 11
_TEAM_KEYS = range(1_300, 36**3)  # those that the generated teams leave free, up to three characters
_PLAYER_KEYS = range(10_000, 36**3)
_PLAYER_NUMBERS = 200_000
_MAX_SHORT_NAME = 4


class KeyRegistry:
    """Assigns each team and player a unique key, the same in every match of a programme."""

    def __init__(self) -> None:
        self._teams: dict[int, str] = {}
        self._players: dict[int, str] = {}

    def player(self, name: str, identity: str) -> Player:
        value = _assign(self._players, _PLAYER_KEYS, identity)
        return Player(base36(value), _PLAYER_NUMBERS + value, name)

    def team(self, name: str, gender: str, short: str, players: tuple[Player, ...]) -> Team:
        value = _assign(self._teams, _TEAM_KEYS, f"{name}:{gender}")
        return Team(value, base36(value), name, short, players)


def _assign(taken: dict[int, str], values: range, identity: str) -> int:
    """Returns a number derived from the identity, or the next one that is not taken."""
    place = zlib.crc32(identity.encode()) % len(values)
    while taken.setdefault(values[place], identity) != identity:
        place = (place + 1) % len(values)
    return values[place]


class RecordedTeams:
    """Converts the names in a recording to teams, players, extras and wickets."""

    def __init__(self, document: Document, registry: KeyRegistry) -> None:
        self._document, self._info, self._registry = document, document.info, registry
        self.invented: list[str] = []
        first, second = self._info.teams
        shorts = dict(zip((first, second), short_names(first, second), strict=True))
        self.by_name: dict[str, Team] = {
            name: registry.team(name, self._info.gender, shorts[name], self._squad(name)) for name in self._info.teams
        }
        opening = document.innings[0].team if document.innings else first
        self.order = self.sides(opening)

    def sides(self, batting: str) -> tuple[Team, Team]:
        other = next(name for name in self._info.teams if name != batting)
        return self.by_name[batting], self.by_name[other]

    def player(self, name: str) -> Player:
        return self._registry.player(name, self._info.registry.people.get(name, f"{self._info.gender}:{name}"))

    def _squad(self, team: str) -> tuple[Player, ...]:
        """The listed players of the team, and all others that bat or bowl for it."""
        names = dict.fromkeys(self._info.players.get(team, ()))
        for innings in self._document.innings:
            for ball in innings.deliveries:
                batted = (ball.batter, ball.non_striker) if innings.team == team else (ball.bowler,)
                names |= dict.fromkeys(batted)
        if not names:
            names = dict.fromkeys(f"{team} Player {number}" for number in range(1, ELEVEN + 1))
            self.invented.append(f"the players of {team}")
        return tuple(self.player(name) for name in names)

    @property
    def format(self) -> str:
        return FORMATS.get(self._info.match_type, self._info.match_type)

    def extras(self, delivery: Delivery) -> tuple[tuple[str, int], ...]:
        given = {str(name): runs for name, runs in delivery.extras.items()}
        return tuple((code, given[name]) for name, code in EXTRAS.items() if given.get(name))

    def wickets(self, delivery: Delivery) -> tuple[Wicket, ...]:
        return tuple(self._wicket(out) for out in delivery.wickets)

    def _wicket(self, out: Out) -> Wicket:
        if out.kind not in KINDS:
            raise CricsheetError(f"unknown dismissal {out.kind!r}; known are {', '.join(KINDS)}")
        named = [fielder.name for fielder in out.fielders if fielder.name]
        return Wicket(KINDS[out.kind], self.player(out.player_out), self.player(named[0]) if named else None)

    def fixture(self, invented: tuple[str, ...]) -> Fixture:
        info = self._info
        venue = info.venue if not info.city or info.city in info.venue else f"{info.venue}, {info.city}"
        series = info.event.name or f"{' v '.join(info.teams)} {info.dates[0][:4]}"
        return Fixture(venue or "Unknown ground", series, short_name(series), self._title(), invented)

    def _title(self) -> str:
        event = self._info.event
        if event.stage:
            return str(event.stage)
        return f"{ordinal(event.match_number)} Match" if isinstance(event.match_number, int) else "Only Match"


def short_name(name: str) -> str:
    """`Sri Lanka` is SL, `India` is IND, `Chennai Super Kings` is CSK."""
    parts = "".join(char if char.isalnum() else " " for char in name).split()
    if len(parts) == 1:
        return parts[0][:3].upper()
    return "".join(part if part.isupper() and len(part) == 2 else part[0] for part in parts).upper()[:_MAX_SHORT_NAME]


def short_names(first: str, second: str) -> tuple[str, str]:
    """Returns different short names for the two sides of a match."""
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
