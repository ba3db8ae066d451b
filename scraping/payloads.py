"""The unified match of all sources: returned by adapters and stored by ingest.

`MatchState` is the part that is compared, numbered and served; `Payload` is the envelope around it that says where and
when it was read. A change that an older reader would misunderstand gets a new SCHEMA_VERSION.
"""

import hashlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

SCHEMA_VERSION = 1
MAX_INNINGS = 20  # four, and as many super overs as it takes
STARTERS = 11

Side = Literal["team_a", "team_b"]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]


class Resource(StrEnum):
    """The part that a task reads: a match's state, its missing events, both at once, or a source's list of matches."""

    SCORECARD = "scorecard"
    COMMENTARY = "commentary"
    FULL = "full"  # state and all events of a match, in one transaction: read by the tasks of a round
    LINEUPS = "lineups"  # read before the start, and once more for the ratings after the end
    FIGURES = "figures"  # the figures of every player: the last read of a match
    DISCOVERY = "discovery"
    ROUND = "round"  # the list of one round's matches, for a job
    SUBMISSION = "submission"  # nothing is read: data that was sent to the API is written


class Sport(StrEnum):
    CRICKET = "cricket"
    FOOTBALL = "football"


class Status(StrEnum):
    UPCOMING = "upcoming"
    LIVE = "live"
    COMPLETED = "completed"
    ABANDONED = "abandoned"


class Phase(StrEnum):
    """The detail that the four statuses leave out."""

    SCHEDULED = "scheduled"
    POSTPONED = "postponed"
    PLAY = "play"
    INNINGS_BREAK = "innings_break"
    LUNCH = "lunch"
    TEA = "tea"
    DRINKS = "drinks"
    STUMPS = "stumps"
    RAIN = "rain"
    HALFTIME = "halftime"
    EXTRA_TIME = "extra_time"
    PENALTIES = "penalties"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"


_NO_BREAKS = {Phase.SCHEDULED, Phase.POSTPONED, Phase.PLAY, Phase.EXTRA_TIME, Phase.PENALTIES, Phase.FINISHED}
BREAKS = frozenset(Phase) - _NO_BREAKS


def checksum_of(state: Mapping[str, Any]) -> str:
    """Returns the checksum of plain JSON values; the order of the fields does not matter."""
    return hashlib.sha256(orjson.dumps(state, option=orjson.OPT_SORT_KEYS)).hexdigest()


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Team(Frozen):
    name: Name
    short_name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=24)] = ""


class Teams(Frozen):
    team_a: Team
    team_b: Team


class Innings(Frozen):
    """One side's turn at the bat; `overs` keeps cricket's notation: "14.4" is 14 overs and 4 balls."""

    number: int = Field(ge=1, le=MAX_INNINGS)
    team: Side
    runs: int = Field(ge=0, le=2000)
    wickets: int = Field(ge=0, le=10)
    overs: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,3}\.[0-9]{1,2}$")]
    is_declared: bool = False
    is_super_over: bool = False
    target: int | None = Field(default=None, ge=0, le=4000)


class SideScore(Frozen):
    """Cricket fills runs, wickets, overs (the side's latest innings); football fills goals (and penalties)."""

    runs: int | None = Field(default=None, ge=0, le=4000)
    wickets: int | None = Field(default=None, ge=0, le=10)
    overs: str | None = None
    goals: int | None = Field(default=None, ge=0, le=99)
    penalties: int | None = Field(default=None, ge=0, le=99)


class Score(Frozen):
    team_a: SideScore = SideScore()
    team_b: SideScore = SideScore()


class Toss(Frozen):
    winner: Text
    decision: Literal["bat", "field", ""] = ""


class LastEvent(Frozen):
    type: Text
    description: Text
    timestamp: AwareDatetime | None = None


class MatchState(Frozen):
    """The part of a match that is served to consumers and gets a new sequence number when it changes."""

    sport: Sport
    title: Text
    status: Status
    phase: Phase
    teams: Teams
    score: Score = Score()
    innings: tuple[Innings, ...] = ()
    current_innings: int | None = Field(default=None, ge=1, le=MAX_INNINGS)
    clock: Text = ""  # football: the minute, "45+2"; cricket: empty
    toss: Toss | None = None
    venue: Text = ""
    start_time: AwareDatetime | None = None
    last_event: LastEvent | None = None
    result: Text = ""
    metadata: dict[str, str | int | float | None] = Field(default_factory=dict)  # series, match_type, round, ...

    def checksum(self) -> str:
        return checksum_of(self.model_dump(mode="json"))


