"""The body of POST /cricket-data: a match as a consumer sends it, validated as strictly as the payloads of adapters.

The sender gives its own id of the match, the time of its reading, and as many fields as it knows.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any

import orjson
from pydantic import (
    AfterValidator,
    AwareDatetime,
    Field,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from scraping import event_keys
from scraping.payloads import (
    MAX_INNINGS,
    DiscoveredMatch,
    Event,
    Frozen,
    Innings,
    LastEvent,
    MatchState,
    Payload,
    Phase,
    Score,
    Sport,
    Status,
    Teams,
    Text,
    Toss,
    score_of,
)

SCHEMA = "pushed.match.v1"
MOST_MATCHES = 50
MOST_EVENTS = 1000
CLOCKS_DIFFER = timedelta(seconds=60)  # how far a sender's clock may be ahead of ours
OLDEST = timedelta(days=1)

MOST_NOTE, MOST_NOTES = 200, 4000  # characters of a value; of the metadata of a match, or the detail of an event
MOST_NUMBER = 2**53
OVERS = r"^\d{1,3}\.[0-6]$"
# Free text may hold line breaks, and the joiners that some scripts and emoji need.
FREE_TEXT = frozenset({"description", "result"})
_IN_FREE_TEXT = "\t\n\r\u200c\u200d\ufe0e\ufe0f"
_UNSEEN = {"Cc", "Cf", "Co", "Zl", "Zp"}  # Unicode categories: control, format (zero width), private use, separators
# Fillers and variation selectors, which count as letters and marks.
_BLANK = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

Path = tuple[str | int, ...]
OwnId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.:~-]{1,64}$")]


def _note(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MOST_NOTE:
        raise ValueError(f"must have at most {MOST_NOTE} characters, and has {len(value)}")
    if isinstance(value, int) and abs(value) > MOST_NUMBER:
        raise ValueError(f"must be between {-MOST_NUMBER} and {MOST_NUMBER}")
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError("must be text, a number, true, false or null")
    return value


def _fact(value: Any) -> Any:
    if isinstance(value, bool) or (value is not None and not isinstance(value, str | int | float)):
        raise ValueError("must be text, a number or null")
    return _note(value)


def _of_moderate_size(notes: dict[str, Any]) -> dict[str, Any]:
    size = len(orjson.dumps(notes).decode())
    if size > MOST_NOTES:
        raise ValueError(f"must have at most {MOST_NOTES} characters in all, and has {size}")
    return notes


_VALUES: list[dict[str, Any]] = [
    {"type": "string", "maxLength": MOST_NOTE},
    {"type": "integer", "minimum": -MOST_NUMBER, "maximum": MOST_NUMBER},
    {"type": "number"},
    {"type": "null"},
]
_NoteName = Annotated[str, StringConstraints(min_length=1, max_length=40)]
_Sized = (Field(max_length=30), AfterValidator(_of_moderate_size))
# One validator for each value, not a union of types: a union reports an error for each of them.
Note = Annotated[Any, AfterValidator(_note), WithJsonSchema({"anyOf": [*_VALUES, {"type": "boolean"}]})]
Fact = Annotated[Any, AfterValidator(_fact), WithJsonSchema({"anyOf": _VALUES})]
Notes = Annotated[dict[_NoteName, Note], *_Sized]
Facts = Annotated[dict[_NoteName, Fact], *_Sized]
YEARS = range(1900, 2200)


def _in_reach(moment: datetime) -> datetime:
    """Refuses years that cannot be converted to UTC in all time zones."""
    if moment.year not in YEARS:
        raise ValueError(f"must be a time between {YEARS.start} and {YEARS.stop}")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_in_reach)]
PHASES = {
    Status.UPCOMING: Phase.SCHEDULED,
    Status.LIVE: Phase.PLAY,
    Status.COMPLETED: Phase.FINISHED,
    Status.ABANDONED: Phase.FINISHED,
}


class SentInnings(Innings):
    overs: Annotated[str, StringConstraints(pattern=OVERS)] = Field(
        description='"14.4" is 14 overs and 4 balls. Extras do not count, so there are at most 6 balls.'
    )


class SentEvent(Frozen):
    """A ball, a wicket, a break ... The same id again corrects the event."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=120)] = Field(
        description="Your own id of the event; it must not change."
    )
    kind: Annotated[str, StringConstraints(min_length=1, max_length=40)] = Field(
        description="dot, runs, four, six, wicket, wide, no_ball ..."
    )
    innings: int | None = Field(default=None, ge=1, le=MAX_INNINGS)
    over: Annotated[str, StringConstraints(pattern=OVERS)] | None = Field(
        default=None, description='As on a scorecard: "11.5" is the fifth ball of the twelfth over.'
    )
    ball: int | None = Field(
        default=None,
        ge=1,
        le=30,
        description="The number of the delivery within its over, wides and no-balls counted. It identifies the same "
        "ball at another source.",
    )
    runs: int | None = Field(default=None, ge=-1000, le=1000)
    is_critical: bool = True
    description: Text = ""
    happened_at: Moment | None = None
    detail: Notes = Field(default_factory=dict)

    def event(self) -> Event:
        fields = self.model_dump(exclude={"ball"})
        return Event(**fields, slot=self._slot())

    def _slot(self) -> str:
        if self.innings is None or self.over is None or self.ball is None:
            return ""
        return event_keys.ball(self.innings, int(self.over.partition(".")[0]), self.ball)


