"""The parts of ESPN's football answers that we rely on: espn.soccer.v1."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scraping.sources.espn.answers import TeamName
from scraping.sources.parsing import Response

SOCCER = "espn.soccer.v1"


class SoccerStatusType(Response):
    name: str  # STATUS_FULL_TIME
    state: str  # pre, in, post
    completed: bool
    detail: str | None = None


class SoccerStatus(Response):
    type: SoccerStatusType
    display_clock: str | None = Field(default=None, alias="displayClock")  # "90'+8'"
    period: int | None = None


class SoccerCompetitor(Response):
    home_away: str = Field(alias="homeAway")
    team: TeamName
    score: str | None = None  # a string; "0" before the start too
    shootout_score: int | str | None = Field(default=None, alias="shootoutScore")
    winner: bool | str | None = None


class DetailType(Response):
    id: str | None = None
    text: str  # "Goal - Header", "Yellow Card", "Penalty - Scored"


class DetailClock(Response):
    value: float | None = None
    display_value: str | None = Field(default=None, alias="displayValue")


class DetailTeam(Response):
    id: str


class Involved(Response):
    id: str | None = None
    display_name: str | None = Field(default=None, alias="displayName")


class Detail(Response):
    """Something that happened. It has no id of its own, and a card for the bench has nobody involved."""

    type: DetailType
    clock: DetailClock
    team: DetailTeam | None = None
    scoring_play: bool = Field(alias="scoringPlay")
    yellow_card: bool = Field(default=False, alias="yellowCard")
    red_card: bool = Field(default=False, alias="redCard")
    penalty_kick: bool = Field(default=False, alias="penaltyKick")
    own_goal: bool = Field(default=False, alias="ownGoal")
    shootout: bool = False
    athletes: list[Involved] = Field(default_factory=list, alias="athletesInvolved")


class Address(Response):
    city: str | None = None


class SoccerVenue(Response):
    full_name: str | None = Field(default=None, alias="fullName")
    address: Address | None = None


class SoccerCompetition(Response):
    date: str | None = None
    competitors: Annotated[list[SoccerCompetitor], Field(min_length=2, max_length=2)]
    details: list[Detail] | None = None
    venue: SoccerVenue | None = None
    status: SoccerStatus | None = None


class Season(Response):
    year: int | None = None


class SoccerEvent(Response):
    id: str
    date: str | None = None
    status: SoccerStatus | None = None  # a scoreboard repeats here what the competition says
    season: Season | None = None
    competitions: Annotated[list[SoccerCompetition], Field(min_length=1)]


class SoccerLeague(Response):
    name: str | None = None
    slug: str | None = None


class Scoreboard(Response):
    leagues: list[SoccerLeague] = Field(default_factory=list)
    events: list[SoccerEvent]


class SoccerHeader(SoccerEvent):
    league: SoccerLeague | None = None


class SoccerGameInfo(Response):
    venue: SoccerVenue | None = None


class SoccerSummary(Response):
    header: SoccerHeader
    game_info: SoccerGameInfo | None = Field(default=None, alias="gameInfo")