class Event(Frozen):
    """One ball, goal, card ... with the source's own id. The limits are the columns': SQLite does not check them."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    kind: Annotated[str, StringConstraints(min_length=1, max_length=40)]
    innings: int | None = Field(default=None, ge=0, le=99)
    over: Annotated[str, StringConstraints(max_length=10)] | None = None  # "11.5"
    minute: Annotated[str, StringConstraints(max_length=10)] | None = None  # "45+2"
    # Its place in the source's list, and its key at every source: scraping.event_keys.
    ordinal: int | None = Field(default=None, ge=1, le=10_000_000)
    slot: Annotated[str, StringConstraints(max_length=80)] = ""
    runs: int | None = Field(default=None, ge=-1000, le=1000)
    is_critical: bool = True
    description: Text = ""
    happened_at: AwareDatetime | None = None
    detail: dict[str, str | int | float | bool | None] = Field(default_factory=dict)

    def as_last_event(self) -> LastEvent:
        return LastEvent(type=self.kind, description=self.description, timestamp=self.happened_at)

    def fingerprint(self) -> str:
        """Returns a checksum that changes with a correction of the event; a time that is added later is none."""
        return checksum_of(self.model_dump(mode="json", exclude={"happened_at", "slot"}))


class BrokenPart(Frozen):
    """A part of a response that could not be read and was left out: its path, what was expected there, how often."""

    path: Annotated[str, StringConstraints(max_length=120)]
    expected: Annotated[str, StringConstraints(max_length=120)]
    count: int = Field(default=1, ge=1)


class Integrity(Frozen):
    """The completeness of a reading: the wanted fields that the source left out, and the parts that were unreadable."""

    missing_fields: tuple[str, ...] = ()
    null_field_rate: float = Field(default=0.0, ge=0.0, le=1.0)
    fallback_selectors: tuple[str, ...] = ()  # "score#2": the field's best selector found nothing, its second did
    broken_parts: tuple[BrokenPart, ...] = ()


class UnrecognizedValue(Frozen):
    """A value that a source's schema does not know: counted, so that it is not dropped unnoticed."""

    path: Annotated[str, StringConstraints(max_length=120)]
    value: Annotated[str, StringConstraints(max_length=120)]


class PlayerFigure(Frozen):
    """The figures of one player: with bat or ball in one innings, or (role "rating") in the whole match."""

    side: Side
    role: Literal["batting", "bowling", "rating"]
    innings: int | None = Field(default=None, ge=1, le=MAX_INNINGS)
    player_id: Annotated[str, StringConstraints(min_length=1, max_length=40)]
    name: Name
    values: dict[str, str | int | float | bool | None] = Field(default_factory=dict)  # runs, balls, wickets ...


class LineupPlayer(Frozen):
    player_id: Annotated[str, StringConstraints(min_length=1, max_length=40)]
    name: Name
    position: Annotated[str, StringConstraints(max_length=20)] = ""
    shirt: Annotated[str, StringConstraints(max_length=6)] = ""
    is_starter: bool = False
    is_captain: bool = False
    rating: float | None = Field(default=None, ge=0, le=10)
    minutes: int | None = Field(default=None, ge=0, le=200)


class Lineup(Frozen):
    """One side. `is_confirmed`: the source says that it is final and not only expected."""

    side: Side
    formation: Annotated[str, StringConstraints(max_length=20)] = ""
    is_confirmed: bool = False
    players: tuple[LineupPlayer, ...] = ()

    @property
    def starters(self) -> tuple[LineupPlayer, ...]:
        return tuple(player for player in self.players if player.is_starter)

    @property
    def is_xi_missing(self) -> bool:
        return len(self.starters) < STARTERS


class Parsed(Frozen):
    """One reading, parsed and validated: the fields that payloads, line-ups and figures have in common."""

    source: str
    payload_schema: str = ""  # of the source's own answers: "sofascore.event.v1"
    captured_at: AwareDatetime
    source_event_id: str
    unknown: tuple[UnrecognizedValue, ...] = ()
    integrity: Integrity = Integrity()


class Lineups(Parsed):
    """Both sides of a match; none where the source has none yet."""

    kickoff: AwareDatetime | None = None
    lineups: tuple[Lineup, ...] = ()
    toss: Toss | None = None  # where the same page shows it


class Figures(Parsed):
    figures: tuple[PlayerFigure, ...] = ()


class Payload(Parsed):
    schema_version: int = SCHEMA_VERSION
    state: MatchState
    events: tuple[Event, ...] = ()
    events_are_complete: bool = False  # True: every event since the start is in `events`, absence means retraction
    is_partial_state: bool = False  # True: `state` is only good enough where nothing better is known (DOM fallback)

    @property
    def lacks_events(self) -> bool:
        """Returns whether the list of events could not be read. A missing list is not an empty list."""
        return "events" in self.integrity.missing_fields

    def normalized(self) -> dict[str, Any]:
        """The state as plain JSON values."""
        return self.state.model_dump(mode="json")


class DiscoveredMatch(Frozen):
    """One row of a source's list of matches. Teams and series identify the same match at another source."""

    source_event_id: str
    url: str
    title: Text = ""
    sport: Sport
    status: Status
    start_time: AwareDatetime | None = None
    teams: tuple[Team, ...] = ()  # both or none
    series: Text = ""


def score_of(innings: Sequence[Innings], *, with_super_overs: bool = False) -> Score:
    latest = {
        one.team: SideScore(runs=one.runs, wickets=one.wickets, overs=one.overs)
        for one in innings
        if with_super_overs or not one.is_super_over
    }
    return Score(team_a=latest.get("team_a", SideScore()), team_b=latest.get("team_b", SideScore()))