class SentMatch(Frozen):
    """The state of a cricket match, as its sender saw it at `captured_at`."""

    match_id: OwnId = Field(description="Your own id of the match, the same in every request about it.")
    captured_at: AwareDatetime = Field(description="The time of your reading. The served age counts from it.")
    status: Status
    phase: Phase | None = Field(default=None, description="Default: the usual phase of the status.")
    teams: Teams
    title: Text = ""
    series: Annotated[str, StringConstraints(max_length=200)] = ""
    match_type: Annotated[str, StringConstraints(max_length=40)] = Field(default="", description="T20, ODI, Test ...")
    innings: Annotated[tuple[SentInnings, ...], Field(max_length=MAX_INNINGS)] = ()
    current_innings: int | None = Field(default=None, ge=1, le=MAX_INNINGS)
    score: Score | None = Field(default=None, description="Default: the latest innings of each side.")
    toss: Toss | None = None
    venue: Text = ""
    start_time: Moment | None = None
    last_event: LastEvent | None = None
    result: Text = ""
    metadata: Facts = Field(default_factory=dict)
    events: Annotated[tuple[SentEvent, ...], Field(max_length=MOST_EVENTS)] = Field(
        default=(), description="Oldest first: all events, or the new and corrected ones."
    )
    events_are_complete: bool = Field(
        default=False, description="true: `events` has every event so far; a missing one counts as retracted."
    )

    @field_validator("innings")
    @classmethod
    def _numbered(cls, innings: tuple[Innings, ...]) -> tuple[Innings, ...]:
        if [one.number for one in innings] != list(range(1, len(innings) + 1)):
            raise ValueError("must be numbered 1, 2, 3 ... in the order in which they are played")
        return innings

    @field_validator("teams")
    @classmethod
    def _are_two(cls, teams: Teams) -> Teams:
        if teams.team_a.name.casefold() == teams.team_b.name.casefold():
            raise ValueError("must be two different teams")
        if not all(any(map(str.isalnum, team.name)) for team in (teams.team_a, teams.team_b)):
            raise ValueError("must have names with letters or figures")
        return teams

    @field_validator("score")
    @classmethod
    def _has_possible_overs(cls, score: Score | None) -> Score | None:
        sides = (score.team_a, score.team_b) if score else ()
        for overs in (side.overs for side in sides if side.overs is not None):
            if not re.match(OVERS, overs):
                raise ValueError(f"must have overs such as 14.4, with at most 6 balls, and not {overs[:10]!r}")
        return score

    @field_validator("current_innings")
    @classmethod
    def _is_played(cls, number: int | None, info: ValidationInfo) -> int | None:
        innings = info.data.get("innings")  # missing where it is invalid itself
        if number is not None and innings and number > len(innings):
            raise ValueError(f"must be one of `innings`, which end with {len(innings)}")
        return number

    @field_validator("events")
    @classmethod
    def _have_unique_ids(cls, events: tuple[SentEvent, ...]) -> tuple[SentEvent, ...]:
        (often,) = Counter(one.id for one in events).most_common(1) or [("", 0)]
        if often[1] > 1:
            raise ValueError(f"must have an id of their own each, and {often[0]!r} is there {often[1]} times")
        return events

    @field_validator("last_event")
    @classmethod
    def _last_event_in_reach(cls, event: LastEvent | None) -> LastEvent | None:
        if event is not None and event.timestamp is not None:
            _in_reach(event.timestamp)
        return event

    def state(self) -> MatchState:
        teams = self.teams
        facts = {"series": self.series, "match_type": self.match_type}
        return MatchState(
            sport=Sport.CRICKET,
            title=self.title or f"{teams.team_a.name} vs {teams.team_b.name}",
            status=self.status,
            phase=self.phase or PHASES[self.status],
            teams=teams,
            score=self.score or score_of(self.innings),
            innings=self.innings,
            current_innings=self.current_innings,
            toss=self.toss,
            venue=self.venue,
            start_time=self.start_time,
            last_event=self.last_event,
            result=self.result,
            metadata={**self.metadata, **{name: fact for name, fact in facts.items() if fact}},
        )

    def payload(self, *, source: str, source_event_id: str, received_at: datetime) -> Payload:
        """Returns the payload as an adapter would. A time in our future, from a clock that is ahead, becomes now."""
        return Payload(
            source=source,
            payload_schema=SCHEMA,
            captured_at=min(self.captured_at, received_at),
            source_event_id=source_event_id,
            state=self.state(),
            events=tuple(one.event() for one in self.events),
            events_are_complete=self.events_are_complete,
        )

    def listed(self, *, source_event_id: str, url: str) -> DiscoveredMatch:
        """Returns the fields that identify the match."""
        return DiscoveredMatch(
            source_event_id=source_event_id,
            url=url,
            title=self.title,
            sport=Sport.CRICKET,
            status=self.status,
            start_time=self.start_time,
            teams=(self.teams.team_a, self.teams.team_b),
            series=self.series,
        )


