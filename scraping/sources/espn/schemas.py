"""Schemas of ESPN's cricket responses: the fields that we rely on."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from scraping.sources.parsing import Response, nested

SUMMARY, PLAYS, ROSTERS = "espn.summary.v1", "espn.plays.v1", "espn.rosters.v1"
# Neither they nor a row of them can be left out of a summary; rows of linescores are checked by summary.innings_of.
ROSTERS_NEED = frozenset({"competitions", "competitors"})
_IN_LINESCORES = ("period", "isBatting", "runs", "wickets", "overs")
SUMMARY_NEEDS = ROSTERS_NEED | {"status", *(f"linescores.{name}" for name in _IN_LINESCORES)}
Overs = Annotated[float, Field(ge=0, le=999)]  # in cricket's notation: 14.4


def _number_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        value = value.get("displayValue")  # a score in some lists
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Label = Annotated[
    str, BeforeValidator(_number_as_text)
]  # an id, a score or a year, which some responses have as number


def is_true(flag: bool | str | None) -> bool:
    """Reads a flag: this API writes some as text."""
    return flag is True or (isinstance(flag, str) and flag.strip().lower() == "true")


class MatchStatus(Response):
    state: str = nested("type", "state", default=...)  # pre, in, post
    name: str | None = nested("type", "name")
    description: str | None = nested("type", "description")  # "Result", "Stumps", "Match delayed by rain"
    detail: str | None = nested("type", "detail")
    completed: bool | str | None = nested("type", "completed")
    summary: str | None = None  # the sentence under the score, and in the end the result


class Fall(Response):
    number: int = Field(alias="wicketNumber")
    player: str = nested("athlete", "displayName", default=...)
    manner: str | None = nested("outDetails", "shortText")


class Linescore(Response):
    """The score of one innings. Each side has one for EVERY innings; only those with `isBatting` are its own."""

    period: int
    is_batting: bool = Field(alias="isBatting")
    runs: int | None = None
    wickets: int | None = None
    overs: Overs | None = None
    description: str | None = None  # "all out", "declared"
    score: str | None = None  # "421/5d"
    target: Annotated[int, Field(ge=0, le=4000)] | None = None
    falls: list[Fall] | None = Field(default=None, alias="fow")


class TeamName(Response):
    id: Label
    display_name: str = Field(alias="displayName", min_length=1)
    abbreviation: str | None = None


class Contender(Response):
    home_away: str | None = Field(default=None, alias="homeAway")
    team: TeamName
    score: Label | None = None  # cricket: "150 & 130 (50.3 ov)"; football: "2", and "0" before the start


class Competitor(Contender):
    linescores: list[Linescore] | None = None


class Note(Response):
    type: str | None = None
    text: str | None = None


class Competition(Response):
    date: str | None = None
    status: MatchStatus
    competitors: Annotated[list[Competitor], Field(min_length=2, max_length=2)]
    event_type: str | None = nested("class", "eventType")
    general_class_card: str | None = nested("class", "generalClassCard")
    limited_overs: bool | str | None = Field(default=None, alias="limitedOvers")
    description: str | None = None
    note: str | None = None
    venue: str | None = nested("venue", "fullName")
    notes: list[Note] | None = None


class League(Response):
    name: str | None = None


class Header(Response):
    id: Label
    competitions: Annotated[list[Competition], Field(min_length=1)]
    league: League | None = None
    leagues: list[League] | None = None


class Summary(Response):
    header: Header
    venue: str | None = nested("gameInfo", "venue", "fullName")
    notes: list[Note] | None = None
    leagues: list[League] | None = None


class RosterEntry(Response):
    starter: bool | str | None = None
    captain: bool | str | None = None
    player_id: Annotated[Label, Field(min_length=1)] = nested("athlete", "id", default=...)
    name: Annotated[str, Field(min_length=1)] = nested("athlete", "displayName", default=...)
    position_code: str | None = nested("position", "abbreviation")
    position: str | None = nested("position", "name")
    jersey: Label | None = None


class Roster(Response):
    team_id: Label = nested("team", "id", default=...)
    roster: list[RosterEntry] | None = None


class RosterCompetition(Response):
    date: str | None = None
    competitors: Annotated[list[Contender], Field(min_length=2, max_length=2)]


class RosterHeader(Response):
    id: Label
    competitions: Annotated[list[RosterCompetition], Field(min_length=1)]


class Rosters(Response):
    """Validated apart from the score, so that neither affects the other."""

    header: RosterHeader
    rosters: list[Roster] | None = None


class Over(Response):
    number: int = Field(ge=1, le=999)  # from 1
    ball: int
    overs: Overs | None = None  # 0.1; repeats on wides and no-balls
    actual: Overs | None = None
    unique: Overs | None = None  # 0.01; every delivery has its own
    wide: int | None = None
    no_ball: int | None = Field(default=None, alias="noBall")


class Dismissal(Response):
    dismissal: bool | None = None
    type: str | None = None
    text: str | None = None
    retired_text: str | None = Field(default=None, alias="retiredText")
    batsman: str | None = nested("batsman", "athlete", "displayName")
    batsman_name: str | None = nested("batsman", "athlete", "name")
    batsman_short: str | None = nested("batsman", "athlete", "shortName")
    batsman_full: str | None = nested("batsman", "athlete", "fullName")


class Play(Response):
    id: Annotated[Label, Field(min_length=1)]
    period: int = Field(ge=1, le=99)
    sequence: int | None = None  # innings, over and place in it: 100206 is the sixth delivery of over 3
    type: str = nested("playType", "description", default="")  # run, four, six, wide, no ball, leg bye, out
    score_value: int = Field(alias="scoreValue", ge=-1000, le=1000)
    short_text: str | None = Field(default=None, alias="shortText")
    text: str | None = None
    batting_team_id: Label | None = nested("team", "id")
    over: Over
    innings_runs: int | None = nested("innings", "runs")  # after the delivery
    innings_wickets: int | None = nested("innings", "wickets")
    dismissal: Dismissal | None = None
    batsman: str | None = nested("batsman", "athlete", "displayName")
    bowler: str | None = nested("bowler", "athlete", "displayName")
    bbb_timestamp: int | None = Field(default=None, alias="bbbTimestamp")  # milliseconds; 0: not known


class Plays(Response):
    count: int | None = Field(default=None, ge=0)  # items on all pages
    page_index: int | None = Field(default=None, ge=0, le=9_999, alias="pageIndex")
    page_count: int | None = Field(default=None, ge=0, le=9_999, alias="pageCount")
    items: list[Play]
    listed: int = 0  # items on this page, with those that are no delivery
