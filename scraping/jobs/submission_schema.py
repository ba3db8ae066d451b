"""The body of POST /cricket-data: a match as a consumer sends it, validated as strictly as the payloads of adapters.

The sender gives its own id of the match, the time of its reading, and as many fields as it knows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints, ValidationInfo, field_validator

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
CLOCKS_DIFFER = timedelta(seconds=60)  # a sender's clock may be so far ahead of ours
OLDEST = timedelta(days=1)

OwnId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.:~-]{1,64}$")]
Note = Annotated[str, StringConstraints(max_length=200)]
Number = Annotated[int, Field(ge=-(2**53), le=2**53)]
Real = Annotated[float, Field(allow_inf_nan=False)]
Notes = Annotated[
    dict[Annotated[str, StringConstraints(min_length=1, max_length=40)], Note | Number | Real | bool | None],
    Field(max_length=30),
]
Facts = Annotated[
    dict[Annotated[str, StringConstraints(min_length=1, max_length=40)], Note | Number | Real | None],
    Field(max_length=30),
]
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


class SentEvent(Frozen):
    """A ball, a wicket, a break ... The same id again corrects the event."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=120)] = Field(
        description="Your own, and the same for as long as it is the same happening."
    )
    kind: Annotated[str, StringConstraints(min_length=1, max_length=40)] = Field(
        description="dot, runs, four, six, wicket, wide, no_ball ..."
    )
    innings: int | None = Field(default=None, ge=1, le=MAX_INNINGS)
    over: Annotated[str, StringConstraints(pattern=r"^\d{1,3}\.\d{1,2}$")] | None = Field(
        default=None, description='As it is printed: "11.5" is the fifth ball of the twelfth over.'
    )
    ball: int | None = Field(
        default=None,
        ge=1,
        le=30,
        description="Which delivery of its over it is, wides and no-balls counted. With it we know the same ball at "
        "another source.",
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

    match_id: OwnId = Field(description="Your own id of the match, the same in everything you send about it.")
    captured_at: AwareDatetime = Field(description="When you read this. The age that we serve counts from here.")
    status: Status
    phase: Phase | None = Field(default=None, description="Left out: what usually goes with the status.")
    teams: Teams
    title: Text = ""
    series: Annotated[str, StringConstraints(max_length=200)] = ""
    match_type: Annotated[str, StringConstraints(max_length=40)] = Field(default="", description="T20, ODI, Test ...")
    innings: Annotated[tuple[Innings, ...], Field(max_length=MAX_INNINGS)] = ()
    current_innings: int | None = Field(default=None, ge=1, le=MAX_INNINGS)
    score: Score | None = Field(default=None, description="Left out: each side's latest innings.")
    toss: Toss | None = None
    venue: Text = ""
    start_time: Moment | None = None
    last_event: LastEvent | None = None
    result: Text = ""
    metadata: Facts = Field(default_factory=dict)
    events: Annotated[tuple[SentEvent, ...], Field(max_length=MOST_EVENTS)] = Field(
        default=(), description="Oldest first: all of them, or those that are new or corrected."
    )
    events_are_complete: bool = Field(
        default=False, description="true: every event so far is in `events`; one that is missing was taken back."
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
        return teams

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
    """Several at once: all of them are taken, or none."""

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


def unstorable(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yields the places in a body with the character NUL, which the database does not store."""
    if isinstance(value, str):
        if "\x00" in value:
            yield path
    elif isinstance(value, dict):
        for name, part in value.items():
            if "\x00" in name:
                yield path
            yield from unstorable(part, (*path, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from unstorable(part, (*path, number))
