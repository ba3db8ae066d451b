"""Counts the cost and completeness of a worker's reads in memory; the heartbeat writes rows and publishes metrics.

Guards against another statement in every poll: budgets cover a day and drift a quarter of an hour, so some seconds of
delay cost them nothing, and the counts that a killed worker loses are too few to matter. Sums that tables keep (bytes
and reads by source) are published by every process from there, not here. Only writer of SourceDay and UnknownValue.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, F
from django.dispatch import receiver
from prometheus_client import Counter, Histogram

from scraping.models import MatchRef, Source, SourceDay, UnknownValue
from scraping.models.traffic import MINUTE
from scraping.payloads import Parsed, Payload
from scraping.policies.drift import BUCKET_SECONDS
from scraping.readings import Reading, ReadMode
from scraping.signals import read_mode_changed
from scraping.stats import attempt_metrics, fill_rates, rates
from scraping.stats.fill_rates import INTEGRITY, fields_of, schema_of
from victoryline.lib.bulk_sql import Sums, add_up, bucket_start, count

DETAILS_SECONDS = 30.0  # drift covers a quarter of an hour: its many small rows are not written at every heartbeat
COUNTED_MODES = (ReadMode.VISIT, ReadMode.DIRECT, ReadMode.ATTACHED, ReadMode.IN_PAGE)
MAX_UNKNOWN = 500  # different values between two writes, of a source that invents values
MAX_UNKNOWN_ROWS = 2000  # per source
UNKNOWN_COLUMNS = ("source_id", "payload_schema", "path", "value")

_requests_total = Counter(
    "scraper_requests", "Requests made, by the browser's resource type or the read mode.", ["type"]
)
_duration = Histogram(
    "scraper_scrape_duration_seconds", "Duration of readings.", ["domain"], buckets=(0.05, 0.1, 0.3, 1, 3, 10, 30)
)
_blocked_total = Counter("scraper_requests_blocked", "Requests of pages that were blocked.", ["type"])
_mode_changes_total = Counter("scraper_read_mode_changes", "Changes of a match's read mode.", ["source", "from", "to"])


@receiver(read_mode_changed)
def count_change(sender: object, *, source: str, **change: Any) -> None:
    _mode_changes_total.labels(source, change["from"], change["to"]).inc()


class Cost(NamedTuple):
    """Traffic of readings: the columns of SourceDay that are summed."""

    bytes_in: int = 0
    requests: int = 0
    requests_blocked: int = 0
    visits: int = 0
    direct_reads: int = 0
    attached_reads: int = 0
    in_page_reads: int = 0

    @classmethod
    def of(cls, reading: Reading) -> Cost:
        modes = (int(reading.mode is mode) for mode in COUNTED_MODES)
        return cls(reading.bytes_in, reading.requests_made, reading.requests_blocked, *modes)


SUMS = Cost._fields


def add_costs(costs: Mapping[tuple[Any, ...], Sequence[int]]) -> int:
    return add_up(SourceDay, by=("source", "day"), sums=SUMS, rows=costs)


class ReadStats:
    """Counted by the task threads and the loop thread of one worker, written by its heartbeat thread.

    The observer of the Reader: counts every reading, also of lists and of invalid ones, which cost as much, and every
    payload.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._days: Sums = {}  # by source, day: SUMS
        self._latencies: Sums = {}  # by source, minute: readings by duration
        self._fills: Sums = {}  # by source, schema, field, bucket: seen, filled
        self._unknown: Sums = {}  # by source, schema, path, value: times seen
        self._shares: dict[tuple[str, str], float] = {}  # rest of integrity below one, not counted yet
        self._details_due_at: datetime | None = None

    def reading(self, source: str, reading: Reading) -> None:
        """Counts the cost of a reading of the source (by its key)."""
        minute = bucket_start(reading.captured_at, MINUTE)
        with self._lock:
            count(self._days, {(source, reading.captured_at.date()): Cost.of(reading)})
            count(self._latencies, {(source, minute): rates.latency_counts(reading.duration_ms)})
        _duration.labels(source).observe(reading.duration_ms / 1000)
        if reading.mode.is_requested:
            _requests_total.labels(reading.mode.value).inc(reading.requests_made)
            return
        for kind, number in reading.requests_by_type.items():
            _requests_total.labels(kind).inc(number)
        for kind, number in reading.blocked_by_type.items():
            _blocked_total.labels(kind).inc(number)

    def payload(self, source: str, payload: Payload) -> None:
        schema, starts_at = schema_of(payload), bucket_start(payload.captured_at, BUCKET_SECONDS)
        integrity = payload.integrity
        with self._lock:
            for name, is_filled in fields_of(payload).items():
                count(self._fills, {(source, schema, name, starts_at): (1, int(is_filled))})
            # Integrity is summed in whole numbers; the rest below one is kept for the next payload.
            total = self._shares.get((source, schema), 0.0) + 1.0 - integrity.null_field_rate
            whole = math.floor(total + 1e-9)
            self._shares[source, schema] = max(0.0, total - whole)
            count(self._fills, {(source, schema, INTEGRITY, starts_at): (1, whole)})
        attempt_metrics.completeness(source, payload)
        self.unknown(source, payload)

    def unknown(self, source: str, read: Parsed) -> None:
        """Counts the unknown values of a reading, and its parts that could not be read."""
        values = [(one.path, one.value) for one in read.unknown]
        broken = [(one.path, one.expected) for one in read.integrity.broken_parts]
        with self._lock:
            for path, value in values + broken:
                key = source, read.payload_schema, path, value
                if key in self._unknown or len(self._unknown) < MAX_UNKNOWN:
                    count(self._unknown, {key: (1,)})

    def flush(self, *, now: datetime, is_last: bool = False) -> int:
        """Writes the counts; returns the number of rows. If it fails, the next heartbeat writes them."""
        with self._lock:
            days, self._days = self._days, {}
            latencies, self._latencies = self._latencies, {}
            fills: Sums = {}
            unknown: Sums = {}
            if is_due := is_last or self._details_due_at is None or now >= self._details_due_at:
                fills, self._fills = self._fills, {}
                unknown, self._unknown = self._unknown, {}
                self._details_due_at = now + timedelta(seconds=DETAILS_SECONDS)
        try:
            if is_due:
                attempt_metrics.end_series(_watched)
            return _write(days, latencies, fills, unknown, now)
        except BaseException:
            with self._lock:
                for kept, rows in (
                    (self._days, days), (self._latencies, latencies), (self._fills, fills), (self._unknown, unknown)
                ):  # fmt: skip
                    count(kept, rows)
                if fills or unknown:
                    self._details_due_at = None
            raise


