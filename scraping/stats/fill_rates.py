"""Fill rates of the sources' fields: written, compared with what is usual, and told. Sole writer of FieldFill."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import TruncHour

from scraping.models import FieldFill, MatchRef, Source
from scraping.payloads import MatchState
from scraping.policies.drift import DriftPolicy, Fill, is_sparse, points_fallen, window_start
from scraping.stats.integrity import INTEGRITY, STATE_FIELDS, USUAL_WAY, stage_of
from victoryline.lib.bulk_sql import add_up

MOST_NAMED = 10
FieldKey = tuple[int, str, str]  # source, payload schema, field
FillKey = tuple[int, str, str, datetime]  # and bucket


def add(fills: Mapping[FillKey, Fill]) -> int:
    rows = {key: (fill.seen, fill.filled) for key, fill in fills.items()}
    return add_up(FieldFill, by=("source", "payload_schema", "field", "starts_at"), sums=("seen", "filled"), rows=rows)


@dataclass(frozen=True)
class FallenField:
    """A field that a source fills less often than it used to."""

    source: Source
    payload_schema: str
    field: str
    baseline: Fill
    window: Fill

    @property
    def name(self) -> str:
        """What it is about, and when: `venue (cricket, play)`."""
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


@dataclass(frozen=True)
class SparseSource:
    """A source that leaves out more of the wanted fields than it may."""

    source: Source
    integrity: Fill

    @property
    def null_rate(self) -> float:
        return 1 - self.integrity.percent / 100


def usual_and_present(policy: DriftPolicy, *, now: datetime) -> tuple[dict[FieldKey, Fill], dict[FieldKey, Fill]]:
    """How often each field was filled in the hours before the window, and in the window."""
    since = window_start(now, policy.window_minutes)
    oldest = since - timedelta(hours=policy.baseline_hours)
    usual = _sums(FieldFill.objects.filter(starts_at__gte=oldest, starts_at__lt=since))
    return usual, _sums(FieldFill.objects.filter(starts_at__gte=since, starts_at__lte=now))


def by_hour(*, since: datetime) -> dict[FieldKey, dict[datetime, Fill]]:
    """For people to look at."""
    rows = FieldFill.objects.filter(starts_at__gte=since).annotate(hour=TruncHour("starts_at", tzinfo=UTC)).order_by()
    sums = rows.values_list("source_id", "payload_schema", "field", "hour").annotate(Sum("seen"), Sum("filled"))
    found: dict[FieldKey, dict[datetime, Fill]] = defaultdict(dict)
    for source_id, schema, field, hour, seen, filled in sums:
        found[source_id, schema, field][hour] = Fill(seen, filled)
    return found


def fallen_fields(policy: DriftPolicy, *, now: datetime) -> list[FallenField]:
    """Compared with matches in the same stage, in the hours before the window: what is empty by nature was so then."""
    of_baseline, of_window = usual_and_present(policy, now=now)
    sources = _sources(key[0] for key in of_window)
    return [
        FallenField(sources[source_id], schema, field, of_baseline[source_id, schema, field], window)
        for (source_id, schema, field), window in sorted(of_window.items())
        if points_fallen(of_baseline.get((source_id, schema, field), Fill()), window, policy) is not None
    ]


def matches_without(one: FallenField, policy: DriftPolicy, *, now: datetime) -> tuple[list[str], int]:
    """Which of the matches that were read lately, in that stage, lack the field now, and how many were read.

    Where it is one of many, the match is to blame rather than the source. Only for fields of the state.
    """
    is_filled = next((filled for name, filled, _, _ in STATE_FIELDS if name == one.field), None)
    if is_filled is None:
        return [], 0
    since = window_start(now, policy.window_minutes)
    rows = MatchRef.objects.filter(source=one.source, captured_at__gte=since).values_list("source_event_id", "payload")
    states = {key: MatchState.model_validate(payload) for key, payload in rows if payload}
    of_stage = {key: state for key, state in states.items() if stage_of(state) == one.payload_schema.split("/")[2]}
    lacking = sorted(f"{one.source.key}_{key}" for key, state in of_stage.items() if not is_filled(state))
    return lacking[:MOST_NAMED], len(of_stage)


def sparse_sources(policy: DriftPolicy, *, now: datetime) -> list[SparseSource]:
    sources = _sources(None)
    found = integrity_by_source(policy, now=now)
    return [SparseSource(sources[pk], fill) for pk, fill in sorted(found.items()) if is_sparse(fill, policy)]


def integrity_by_source(policy: DriftPolicy, *, now: datetime) -> dict[int, Fill]:
    """The mean of 1 - null_field_rate over the last hour. Matches that are over count no more than others."""
    since = window_start(now, policy.null_rate_minutes)
    summed: dict[int, Fill] = defaultdict(Fill)
    for (source_id, _, _), fill in _sums(FieldFill.objects.filter(field=INTEGRITY, starts_at__gte=since)).items():
        summed[source_id] += fill
    return dict(summed)


def _sums(rows: QuerySet[FieldFill]) -> dict[FieldKey, Fill]:
    counted = rows.order_by().values_list("source_id", "payload_schema", "field").annotate(Sum("seen"), Sum("filled"))
    return {(source_id, schema, field): Fill(seen, filled) for source_id, schema, field, seen, filled in counted}


def _sources(ids: Iterable[int] | None) -> dict[int, Source]:
    wanted = Q() if ids is None else Q(pk__in=set(ids))
    return {source.pk: source for source in Source.objects.filter(wanted).defer("metadata")}
