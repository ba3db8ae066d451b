"""Schemas of ESPN's football responses (espn.soccer.v1): the fields that we rely on, and the meaning of the status."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from scraping.errors import PayloadRejected
from scraping.payloads import Phase, Status
from scraping.sources.espn.schemas import TeamName
from scraping.sources.parsing import Response, note_unrecognized

SOCCER = "espn.soccer.v1"
_UPCOMING, _LIVE, _DONE = Status.UPCOMING, Status.LIVE, Status.COMPLETED
_BY_NAME = {
    "SCHEDULED": (_UPCOMING, Phase.SCHEDULED),
    "TBD": (_UPCOMING, Phase.SCHEDULED),
    "POSTPONED": (_UPCOMING, Phase.POSTPONED),  # its state is "post", and it is not completed
    "FIRST_HALF": (_LIVE, Phase.PLAY),
    "SECOND_HALF": (_LIVE, Phase.PLAY),
    "IN_PROGRESS": (_LIVE, Phase.PLAY),
    "HALFTIME": (_LIVE, Phase.HALFTIME),
    "END_PERIOD": (_LIVE, Phase.HALFTIME),
    "END_OF_REGULATION": (_LIVE, Phase.EXTRA_TIME),
    "OVERTIME": (_LIVE, Phase.EXTRA_TIME),
    "EXTRA_TIME": (_LIVE, Phase.EXTRA_TIME),
    "FIRST_HALF_EXTRA_TIME": (_LIVE, Phase.EXTRA_TIME),
    "SECOND_HALF_EXTRA_TIME": (_LIVE, Phase.EXTRA_TIME),
    "HALFTIME_ET": (_LIVE, Phase.EXTRA_TIME),
    "END_OF_EXTRATIME": (_LIVE, Phase.PENALTIES),
    "SHOOTOUT": (_LIVE, Phase.PENALTIES),
    "SUSPENDED": (_LIVE, Phase.INTERRUPTED),
    "DELAYED": (_LIVE, Phase.INTERRUPTED),
    "RAIN_DELAY": (_LIVE, Phase.INTERRUPTED),
    "FULL_TIME": (_DONE, Phase.FINISHED),
    "FINAL": (_DONE, Phase.FINISHED),
    "FINAL_AET": (_DONE, Phase.FINISHED),
    "FINAL_PEN": (_DONE, Phase.FINISHED),
    "FINAL_AGT": (_DONE, Phase.FINISHED),
    "FORFEIT": (_DONE, Phase.FINISHED),
    "CANCELED": (Status.ABANDONED, Phase.FINISHED),
    "ABANDONED": (Status.ABANDONED, Phase.FINISHED),
}
_ENDINGS = {"FINAL_AET": "AET", "FINAL_PEN": "AP"}
_CLOCK = re.compile(r"(\d{1,3})'?(?:\s*\+\s*(\d{1,2})'?)?", re.ASCII)


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
    """An event of the match. It has no id, and a card for the bench has no athlete."""

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


def status_and_phase(status: SoccerStatus) -> tuple[Status, Phase]:
    """Reads the name of the status; for an unknown one its state, or raises PayloadRejected."""
    name, state = _name(status), status.type.state
    if name in _BY_NAME:
        judged, phase = _BY_NAME[name]
        return (_UPCOMING, Phase.SCHEDULED) if phase is Phase.INTERRUPTED and state == "pre" else (judged, phase)
    note_unrecognized("status.type.name", status.type.name)
    if state == "pre":
        return _UPCOMING, Phase.SCHEDULED
    if state == "in":
        return _LIVE, Phase.PLAY
    if state == "post" and status.type.completed:
        return _DONE, Phase.FINISHED
    raise PayloadRejected(f"unknown status {status.type.name[:60]!r}, state {state[:20]!r}, and it is not completed")


def clock_text(status: SoccerStatus, judged: Status, phase: Phase) -> str:
    """Returns the minute being played ("37", "45+2"), HT, PEN, FT, AET or AP; empty where the source does not say."""
    if judged is _DONE:
        return _ENDINGS.get(_name(status), "FT")
    if judged is not _LIVE or phase is Phase.INTERRUPTED:
        return ""
    if phase is Phase.HALFTIME:
        return "HT"
    return "PEN" if phase is Phase.PENALTIES else minute_of(status.display_clock) or ""


def minute_of(text: str | None) -> str | None:
    """Reads "90'+8'" as 90+8."""
    found = _CLOCK.fullmatch((text or "").strip())
    if found is None:
        return None
    return f"{int(found[1])}+{int(found[2])}" if found[2] and int(found[2]) else str(int(found[1]))


def _name(status: SoccerStatus) -> str:
    return status.type.name.upper().removeprefix("STATUS_")
