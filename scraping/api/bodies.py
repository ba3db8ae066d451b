"""The bodies of match answers. One class per body: its fields document it (OpenAPI) and render it.

A field takes its value from the attribute of the same name of what is rendered, or from the function in its annotation
(`attrgetter`, `in_payload`). `ADDED` values are passed to `render`: they change with the clock or the request, while
the rest is rendered once for each state of a match.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, get_args
from uuid import UUID

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from scraping.documents.cached_match import CachedMatch
from scraping.documents.freshness import DataState, Freshness
from scraping.models import MatchLifecycle
from scraping.payloads import Innings, Integrity, LastEvent, Phase, Score, Sport, Status, Teams, Toss
from victoryline.lib.http.renderers import OrjsonRenderer
from victoryline.lib.times import as_utc_iso

Values = dict[str, Any]
Getter = Callable[[Any], Any]
_slow_render = OrjsonRenderer().render


ADDED = "added"
SERVED_AT = "From when on every process served it, half a second later: `as_of` of this time finds it."
TEAM_ID = "The team in /api/v1/teams; null until its name is known, and in a read of the past."


def in_payload(name: str, otherwise: Any = None) -> Getter:
    """Returns a getter of a value of the match's payload, or `otherwise` if that is missing or empty; 0 is a value."""

    def get(match: CachedMatch) -> Any:
        found = match.payload.get(name)
        return found if found or found == 0 else otherwise

    return get


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @classmethod
    def render(cls, source: Any = None, /, **added: Any) -> Values:
        """Returns the body of `source`. Raises TypeError for a value that the class does not declare."""
        if added and (unknown := added.keys() - _names(cls)):
            raise TypeError(f"{cls.__name__} has no {', '.join(sorted(unknown))}")
        return {name: get(source) for name, get in _getters(cls) if name not in added} | added


@cache
def _names(body: type[Body]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in body.model_fields.items())


@cache
def _getters(body: type[Body]) -> tuple[tuple[str, Getter], ...]:
    found = []
    for name, field in body.model_fields.items():
        if ADDED not in field.metadata:
            get = next(filter(callable, field.metadata), attrgetter(name))
            is_time = AwareDatetime in (field.annotation, *get_args(field.annotation))
            found.append((field.alias or name, _time_of(get) if is_time else get))
    return tuple(found)


def _time_of(get: Getter) -> Getter:
    def as_text(source: Any) -> str | None:
        moment = get(source)
        return as_utc_iso(moment) if isinstance(moment, datetime) else moment

    return as_text


def _tenths_until_update(freshness: Freshness) -> float | None:
    """Rounded up, as the header is in whole seconds: a client that waits so long does not come too early."""
    seconds = freshness.next_update_in
    return None if seconds is None else math.ceil(seconds * 10) / 10


class DataMetadata(Body):
    """The origin and the age of the data."""

    scraped_at: AwareDatetime | None = Field(description="When the source was last read successfully.")
    data_age_seconds: Annotated[int | None, attrgetter("whole_age_seconds")]
    scraper_id: Annotated[UUID | None, ADDED]
    source: Annotated[str, ADDED] = Field(description="How the data came in: scraper, cache or manual.")
    state: DataState
    next_update_in_seconds: Annotated[float | None, _tenths_until_update]

    @classmethod
    def of(cls, match: CachedMatch, freshness: Freshness, /, **added: Any) -> Values:
        return cls.render(freshness, **{"scraper_id": match.scraper_id, "source": match.data_source, **added})


class DataIntegrity(Body):
    """The parts of the source's responses that the data lacks."""

    is_complete: bool
    left_out: list[str] = Field(
        description="`events`, and paths in the source's response that could not be read; empty if nothing is missing.",
        examples=[["events", "content.innings[].inningBatsmen[].player"]],
    )


class FullMetadata(DataMetadata):
    sequence: Annotated[int, ADDED]
    integrity: Annotated[DataIntegrity | None, ADDED] = Field(description="Null in a read of the past.")

    @classmethod
    def of(cls, match: CachedMatch, freshness: Freshness, /, **added: Any) -> Values:
        integrity = {"is_complete": not match.left_out, "left_out": list(match.left_out)}
        return super().of(match, freshness, **{"sequence": match.sequence, "integrity": integrity, **added})


