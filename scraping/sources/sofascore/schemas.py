"""Schemas of Sofascore's responses: the fields that we rely on."""

# ruff: noqa: N815 - fields are named as the source names them

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from scraping.sources.parsing import Response, validated

EVENT = "sofascore.event.v1"
INCIDENTS = "sofascore.incidents.v1"
LINEUPS = "sofascore.lineups.v1"
STATISTICS = "sofascore.statistics.v1"
INNINGS = "sofascore.innings.v1"
LIST = "sofascore.list.v1"

Named = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Status(Response):
    type: Named
    code: int
    description: str | None = None


class Team(Response):
    name: Named
    id: int | None = None
    nameCode: str | None = None
    shortName: str | None = None


class FootballScore(Response):
    """Empty before kick-off, and again when a match is put off or called off."""

    current: int | None = None
    display: int | None = None
    period1: int | None = None
    period2: int | None = None
    normaltime: int | None = None
    extra1: int | None = None
    extra2: int | None = None
    overtime: int | None = None
    penalties: int | None = None


class Inning(Response):
    score: int
    wickets: int
    overs: float
    targetRunRate: float | None = None


class CricketScore(Response):
    """`current` is the sum of the side's innings; without any there is no `innings`."""

    current: int | None = None
    display: int | None = None
    innings: dict[Named, Inning] = Field(default_factory=dict)


class _Event(Response):
    id: int
    status: Status
    homeTeam: Team
    awayTeam: Team
    startTimestamp: int | None = None
    winnerCode: int | None = None


class FootballEvent(_Event):
    homeScore: FootballScore
    awayScore: FootballScore


class CricketEvent(_Event):
    homeScore: CricketScore
    awayScore: CricketScore
    tossWin: str | None = None
    tossDecision: str | None = None
    note: str | None = None


class FootballEventResponse(Response):
    event: FootballEvent


class CricketEventResponse(Response):
    event: CricketEvent


class Person(Response):
    name: str | None = None
    shortName: str | None = None
    id: int | None = None


class Incident(Response):
    """Football. Periods and added time have no id; a substitution has no `player`."""

    incidentType: Named
    id: int | None = None
    incidentClass: str | None = None
    time: int | None = None
    addedTime: int | None = None
    isHome: bool | None = None
    isLive: bool | None = None
    homeScore: int | None = None
    awayScore: int | None = None
    length: int | None = None
    text: str | None = None
    sequence: int | None = None
    rescinded: bool | None = None
    player: Person | None = None
    playerIn: Person | None = None
    playerOut: Person | None = None
    assist1: Person | None = None
    playerName: str | None = None


class IncidentsResponse(Response):
    incidents: list[Incident]


class Delivery(Response):
    """Cricket. `over` counts from 1, so over 39 ball 5 is 38.5; `number` counts the deliveries of an innings."""

    incidentType: Named
    id: int | None = None
    inningNumber: int | None = None
    over: int | None = None
    ball: int | None = None
    number: int | None = None
    runs: int | None = None
    totalRuns: int | None = None
    score: str | None = None
    wicket: bool | None = None
    bowlDetail: str | None = None
    incidentClass: str | None = None
    incidentClassLabel: str | None = None
    battingTeamId: int | None = None
    commentary: str | None = None
    batsman: Person | None = None
    bowler: Person | None = None
    dismissedBatsman: Person | None = None


class DeliveriesResponse(Response):
    incidents: list[Delivery]


class BattingLine(Response):
    player: Person | None = None
    playerName: str | None = None
    score: int | None = None
    balls: int | None = None
    s4: int | None = None
    s6: int | None = None
    wicketTypeName: str | None = None
    wicketBowlerName: str | None = None
    wicketCatchName: str | None = None


class BowlingLine(Response):
    player: Person | None = None
    playerName: str | None = None
    over: float | None = None
    maiden: int | None = None
    run: int | None = None
    wicket: int | None = None


class InningsRow(Response):
    number: int
    battingTeam: Team
    score: int
    wickets: int
    overs: float
    battingLine: list[BattingLine] = Field(default_factory=list)
    bowlingLine: list[BowlingLine] = Field(default_factory=list)


class InningsResponse(Response):
    innings: list[InningsRow]


class PlayerStatistics(Response):
    rating: float | None = None
    minutesPlayed: int | None = None
    goals: int | None = None
    goalAssist: int | None = None


class LineupPerson(Response):
    id: int
    name: Named


class LineupRow(Response):
    player: LineupPerson
    substitute: bool
    teamId: int | None = None
    position: str | None = None
    jerseyNumber: str | int | None = None
    shirtNumber: int | str | None = None
    captain: bool | None = None
    statistics: PlayerStatistics | None = None


class MissingRow(Response):
    player: LineupPerson
    type: str | None = None


class LineupSide(Response):
    players: list[LineupRow]
    formation: str | None = None
    missingPlayers: list[MissingRow] = Field(default_factory=list)


class LineupsResponse(Response):
    confirmed: bool
    home: LineupSide
    away: LineupSide


class StatisticsItem(Response):
    name: Named
    key: str | None = None
    homeValue: float | None = None
    awayValue: float | None = None


class StatisticsGroup(Response):
    groupName: str
    statisticsItems: list[StatisticsItem]


class StatisticsPeriod(Response):
    period: Named
    groups: list[StatisticsGroup]


class StatisticsResponse(Response):
    statistics: list[StatisticsPeriod]


class ListResponse(Response):
    """A list whose rows are validated one by one: an invalid row must not hide the others."""

    events: list[Any]


class TournamentsResponse(Response):
    """One page of the tournaments that play on a day."""

    scheduled: list[Any]
    hasNextPage: bool = False


FAMILIES: Mapping[str, tuple[type[Response], ...]] = {
    EVENT: (FootballEventResponse, CricketEventResponse),
    INCIDENTS: (IncidentsResponse, DeliveriesResponse),
    LINEUPS: (LineupsResponse,),
    STATISTICS: (StatisticsResponse,),
    INNINGS: (InningsResponse,),
    LIST: (ListResponse, TournamentsResponse),
}


def listed(data: Any, *, url: str = "") -> list[Mapping[str, Any]]:
    """Returns the rows of a list of events."""
    response = validated(ListResponse, data, schema=LIST, url=url)
    return [row for row in response.events if isinstance(row, dict)]
