"""Schemas of ESPNcricinfo's pages: the fields that we rely on.

Every object has two numbers: `objectId` is the public one, in addresses; `id` is the internal one, by which parts of a
page refer to each other (the winner of the toss, the bowler of a ball).

A field without a default is one without which its object says nothing: the object is left out, or the reading where
that is one of MATCH_NEEDS or INNINGS_NEED.
"""

from typing import Annotated, Generic, TypeVar

from pydantic import BeforeValidator, Field, StringConstraints

from scraping.sources import parsing
from scraping.sources.parsing import Response, nested

MATCH, SCORECARD, COMMENTARY = "espncricinfo.match.v1", "espncricinfo.scorecard.v1", "espncricinfo.commentary.v1"
LIST = "espncricinfo.list.v1"
MATCH_NEEDS = frozenset({"teams", "status", "isCancelled"})
INNINGS_NEED = frozenset({"innings", "superOverInnings", "isBatted"})

Overs = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]  # 14.4 is 14 overs and 4 balls
Count = Annotated[int, Field(ge=0, le=100_000)]
Number = Annotated[int, Field(ge=0, le=10**15)]


class TeamReference(Response):
    id: Number | None = None
    object_id: Number | None = Field(default=None, alias="objectId")


class Team(TeamReference):
    long_name: str = Field(alias="longName")
    abbreviation: str | None = None


class Side(Response):
    team: Team
    score: str | None = None  # "176/6"; "150" is all out; "421/5d & 130"
    score_info: str | None = Field(default=None, alias="scoreInfo")  # "20 ov, T:177", "14.4/20 ov"


class Series(Response):
    object_id: Number | None = Field(default=None, alias="objectId")
    slug: str | None = None
    name: str | None = None
    long_name: str | None = Field(default=None, alias="longName")


class Brief(Response):
    object_id: Number = Field(alias="objectId")
    slug: str | None = None
    title: str | None = None
    state: str  # PRE, LIVE, POST
    status: str | None = None
    status_text: str | None = Field(default=None, alias="statusText")
    status_english: str | None = Field(default=None, alias="statusEng")  # the pages in other languages have it too
    start_time: str | None = Field(default=None, alias="startTime")
    is_cancelled: bool | None = Field(default=None, alias="isCancelled")
    format: str | None = None
    is_super_over: bool | None = Field(default=None, alias="isSuperOver")
    series: Series = Series()
    teams: list[Side]


class Match(Brief):
    toss_winner_id: Number | None = Field(default=None, alias="tossWinnerTeamId")
    toss_choice: int | None = Field(default=None, alias="tossWinnerChoice")
    live_inning: Count | None = Field(default=None, alias="liveInning")
    ground: str | None = nested("ground", "name")
    town: str | None = nested("ground", "town", "name")


class Person(Response):
    id: Number
    object_id: Number = Field(alias="objectId")
    long_name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(alias="longName")
    playing_roles: list[str] | None = Field(default=None, alias="playingRoles")


class SquadPlayer(Response):
    player: Person
    role: str | None = Field(default=None, alias="playerRoleType")  # P, C, WK
    is_withdrawn: bool | None = Field(default=None, alias="isWithdrawn")
    note: str | None = None


class Squad(Response):
    type: str | None = None  # PLAYING
    team: TeamReference
    players: list[SquadPlayer] | None = None


class MatchPlayers(Response):
    squads: list[Squad] | None = Field(default=None, alias="teamPlayers")


class DismissalText(Response):
    short: str | None = None  # "caught", "retired hurt"
    long: str | None = None  # "c Gardner b Sutherland"
    commentary: str | None = None  # the same after the name


class Batsman(Response):
    player: Person
    runs: Count | None = None
    balls: Count | None = None
    fours: Count | None = None
    sixes: Count | None = None
    minutes: Count | None = None
    is_out: bool | None = Field(default=None, alias="isOut")
    dismissal: DismissalText | None = Field(default=None, alias="dismissalText")


class Bowler(Response):
    player: Person
    overs: Overs | None = None
    balls: Count | None = None
    maidens: Count | None = None
    conceded: Count | None = None
    wickets: Count | None = None
    wides: Count | None = None
    no_balls: Count | None = Field(default=None, alias="noballs")
    dots: Count | None = None