def _watched() -> set[str]:
    rows = MatchRef.objects.filter(is_watched=True).values_list("source__key", "source_event_id")
    return {f"{source}_{event}" for source, event in rows}


def _write(days: Sums, latencies: Sums, fills: Sums, unknown: Sums, now: datetime) -> int:
    """Writes in one transaction. Counts of a deleted source are dropped."""
    keys = {key[0] for rows in (days, fills, unknown) for key in rows}
    if not keys:
        return 0
    ids = dict(Source.objects.filter(key__in=keys).values_list("key", "pk"))
    costs, timed, filled, seen = (
        {(ids[source], *rest): numbers for (source, *rest), numbers in rows.items() if source in ids}
        for rows in (days, latencies, fills, unknown)
    )
    with transaction.atomic():
        rates.add_latencies(timed)
        return add_costs(costs) + fill_rates.add(filled) + _add_unknown(seen, now)


def _add_unknown(counts: Mapping[tuple[Any, ...], Sequence[int]], now: datetime) -> int:
    """Adds to the counts of unknown values, in a fixed order, so that two writers can't deadlock; returns how many."""
    if not counts:
        return 0
    of_sources = UnknownValue.objects.filter(source__in={key[0] for key in counts}).order_by()
    numbers = dict(of_sources.values_list("source").annotate(Count("pk")))
    UnknownValue.objects.bulk_create(
        (
            UnknownValue(**dict(zip(UNKNOWN_COLUMNS, key, strict=True)), first_seen_at=now, last_seen_at=now)
            for key in sorted(counts)
            if numbers.get(key[0], 0) < MAX_UNKNOWN_ROWS
        ),
        ignore_conflicts=True,
    )
    for key, (number,) in sorted(counts.items()):
        rows = UnknownValue.objects.filter(**dict(zip(UNKNOWN_COLUMNS, key, strict=True)))
        rows.update(times_seen=F("times_seen") + number, last_seen_at=now)
    return len(counts)
