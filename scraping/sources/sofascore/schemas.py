"""Schemas of Sofascore's responses: the fields that we rely on.

`Brief` takes any event, as a list has it: a missing or odd field is empty. Its subclasses are strict where a match
could not be read without the field, and as lenient elsewhere.
"""

# ruff: noqa: N815 - fields are named as the source names them

from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from scraping.sources import parsing
from scraping.sources.parsing import Response, nested

EVENT, INCIDENTS, LINEUPS = "sofascore.event.v1", "sofascore.incidents.v1", "sofascore.lineups.v1"
INNINGS, LIST = "sofascore.innings.v1", "sofascore.list.v1"

T = TypeVar("T")
Named = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Label = Annotated[str, BeforeValidator(parsing.text)]  # any value as text
Whole = Annotated[int | None, BeforeValidator(parsing.integer)]
Runs = Annotated[int, Field(ge=-1000, le=1000)]
DECLARED = ("inningDeclare", "isInningDeclare", "declared", "isDeclared")  # 1 in the event, true in the innings list


def _as_number(value: Any) -> Any:
    number = parsing.integer(value)
    return value if number is None else number


Number = Annotated[int | None, BeforeValidator(_as_number)]
Required = Annotated[int, BeforeValidator(_as_number)]
Present = Annotated[T, BeforeValidator(lambda value: {} if value is None else value)]  # null as an empty object
Loose = Annotated[T, BeforeValidator(parsing.mapping)]  # any value as an object


class BriefStatus(Response):
    type: Label = ""
    code: Whole = None
    description: Label = ""


class Status(BriefStatus):
    type: Named


class BriefTeam(Response):
    name: Label = ""
    id: Whole = None
    nameCode: Label = ""
    shortName: Label = ""
    sport: Label = nested("sport", "slug", default="")
    national: Any = None


class Team(BriefTeam):
    name: Named


class Brief(Response):
    id: Whole = None
    slug: Label = ""
    customId: Label = ""
    status: Loose[BriefStatus] = BriefStatus()
    homeTeam: Loose[BriefTeam] = BriefTeam()
    awayTeam: Loose[BriefTeam] = BriefTeam()
    startTimestamp: Whole = None
    tour: Label = nested("tournament", "name", default="")
    league: Label = nested("tournament", "uniqueTournament", "name", default="")
    league_id: Whole = nested("tournament", "uniqueTournament", "id")
    sport: Label = nested("tournament", "category", "sport", "slug", default="")
    season_year: Label = nested("season", "year", default="")
    season_name: Label = nested("season", "name", default="")
    season_id: Whole = nested("season", "id")
    round: Whole = nested("roundInfo", "round")
    round_name: Label = nested("roundInfo", "name", default="")
    referee: Label = nested("referee", "name", default="")
    venue: Label = nested("venue", "name", default="")
    stadium: Label = nested("venue", "stadium", "name", default="")
    city: Label = nested("venue", "city", "name", default="")


class Event(Brief):
    id: int
    status: Status
    homeTeam: Team
    awayTeam: Team
    winnerCode: Whole = None


class FootballScore(Response):
    """Empty before kick-off, and again when a match is put off or called off."""

    model_config = ConfigDict(extra="allow")  # a score that has only unknown fields is no empty one

    current: Number = None
    display: Number = None
    period1: Number = None
    period2: Number = None
    normaltime: Number = None
    extra1: Number = None
    extra2: Number = None
    penalties: Number = None


class FootballEvent(Event):
    homeScore: Present[FootballScore]
    awayScore: Present[FootballScore]
    period_began: Whole = nested("time", "currentPeriodStartTimestamp")
    period_initial: Whole = nested("time", "initial")
    period_max: Whole = nested("time", "max")


class Declarable(Response):
    is_declared: bool = False

    @model_validator(mode="before")
    @classmethod
    def _read_mark(cls, data: Any) -> Any:
        marks = [data.get(name) for name in DECLARED] if isinstance(data, dict) else []
        is_declared = any(str(mark).strip().lower() in ("true", "1") for mark in marks)
        return {**data, "is_declared": True} if is_declared else data


class Inning(Declarable):
    score: Required
    wickets: Required
    overs: float
    targetRunRate: float | None = None


def _begun(innings: Any) -> Any:
    """Returns the innings of a side without those that are null: they have not begun."""
    return {name: one for name, one in innings.items() if one is not None} if isinstance(innings, dict) else innings


class CricketScore(Response):
    innings: Present[Annotated[dict[Named, Inning], BeforeValidator(_begun)]] = Field(default_factory=dict)


class CricketEvent(Event):
    homeScore: Present[CricketScore]
    awayScore: Present[CricketScore]
    tossWin: str | None = None
    tossDecision: str | None = None
    note: str | None = None


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
    confirmed: bool | None = None  # of a video review: False where the decision on the pitch was overturned
    reason: Label = ""
    player: Person | None = None
    playerIn: Person | None = None
    playerOut: Person | None = None
    assist1: Person | None = None
    playerName: str | None = None


class Delivery(Response):
    """Cricket. `over` counts from 1, so over 39 ball 5 is 38.5; `number` counts the deliveries of an innings."""

    incidentType: Named
    id: int | None = None
    inningNumber: Annotated[int, Field(ge=0, le=99)] | None = None
    over: Annotated[int, Field(ge=0, le=999)] | None = None
    ball: Annotated[int, Field(ge=0, le=99)] | None = None
    number: int | None = None
    runs: Runs | None = None
    totalRuns: Runs | None = None
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


class FigureLine(Response):
    player: Person | None = None
    playerName: str | None = None


class BattingLine(FigureLine):
    score: int | None = None
    balls: int | None = None
    s4: int | None = None
    s6: int | None = None
    wicketTypeName: str | None = None
    fowOver: float | None = None  # at the fall of the wicket


class BowlingLine(FigureLine):
    over: float | None = None
    maiden: int | None = None
    run: int | None = None
    wicket: int | None = None


class InningsRow(Declarable):
    number: int
    battingTeam: BriefTeam
    battingLine: list[BattingLine] = Field(default_factory=list)
    bowlingLine: list[BowlingLine] = Field(default_factory=list)


class LineupRow(Response):
    player_id: int = nested("player", "id", default=...)
    name: Named = nested("player", "name", default=...)
    substitute: bool
    teamId: int | None = None
    position: str | None = None
    jerseyNumber: str | int | None = None
    shirtNumber: int | str | None = None
    captain: bool | None = None
    rating: Annotated[float, Field(ge=0, le=10)] | None = nested("statistics", "rating")
    minutes: Annotated[int, Field(ge=0, le=200)] | None = nested("statistics", "minutesPlayed")
    goals: int | None = nested("statistics", "goals")
    assists: int | None = nested("statistics", "goalAssist")


class LineupSide(Response):
    players: list[LineupRow]
    formation: str | None = None


class LineupsResponse(Response):
    confirmed: bool | None = None
    home: LineupSide | None = None
    away: LineupSide | None = None


class TournamentRow(Response):
    id: Whole = nested("tournament", "uniqueTournament", "id")  # only tournaments with lists of their own have one


class TournamentsResponse(Response):
    scheduled: list[Loose[TournamentRow]]
    hasNextPage: bool = False
