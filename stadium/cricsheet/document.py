"""Models of a Cricsheet file (1.0.0 or 1.1.0). Fields that the replay does not use are ignored."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from stadium.validation import first_error


class CricsheetError(ValueError):
    """A file can't be played; the message names the file and the field."""


class Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Runs(Model):
    batter: int = Field(ge=0)
    extras: int = Field(ge=0)
    total: int = Field(ge=0)
    non_boundary: bool = False


class Fielder(Model):
    name: str = ""


class Out(Model):
    player_out: str
    kind: str
    fielders: tuple[Fielder, ...] = ()


class Delivery(Model):
    batter: str
    bowler: str
    non_striker: str
    runs: Runs
    extras: dict[Literal["wides", "noballs", "byes", "legbyes", "penalty"], int] = {}
    wickets: tuple[Out, ...] = ()

    @model_validator(mode="after")
    def _check_totals(self) -> Delivery:
        given = sum(self.extras.values())
        if given != self.runs.extras or self.runs.batter + given != self.runs.total:
            raise ValueError(f"{self.runs.batter} off the bat and {given} extras are not {self.runs.total} runs")
        if self.batter == self.non_striker:
            raise ValueError(f"{self.batter} can't be at both ends")
        return self


class Over(Model):
    over: int = Field(ge=0)
    deliveries: tuple[Delivery, ...]


class Target(Model):
    runs: int | None = None
    overs: float | None = None


class Penalties(Model):
    pre: int = 0
    post: int = 0


class Miscount(Model):
    balls: int


class InningsRecord(Model):
    team: str
    overs: tuple[Over, ...] = ()
    target: Target = Target()
    declared: bool = False
    forfeited: bool = False
    super_over: bool = False
    penalty_runs: Penalties = Penalties()
    miscounted_overs: dict[str, Miscount] = {}
    absent_hurt: tuple[str, ...] = ()

    @property
    def deliveries(self) -> list[Delivery]:
        return [delivery for over in self.overs for delivery in over.deliveries]

    @property
    def runs(self) -> int:
        bowled = sum(delivery.runs.total for delivery in self.deliveries)
        return bowled + self.penalty_runs.pre + self.penalty_runs.post


class Margin(Model):
    runs: int | None = None
    wickets: int | None = None
    innings: int | None = None


class Outcome(Model):
    winner: str = ""
    by: Margin = Margin()
    result: Literal["", "draw", "tie", "no result"] = ""
    eliminator: str = ""
    bowl_out: str = ""
    method: str = ""


class Toss(Model):
    winner: str = ""
    decision: Literal["", "bat", "field"] = ""


class Event(Model):
    name: str = ""
    match_number: int | str | None = None
    stage: str | int | None = None


class Registry(Model):
    people: dict[str, str] = {}


class Info(Model):
    teams: tuple[str, str]
    dates: tuple[str, ...] = Field(min_length=1)
    match_type: str
    gender: str = ""
    overs: int | None = None
    balls_per_over: int = Field(default=6, ge=1)
    outcome: Outcome
    toss: Toss = Toss()
    event: Event = Event()
    venue: str = ""
    city: str = ""
    players: dict[str, tuple[str, ...]] = {}
    registry: Registry = Registry()

    @model_validator(mode="after")
    def _check_teams(self) -> Info:
        if self.teams[0] == self.teams[1]:
            raise ValueError("teams: both have the same name")
        named = (self.outcome.winner, self.outcome.eliminator, self.outcome.bowl_out, self.toss.winner)
        for name in named:
            if name and name not in self.teams:
                raise ValueError(f"{name!r} is none of the teams")
        return self


class Document(Model):
    info: Info
    innings: tuple[InningsRecord, ...] = ()

    @model_validator(mode="after")
    def _check_innings(self) -> Document:
        for number, innings in enumerate(self.innings):
            if innings.team not in self.info.teams:
                raise ValueError(f"innings.{number}.team: {innings.team!r} is none of the teams")
            overs = [over.over for over in innings.overs]
            if any(later <= earlier for earlier, later in pairwise(overs)):
                raise ValueError(f"innings.{number}.overs: not in order")
        return self

    @property
    def is_multi_day(self) -> bool:
        """Two innings a side; Cricsheet has no limit of overs for these matches."""
        return self.info.overs is None


def read(path: Path) -> Document:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CricsheetError(f"{path}: can't be read: {error}") from error
    try:
        return Document.model_validate_json(text)
    except ValidationError as error:
        raise CricsheetError(f"{path}: {first_error(error)}") from error
