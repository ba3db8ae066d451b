"""Who plays in a recorded match, and for what."""

from __future__ import annotations

from stadium.cricket.script import Dismissal, Occasion, Wicket
from stadium.cricsheet.document import CricsheetError, Delivery, Document, Out
from stadium.cricsheet.names import Roster, short_name, short_names
from stadium.people import Player, Team

FORMATS = {"Test": "TEST", "MDM": "FC", "ODI": "ODI", "ODM": "ODM", "T20": "T20", "IT20": "T20"}
EXTRAS = {"noballs": "nb", "wides": "wd", "byes": "b", "legbyes": "lb", "penalty": "pen"}  # what tells most first
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


class Cast:
    def __init__(self, document: Document, roster: Roster) -> None:
        self._info, self._roster = document.info, roster
        self._document = document
        self.invented: list[str] = []
        first, second = self._info.teams
        shorts = dict(zip((first, second), short_names(first, second), strict=True))
        self.teams: dict[str, Team] = {
            name: roster.team(name, self._info.gender, shorts[name], self._squad(name)) for name in self._info.teams
        }
        opening = document.innings[0].team if document.innings else first
        self.order = self.sides(opening)

    def sides(self, batting: str) -> tuple[Team, Team]:
        other = next(name for name in self._info.teams if name != batting)
        return self.teams[batting], self.teams[other]

    def player(self, name: str) -> Player:
        return self._roster.player(name, self._info.registry.people.get(name, f"{self._info.gender}:{name}"))

    def _squad(self, team: str) -> tuple[Player, ...]:
        """Those the recording lists, and whoever else is seen playing for the side."""
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
            raise CricsheetError(f"no way of getting out is called {out.kind!r}; known are {', '.join(KINDS)}")
        named = [fielder.name for fielder in out.fielders if fielder.name]
        return Wicket(KINDS[out.kind], self.player(out.player_out), self.player(named[0]) if named else None)

    def occasion(self, invented: tuple[str, ...]) -> Occasion:
        info = self._info
        venue = info.venue if not info.city or info.city in info.venue else f"{info.venue}, {info.city}"
        series = info.event.name or f"{' v '.join(info.teams)} {info.dates[0][:4]}"
        return Occasion(venue or "Unknown ground", series, short_name(series), self._title(), invented)

    def _title(self) -> str:
        event = self._info.event
        if event.stage:
            return str(event.stage)
        return f"{ordinal(event.match_number)} Match" if isinstance(event.match_number, int) else "Only Match"


def ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