class SentMatches(Frozen):
    """Several matches: all of them are accepted, or none."""

    matches: Annotated[tuple[SentMatch, ...], Field(min_length=1, max_length=MOST_MATCHES)]


def event_id_at(sender: str, match_id: str) -> str:
    """Returns the match's id at the source "pushed": the sender's own id with a prefix for the sender.

    Other consumers see it as a part of the match's key, so the prefix is a hash of the sender's id.
    """
    return f"{hashlib.sha256(sender.encode()).hexdigest()[:12]}-{match_id}"


def out_of_time(match: SentMatch, now: datetime) -> str:
    """Returns why `captured_at` is impossible or too old; empty if it is valid."""
    if match.captured_at > now + CLOCKS_DIFFER:
        ahead = (match.captured_at - now).total_seconds()
        return f"It is {ahead:.0f} s in our future; check your clock. {CLOCKS_DIFFER.seconds} s are allowed."
    if match.captured_at < now - OLDEST:
        return "It is more than a day old: too old for a live match."
    return ""


def invisible_characters(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yields the places in a body with control or zero-width characters, and the first such character.

    Two names that look the same would be two teams, and the database does not store NUL.
    """
    if isinstance(value, str):
        if not (value.isascii() and value.isprintable()) and (
            char := _first_unseen(value, is_free=bool(path) and path[-1] in FREE_TEXT)
        ):
            yield path, char
    elif isinstance(value, dict):
        for name, part in value.items():
            if char := _first_unseen(name):
                yield path, char
            yield from invisible_characters(part, (*path, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from invisible_characters(part, (*path, number))


def _first_unseen(text: str, *, is_free: bool = False) -> str:
    allowed = _IN_FREE_TEXT if is_free else ""
    unseen = (char for char in text if unicodedata.category(char) in _UNSEEN or _BLANK.match(char))
    return next((char for char in unseen if char not in allowed), "")
