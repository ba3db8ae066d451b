"""Schemas of ESPN's football responses (espn.soccer.v1): the fields that we rely on, and the meaning of the status."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from scraping.errors import PayloadRejected
from scraping.payloads import Phase, Status
from scraping.sources import parsing
from scraping.sources.espn.schemas import Contender, Label
from scraping.sources.parsing import Response, nested, note_unrecognized

SOCCER = "espn.soccer.v1"
SOCCER_NEEDS = frozenset({"competitions", "competitors", "competitors.score", "status"})
_AWARDED = ("FORFEIT", "WALKOVER", "AWARDED")  # may have no score, and may not be marked as completed
_STATUS_NAMES = {
    (Status.UPCOMING, Phase.SCHEDULED): ("SCHEDULED", "TBD"),
    (Status.UPCOMING, Phase.POSTPONED): ("POSTPONED",),  # its state is "post", and it is not completed
    (Status.LIVE, Phase.PLAY): ("FIRST_HALF", "SECOND_HALF", "IN_PROGRESS"),
    (Status.LIVE, Phase.HALFTIME): ("HALFTIME", "END_PERIOD"),
    (Status.LIVE, Phase.EXTRA_TIME): (
        "END_OF_REGULATION",
        "OVERTIME",
        "EXTRA_TIME",
        "FIRST_HALF_EXTRA_TIME",
        "SECOND_HALF_EXTRA_TIME",
        "HALFTIME_ET",
    ),
    (Status.LIVE, Phase.PENALTIES): ("END_OF_EXTRATIME", "SHOOTOUT"),
    (Status.LIVE, Phase.INTERRUPTED): ("SUSPENDED", "DELAYED", "RAIN_DELAY"),
    (Status.COMPLETED, Phase.FINISHED): ("FULL_TIME", "FINAL", "FINAL_AET", "FINAL_PEN", "FINAL_AGT", *_AWARDED),
    (Status.ABANDONED, Phase.FINISHED): ("CANCELED", "ABANDONED"),
}
_BY_NAME = {name: meaning for meaning, names in _STATUS_NAMES.items() for name in names}
_ENDINGS = {"FINAL_AET": "AET", "FINAL_PEN": "AP"}
_CLOCK = re.compile(r"(\d{1,3})'?(?:\s*\+\s*(\d{1,2})'?)?", re.ASCII)


class SoccerStatus(Response):
    stated_name: Annotated[str, BeforeValidator(parsing.text)] = nested("type", "name", default="")  # STATUS_FULL_TIME
    state: str = nested("type", "state", default=...)  # pre, in, post
    completed: bool | None = nested("type", "completed")
    detail: str | None = nested("type", "detail")
    display_clock: str | None = Field(default=None, alias="displayClock")  # "90'+8'"

    @property
    def name(self) -> str:
        return self.stated_name.upper().removeprefix("STATUS_")

    @property
    def is_walkover(self) -> bool:
        return self.name == "WALKOVER"

    @property
    def is_awarded(self) -> bool:
        return self.name in _AWARDED

    @property
    def ending(self) -> str:
        return _ENDINGS.get(self.name, "FT")


class SoccerCompetitor(Contender):
    shootout_score: int | str | None = Field(default=None, alias="shootoutScore")
    winner: bool | str | None = None


class Involved(Response):
    id: Label | None = None
    display_name: str | None = Field(default=None, alias="displayName")


class Participant(Response):
    athlete: Involved | None = None


def _type_text(value: Any) -> str:
    """Returns the text of a type; without one its name: "goal---free-kick" is "goal free kick"."""
    named = parsing.mapping(value)
    name = parsing.text(named.get("type"), 60).replace("-", " ")
    return parsing.plain(named.get("text"), 60) or " ".join(name.split())


class Detail(Response):
    """An event of the match. It has no id, and a card for the bench has no athlete.

    The scoreboard has the type, the flags and `athletesInvolved`. The header of a summary has the flags and
    `participants`; the key events of a summary have the type and `participants`, and other kinds of items too.
    """

    text: Annotated[str, BeforeValidator(_type_text)] = Field(default="", alias="type")  # "Goal - Header"
    clock: str | None = nested("clock", "displayValue")
    seconds: float | None = nested("clock", "value")
    team_id: Label | None = nested("team", "id")
    scoring_play: bool | None = Field(default=None, alias="scoringPlay")
    yellow_card: bool | None = Field(default=None, alias="yellowCard")
    red_card: bool | None = Field(default=None, alias="redCard")
    penalty_kick: bool | None = Field(default=None, alias="penaltyKick")
    own_goal: bool | None = Field(default=None, alias="ownGoal")
    shootout: bool | None = None
    involved: list[Involved] | None = Field(default=None, alias="athletesInvolved")
    participants: list[Participant] | None = None

    @model_validator(mode="after")
    def says_what_happened(self) -> Detail:
        if not self.text and self.scoring_play is None:
            raise ValueError("no type.text and no scoringPlay")
        return self

    @property
    def athletes(self) -> list[Involved]:
        return self.involved or [one.athlete for one in self.participants or () if one.athlete is not None]

    @property
    def at(self) -> tuple[int, int]:
        """Returns minute and added minutes; shoot-outs and events without a time come last."""
        found = _CLOCK.fullmatch((self.clock or "").strip())
        return (999, 0) if found is None or self.shootout else (int(found[1]), int(found[2] or 0))


EVENT_LISTS = ("details", "keyEvents")


class SoccerVenue(Response):
    full_name: str | None = Field(default=None, alias="fullName")
    city: str | None = nested("address", "city")


class SoccerCompetition(Response):
    date: str | None = None
    competitors: Annotated[list[SoccerCompetitor], Field(min_length=2, max_length=2)]
    details: list[Detail] | None = None  # in a summary goals, red cards and kicks only
    venue: SoccerVenue | None = None
    status: SoccerStatus | None = None


class SoccerEvent(Response):
    id: Label
    date: str | None = None
    status: SoccerStatus | None = None  # a scoreboard repeats here what the competition says
    year: Label | None = nested("season", "year")
    competitions: Annotated[list[SoccerCompetition], Field(min_length=1)]


class SoccerLeague(Response):
    name: Annotated[str, BeforeValidator(parsing.text)] = ""
    slug: Annotated[str, BeforeValidator(parsing.text)] = ""


class SoccerHeader(SoccerEvent):
    league: SoccerLeague | None = None


class SoccerSummary(Response):
    header: SoccerHeader
    key_events: list[Detail] | None = Field(default=None, alias="keyEvents")
    venue: SoccerVenue | None = nested("gameInfo", "venue")


def status_and_phase(status: SoccerStatus) -> tuple[Status, Phase]:
    """Reads the name of the status; for an unknown one its state, or raises PayloadRejected."""
    state = status.state.lower()
    if status.name in _BY_NAME:
        judged, phase = _BY_NAME[status.name]
        is_delayed = phase is Phase.INTERRUPTED and state == "pre"
        return (Status.UPCOMING, Phase.SCHEDULED) if is_delayed else (judged, phase)
    note_unrecognized("status.type.name", status.stated_name)
    if state == "pre":
        return Status.UPCOMING, Phase.SCHEDULED
    if state == "in":
        return Status.LIVE, Phase.PLAY
    if state == "post" and status.completed:
        return Status.COMPLETED, Phase.FINISHED
    raise PayloadRejected(f"unknown status {status.stated_name[:60]!r}, state {state[:20]!r}, and it is not completed")


def minute_of(text: str | None) -> str | None:
    """Reads "90'+8'" as 90+8."""
    found = _CLOCK.fullmatch((text or "").strip())
    if found is None:
        return None
    return f"{int(found[1])}+{int(found[2])}" if found[2] and int(found[2]) else str(int(found[1]))