class PastMetadata(FullMetadata):
    """Metadata of an earlier state. `scraped_at` and the age are of that state; its `state` is final."""

    as_of: Annotated[AwareDatetime | None, ADDED] = Field(
        description="The requested time; null if the state was requested by its sequence."
    )
    captured_at: Annotated[AwareDatetime, ADDED] = Field(
        description="When the source was read that brought this state."
    )
    created_at: Annotated[AwareDatetime, ADDED] = Field(description="When the state was written.")
    served_at: Annotated[AwareDatetime, ADDED] = Field(description=SERVED_AT)


class Provisional(Body):
    """A score that went down. The earlier one is served until this is confirmed or withdrawn."""

    source: str = Field(description="The source that reports it.")
    since: AwareDatetime = Field(description="When it was read first.")
    readings: int = Field(description="How many times in a row it was read.")
    status: Status | None
    score: Score | None = Field(description="The unconfirmed score.")


class ItemFreshness(Body):
    state: DataState
    age_seconds: Annotated[int | None, attrgetter("whole_age_seconds")]
    scraped_at: AwareDatetime | None
    next_update_in: Annotated[float | None, _tenths_until_update]


class MatchItem(Body):
    id: int
    keys: list[str] = Field(description="The match's names at its sources, such as crex_13KM; each works as an id.")
    sport: Sport
    title: str
    status: Status
    phase: Phase
    lifecycle: MatchLifecycle
    teams: Annotated[Teams | None, in_payload("teams")]
    team_a_id: int | None = Field(description=TEAM_ID)
    team_b_id: int | None = Field(description=TEAM_ID)
    score: Annotated[Score | None, in_payload("score")]
    start_time: AwareDatetime | None
    sequence: int
    freshness: Annotated[ItemFreshness, ADDED]


class ListMetadata(Body):
    generated_at: Annotated[AwareDatetime, ADDED]
    count: Annotated[int, ADDED]
    left_out: Annotated[int, ADDED] = Field(
        description="Matches submitted by another consumer that are older than your `max_age`."
    )
    state: DataState
    scraped_at: AwareDatetime | None
    data_age_seconds: Annotated[int | None, attrgetter("whole_age_seconds")] = Field(
        description="Of the oldest live match in the answer that we read ourselves; a submitted one shows its own age."
    )
    next_update_in_seconds: Annotated[float | None, _tenths_until_update] = Field(
        description="Until the first of them is read again."
    )


class OtherWord(Body):
    """The value of a field at another source."""

    source: str
    value: Any = Field(description="A number unchanged, any other value shortened.")
    confidence: float
    timestamp: AwareDatetime


class FieldProvenance(Body):
    """The source of a served field, and when it was read."""

    source: str
    confidence: float = Field(
        description="0 to 1. It falls while the source is behind a live match; below 0.5 the source is not used."
    )
    timestamp: AwareDatetime = Field(description="When that source was read.")
    others: list[OtherWord] = Field(default=[], description="Sources that report something else.")
    keys: dict[str, str] = Field(default={}, description="Of metadata: which source reported which key.")


class SourceReading(Body):
    """The latest reading of a source: the versioned envelope of its normalized data, and its completeness (FS-8)."""

    source: Annotated[str, attrgetter("source.key")]
    schema_version: Annotated[str, attrgetter("payload_schema")] = Field(
        description="Of the source's answer: crex.match.v1."
    )
    captured_at: AwareDatetime
    source_event_id: str
    normalized: Annotated[dict[str, Any], attrgetter("payload")] = Field(
        description="The state by this source alone, with the teams in its order."
    )
    integrity: Annotated[Integrity | None, lambda ref: ref.integrity or None] = Field(
        description="The wanted fields that it left out; null for a reading of an older version."
    )


def last_event_of(match: CachedMatch) -> Values | None:
    """The payload has the time as the adapter wrote it; answers spell all times alike."""
    event: Values | None = match.payload.get("last_event")
    if not event or not event.get("timestamp"):
        return event
    return {**event, "timestamp": as_utc_iso(datetime.fromisoformat(event["timestamp"]))}


