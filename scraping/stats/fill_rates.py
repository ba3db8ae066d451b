"""Fill rates of the fields that a source must fill: counted, stored, and compared with their usual level.

The drift of a source is measured by them. A field counts only where the source must fill it: a match that has not begun
has no score, a side that has not batted has no runs, a match in a break has no clock. So every stage of a match has its
own fields and is compared with itself only (`schema_of`). Only writer of FieldFill.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.db.models import QuerySet, Sum

from scraping.models import FieldFill, MatchRef, Source
from scraping.payloads import BREAKS, MatchState, Payload, Sport, Status
from scraping.policies.drift import BUCKET_SECONDS, DriftPolicy, Fill, is_sparse, points_fallen
from victoryline.lib.bulk_sql import add_up, bucket_start

INTEGRITY = "integrity"  # not a field: 1 - null_field_rate of the payload
USUAL_WAY = "usual_way"  # not a field: read without any fallback

UPCOMING, PLAY, BREAK, COMPLETED, ABANDONED = "upcoming", "play", "break", "completed", "abandoned"
ALWAYS = frozenset({UPCOMING, PLAY, BREAK, COMPLETED, ABANDONED})
BEGUN = frozenset({PLAY, BREAK, COMPLETED})
CRICKET, BOTH = frozenset({Sport.CRICKET}), frozenset(Sport)
MAX_NAMED = 10
FieldKey = tuple[int, str, str]  # source, payload schema, field


def window_start(now: datetime, minutes: int) -> datetime:
    """Returns the start of a window of whole buckets: the present one, and those that began within so many minutes."""
    return bucket_start(now - timedelta(minutes=minutes) + timedelta(seconds=BUCKET_SECONDS), BUCKET_SECONDS)


def stage_of(state: MatchState) -> str:
    if state.status is Status.LIVE:
        return BREAK if state.phase in BREAKS else PLAY
    return state.status.value


def schema_of(payload: Payload) -> str:
    """Returns sport, version and stage, within which payloads are comparable; the name in FieldFill.payload_schema."""
    return f"{payload.state.sport.value}/v{payload.schema_version}/{stage_of(payload.state)}"


def _has_score(state: MatchState) -> bool:
    if state.sport is Sport.CRICKET:
        return bool(state.innings)
    return state.score.team_a.goals is not None and state.score.team_b.goals is not None


# Field, test whether it is filled, and the sports and stages that must have it.
STATE_FIELDS: tuple[tuple[str, Callable[[MatchState], bool], frozenset[Sport], frozenset[str]], ...] = (
    ("teams.team_a.short_name", lambda state: bool(state.teams.team_a.short_name), BOTH, ALWAYS),
    ("teams.team_b.short_name", lambda state: bool(state.teams.team_b.short_name), BOTH, ALWAYS),
    ("start_time", lambda state: state.start_time is not None, BOTH, ALWAYS),
    ("venue", lambda state: bool(state.venue), BOTH, ALWAYS),
    ("metadata.series", lambda state: bool(state.metadata.get("series")), BOTH, ALWAYS),
    ("metadata.match_type", lambda state: bool(state.metadata.get("match_type")), CRICKET, ALWAYS),
    ("score", _has_score, BOTH, BEGUN),
    ("current_innings", lambda state: state.current_innings is not None, CRICKET, frozenset({PLAY})),
    # Only on the page, which direct reads have from a visit that may have been before the toss.
    ("toss", lambda state: state.toss is not None, CRICKET, frozenset({COMPLETED})),
    ("clock", lambda state: bool(state.clock), frozenset({Sport.FOOTBALL}), frozenset({PLAY})),
    ("result", lambda state: bool(state.result), BOTH, frozenset({COMPLETED})),
)


@cache
def _required(sport: Sport, stage: str) -> tuple[tuple[str, Callable[[MatchState], bool]], ...]:
    return tuple((name, filled) for name, filled, sports, stages in STATE_FIELDS if stage in stages and sport in sports)


def fields_of(payload: Payload) -> Mapping[str, bool]:
    """Returns the fields that this payload must have, and whether each is filled."""
    state, stage = payload.state, stage_of(payload.state)
    found = {name: is_filled(state) for name, is_filled in _required(state.sport, stage)}
    found[USUAL_WAY] = not payload.is_partial_state and not any(
        name not in found and name not in EVENT_FIELDS for name in payload.integrity.missing_fields
    )
    if stage in BEGUN:
        found |= _event_fields(payload)
    return found


EVENTS_CHECKED = 6  # at every poll; a field that a source leaves out is missing in all events
EVENT_FIELDS = frozenset({"events", "last_event", "events.description", "events.happened_at", "events.ordinal"})


def _event_fields(payload: Payload) -> dict[str, bool]:
    """Returns the fields of events, required after the first ball; in football the list may be empty but must exist.

    One event that has a field is enough: not every kind of event has every field.
    """
    found = {"events": not payload.lacks_events}
    if payload.state.sport is Sport.CRICKET:
        if not any(one.runs or one.wickets or one.overs != "0.0" for one in payload.state.innings):
            return {}
        found["last_event"] = payload.state.last_event is not None
    if some := payload.events[:EVENTS_CHECKED]:
        found["events.description"] = any(event.description for event in some)
        found["events.happened_at"] = any(event.happened_at is not None for event in some)
        found["events.ordinal"] = any(event.ordinal is not None for event in some)
    return found


def add(fills: Mapping[tuple[Any, ...], Sequence[int]]) -> int:
    """Adds seen and filled by source id, schema, field and start of the bucket."""
    return add_up(FieldFill, by=("source", "payload_schema", "field", "starts_at"), sums=("seen", "filled"), rows=fills)


@dataclass(frozen=True)
class FallenField:
    source: Source
    payload_schema: str
    field: str
    baseline: Fill
    window: Fill

    @property
    def name(self) -> str:
        """Returns field, sport and stage: `venue (cricket, play)`."""
        sport, _, stage = self.payload_schema.split("/")
        return f"{self.field} ({sport}, {stage})"

    @property
    def sentence(self) -> str:
        sport, _, stage = self.payload_schema.split("/")
        now, then = f"{self.window.percent:.0f} %", f"it used to be {self.baseline.percent:.0f} %"
        if self.field == USUAL_WAY:
            return f"{self.source.name} is read the usual way in {now} of its readings ({sport}, {stage}); {then}"
        if self.field == INTEGRITY:
            return f"{self.source.name} fills {now} of the wanted fields ({sport}, {stage}); {then}"
        return f"{self.source.name} fills {self.name} in {now} of its readings; {then}"


def fallen_fields(policy: DriftPolicy, *, now: datetime) -> list[FallenField]:
    """Returns the fields that are filled less often than in the hours before, in matches of the same stage."""
    since = window_start(now, policy.window_minutes)
    oldest = since - timedelta(hours=policy.baseline_hours)
    of_baseline = _sums(FieldFill.objects.filter(starts_at__gte=oldest, starts_at__lt=since))
    of_window = _sums(FieldFill.objects.filter(starts_at__gte=since, starts_at__lte=now))
    sources = Source.objects.defer("metadata").in_bulk({key[0] for key in of_window})
    return [
        FallenField(sources[source_id], schema, field, of_baseline[source_id, schema, field], window)
        for (source_id, schema, field), window in sorted(of_window.items())
        if points_fallen(of_baseline.get((source_id, schema, field), Fill()), window, policy) is not None
    ]


def matches_without(one: FallenField, policy: DriftPolicy, *, now: datetime) -> tuple[list[str], int]:
    """Returns the matches of that stage, read lately, that lack the field, and the number of matches read.

    If it is one of many, the match is at fault and not the source. Only for fields of the state.
    """
    is_filled = next((filled for name, filled, _, _ in STATE_FIELDS if name == one.field), None)
    if is_filled is None:
        return [], 0
    since = window_start(now, policy.window_minutes)
    rows = MatchRef.objects.filter(source=one.source, captured_at__gte=since).values_list("source_event_id", "payload")
    states = {key: MatchState.model_validate(payload) for key, payload in rows if payload}
    of_stage = {key: state for key, state in states.items() if stage_of(state) == one.payload_schema.split("/")[2]}
    lacking = sorted(f"{one.source.key}_{key}" for key, state in of_stage.items() if not is_filled(state))
    return lacking[:MAX_NAMED], len(of_stage)


def sparse_sources(policy: DriftPolicy, *, now: datetime) -> list[tuple[Source, Fill]]:
    """Returns the sources that leave out more of the wanted fields than they may, with their integrity."""
    found = integrity_by_source(policy, now=now)
    sources = Source.objects.defer("metadata").in_bulk(found)
    return [(sources[pk], fill) for pk, fill in sorted(found.items()) if is_sparse(fill, policy)]


def integrity_by_source(policy: DriftPolicy, *, now: datetime) -> dict[int, Fill]:
    """Returns the mean of 1 - null_field_rate over the last hour by source."""
    since = window_start(now, policy.null_rate_minutes)
    summed: dict[int, Fill] = defaultdict(Fill)
    for (source_id, _, _), fill in _sums(FieldFill.objects.filter(field=INTEGRITY, starts_at__gte=since)).items():
        summed[source_id] += fill
    return dict(summed)


def _sums(rows: QuerySet[FieldFill]) -> dict[FieldKey, Fill]:
    counted = rows.order_by().values_list("source_id", "payload_schema", "field").annotate(Sum("seen"), Sum("filled"))
    return {(source_id, schema, field): Fill(seen, filled) for source_id, schema, field, seen, filled in counted}
