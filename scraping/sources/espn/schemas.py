"""Schemas of ESPN's cricket responses: the fields that we rely on."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from scraping.sources import parsing
from scraping.sources.parsing import Response, nested

SUMMARY, PLAYS, ROSTERS = "espn.summary.v1", "espn.plays.v1", "espn.rosters.v1"
Overs = Annotated[float, Field(ge=0, le=999)]  # in cricket's notation: 14.4


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
    target: int | None = None
    falls: list[Fall] | None = Field(default=None, alias="fow")


class TeamName(Response):
    id: str
    display_name: str = Field(alias="displayName", min_length=1)
    abbreviation: str | None = None


class Contender(Response):
    """One side of a match, in cricket and football."""

    home_away: str = Field(alias="homeAway")
    team: TeamName
    score: str | None = None  # cricket: "150 & 130 (50.3 ov)"; football: "2", and "0" before the start


class Competitor(Contender):
    linescores: list[Linescore] | None = None


class Note(Response):
    type: str | None = None
    text: str | None = None


class Competition(Response):
    date: str
    status: MatchStatus
    competitors: Annotated[list[Competitor], Field(min_length=2, max_length=2)]
    event_type: str | None = nested("class", "eventType")
    general_class_card: str | None = nested("class", "generalClassCard")
    limited_overs: bool | str | None = Field(default=None, alias="limitedOvers")
    description: str | None = None
    note: str | None = None
    venue: str | None = nested("venue", "fullName")
    notes: list[Note] = Field(default_factory=list)


class League(Response):
    name: str | None = None


class Header(Response):
    id: str
    competitions: Annotated[list[Competition], Field(min_length=1)]
    league: League | None = None
    leagues: list[League] = Field(default_factory=list)


class Summary(Response):
    header: Header
    venue: str | None = nested("gameInfo", "venue", "fullName")
    notes: list[Note] = Field(default_factory=list)
    leagues: list[League] = Field(default_factory=list)


class RosterEntry(Response):
    starter: bool | str | None = None
    captain: bool | str | None = None
    player_id: str = nested("athlete", "id", default=...)
    name: Annotated[str, Field(min_length=1)] = nested("athlete", "displayName", default=...)
    position_code: str | None = nested("position", "abbreviation")
    position: str | None = nested("position", "name")
    jersey: str | None = None


class Roster(Response):
    team_id: str = nested("team", "id", default=...)
    roster: list[RosterEntry] = Field(default_factory=list)


class Rosters(Response):
    """Validated apart from the score, so that a changed roster does not affect the score."""

    header: Header
    rosters: list[Roster] = Field(default_factory=list)


class Over(Response):
    number: int = Field(ge=1, le=999)  # from 1
    ball: int
    overs: Overs | None = None  # 0.1; repeats on wides and no-balls
    actual: Overs | None = None
    unique: Overs | None = None  # 0.01; every delivery has its own
    wide: int = 0
    no_ball: int = Field(default=0, alias="noBall")


class Dismissal(Response):
    dismissal: bool = False
    type: str | None = None
    text: str | None = None
    retired_text: str | None = Field(default=None, alias="retiredText")
    batsman: str | None = nested("batsman", "athlete", "displayName")
    batsman_name: str | None = nested("batsman", "athlete", "name")
    batsman_short: str | None = nested("batsman", "athlete", "shortName")


class Play(Response):
    id: str = Field(min_length=1)
    period: int = Field(ge=1, le=99)
    sequence: int | None = None  # innings, over and place in it: 100206 is the sixth delivery of over 3
    type: str = nested("playType", "description", default=...)  # run, four, six, wide, no ball, leg bye, out
    score_value: int = Field(alias="scoreValue")
    short_text: str | None = Field(default=None, alias="shortText")
    text: str | None = None
    batting_team_id: str | None = nested("team", "id")
    over: Over
    innings_runs: int = nested("innings", "runs", default=...)  # after the delivery
    innings_wickets: int = nested("innings", "wickets", default=...)
    dismissal: Dismissal | None = None
    batsman: str | None = nested("batsman", "athlete", "displayName")
    bowler: str | None = nested("bowler", "athlete", "displayName")
    bbb_timestamp: int | None = Field(default=None, alias="bbbTimestamp")  # milliseconds; 0: not known


class Plays(Response):
    """One page of the list, oldest delivery first."""

    count: int = Field(ge=0)  # items on all pages
    page_index: int = Field(ge=0, le=9_999, alias="pageIndex")
    page_count: int = Field(ge=0, le=9_999, alias="pageCount")
    items: list[Play]
    listed: int = 0  # items on this page, with those that are no delivery

    @model_validator(mode="before")
    @classmethod
    def leave_out_commentary(cls, data: Any) -> Any:
        """Leaves out items without an over: these are commentary between the balls."""
        items = parsing.mapping(data).get("items")
        if not isinstance(items, list):
            return data
        balls = [item for item in items if not isinstance(item, dict) or item.get("over") is not None]
        return {**data, "items": balls, "listed": len(items)}