class MatchDocument(Body):
    """A match in the unified schema, the same for every sport and source."""

    id: int
    match_id: Annotated[str, attrgetter("main_key")] = Field(
        description="The first of `keys`: its name at the most trusted source."
    )
    keys: list[str] = Field(description="The match's names at its sources, such as crex_13KM; each works as an id.")
    domain_id: Annotated[str, attrgetter("main_source")] = Field(
        description="The key of the source that `match_id` is from."
    )
    sport: Sport
    title: str
    status: Status
    phase: Phase
    lifecycle: MatchLifecycle | None = Field(
        description="Whether the match is being read now; null in a read of the past, which has no such history."
    )
    teams: Annotated[Teams | None, in_payload("teams")]
    team_a_id: int | None = Field(description=TEAM_ID)
    team_b_id: int | None = Field(description=TEAM_ID)
    score: Annotated[Score | None, in_payload("score")]
    innings: Annotated[list[Innings], in_payload("innings", [])]
    current_innings: Annotated[int | None, in_payload("current_innings")]
    clock: Annotated[str, in_payload("clock", "")] = Field(description="Football: the minute.")
    toss: Annotated[Toss | None, in_payload("toss")] = Field(description="Cricket. The winner as the source names it.")
    venue: Annotated[str, in_payload("venue", "")]
    start_time: AwareDatetime | None
    last_event: Annotated[LastEvent | None, last_event_of]
    result: Annotated[str, in_payload("result", "")] = Field(
        description="The source's sentence; empty until the match is over."
    )
    metadata: Annotated[dict[str, Any], in_payload("metadata", {})] = Field(
        description="Further values of a source: series, round, match_type, season."
    )
    sequence: int = Field(description="Grows by one with every change of the match.")
    provenance: Annotated[dict[str, FieldProvenance], ADDED] = Field(
        default={}, description="By field; only with include=provenance."
    )
    provisional: Annotated[Provisional | None, ADDED] = Field(
        default=None, description="A lower score that is not confirmed yet; only with include=provisional."
    )
    readings: Annotated[list[SourceReading], ADDED] = Field(
        default=[], description="Of each source, the most trusted first; only with include=readings, not of the past."
    )
    metadata_: Annotated[FullMetadata | PastMetadata, ADDED] = Field(alias="_metadata")


NOT_IN_LISTS = {"provenance", "provisional", "readings", "metadata_"}  # fields of one match only
_LISTED = {name: field for name, field in MatchDocument.model_fields.items() if name not in NOT_IN_LISTS}
LIST_FIELDS = ("freshness", *_LISTED)  # a list can be limited to some of them
# A match in a list with the requested fields only. None is required but the two that are always there.
ChosenFields = create_model(  # type: ignore[call-overload]  # fields of another model
    "ChosenFields",
    __base__=Body,
    freshness=(Annotated[ItemFreshness, ADDED], ...),
    **{
        name: (field.annotation, field if name == "id" else FieldInfo.merge_field_infos(field, default=None))
        for name, field in _LISTED.items()
    },
)


class MatchList(Body):
    matches: list[MatchItem | ChosenFields]
    next: str | None = Field(description="The address of the next page.")
    metadata_: ListMetadata = Field(alias="_metadata")


def render_match(body: type[Body], match: CachedMatch, /, **added: Any) -> bytes:
    """Renders a match with the added values; the rest is rendered once for each state of the match."""
    state = match.rendered(body.__name__, lambda: as_json(body.render(match)))
    return state[:-1] + b"," + as_json(added)[1:]


def render_fields(match: CachedMatch, names: Sequence[str], /, **added: Any) -> bytes:
    """Renders some fields of a match, `id` first, with the added values. Each field is rendered once for each state."""
    parts = [_field_text(match, name) for name in ("id", *names) if name not in added]
    return b"{" + b",".join(dict.fromkeys(parts)) + b"," + as_json(added)[1:]


def _field_text(match: CachedMatch, name: str) -> bytes:
    return match.rendered(f"field {name}", lambda: as_json({name: dict(_getters(MatchDocument))[name](match)})[1:-1])


def list_text(items: Sequence[bytes], /, **added: Any) -> bytes:
    return b'{"matches":[' + b",".join(items) + b"]," + as_json(added)[1:]


def as_json(values: Any) -> bytes:
    try:
        return orjson.dumps(values)
    except orjson.JSONEncodeError:
        return _slow_render(values)