class CommentText(Response):
    html: str | None = None


class OverEnd(Response):
    is_complete: bool | None = Field(default=None, alias="isComplete")
    runs: Count | None = Field(default=None, alias="overRuns")
    total_runs: Count | None = Field(default=None, alias="totalRuns")
    total_wickets: Count | None = Field(default=None, alias="totalWickets")


class Ball(Response):
    """A delivery, in an over of an innings or in the commentary. `oversActual` repeats on wides, `id` never does."""

    id: Number
    inning: Count = Field(alias="inningNumber")
    over: Annotated[int, Field(ge=1, le=1000)] = Field(alias="overNumber")
    number: Count | None = Field(default=None, alias="ballNumber")  # its place in the over, wides and no-balls counted
    actual: Overs | None = Field(default=None, alias="oversActual")  # 0.4: three legal balls before it
    unique: Overs | None = Field(default=None, alias="oversUnique")  # 0.05: the over's fifth; 0.1: its tenth
    total: Count = Field(alias="totalRuns")
    is_wicket: bool = Field(alias="isWicket")
    wides: Count | None = None
    no_balls: Count | None = Field(default=None, alias="noballs")
    byes: Count | None = None
    leg_byes: Count | None = Field(default=None, alias="legbyes")
    penalties: Count | None = None
    timestamp: str | None = None
    batsman_id: Number | None = Field(default=None, alias="batsmanPlayerId")
    bowler_id: Number | None = Field(default=None, alias="bowlerPlayerId")
    out_id: Number | None = Field(default=None, alias="outPlayerId")
    inning_runs: Count | None = Field(default=None, alias="totalInningRuns")
    inning_wickets: Count | None = Field(default=None, alias="totalInningWickets")
    title: str | None = None  # from here on: only in the commentary
    texts: list[CommentText] | None = Field(default=None, alias="commentTextItems")
    dismissal: DismissalText | None = Field(default=None, alias="dismissalText")
    over_end: OverEnd | None = Field(default=None, alias="over")


class Fall(Response):
    player: Person = Field(alias="dismissalBatsman")
    number: Annotated[Count, BeforeValidator(parsing.integer)] = Field(alias="fowWicketNum")
    kind: int | None = Field(default=None, alias="fowType")  # 1: out


class Over(Response):
    balls: list[Ball] | None = None  # most overs of a page come without


class Inning(Response):
    number: Count = Field(alias="inningNumber")
    team: TeamReference
    is_batted: bool | None = Field(default=None, alias="isBatted")
    is_current: bool | None = Field(default=None, alias="isCurrent")
    runs: Count | None
    wickets: Count | None
    overs: Overs | None
    stated_per_over: Count | None = Field(default=None, alias="ballsPerOver")  # 5 in The Hundred
    target: Annotated[int, Field(ge=0, le=4000)] | None = None  # 0 in a first innings
    batsmen: list[Batsman] | None = Field(default=None, alias="inningBatsmen")
    bowlers: list[Bowler] | None = Field(default=None, alias="inningBowlers")
    over_list: list[Over] | None = Field(default=None, alias="inningOvers")
    falls: list[Fall] | None = Field(default=None, alias="inningFallOfWickets")

    @property
    def per_over(self) -> int:
        return self.stated_per_over or 6


class Innings(Response):
    """The innings of a page, played or not. None of them before the start."""

    innings: list[Inning] | None = None
    super_overs: list[Inning] | None = Field(default=None, alias="superOverInnings")


class Squads(Response):
    match_players: MatchPlayers | None = Field(default=None, alias="matchPlayers")


class Commentary(Response):
    """The commentary, newest first: the last balls on the live page, an innings on its commentary page."""

    recent: list[Ball] | None = nested("recentBallCommentary", "ballComments")
    comments: list[Ball] | None = None


ContentT = TypeVar("ContentT", bound=Response)


class Page(Response, Generic[ContentT]):
    """A page by one part of its content, so that a change of one part does not affect the others."""

    content: ContentT | None = None
