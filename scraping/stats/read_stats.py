"""Counts the cost and completeness of a worker's reads in memory; the heartbeat writes rows and publishes metrics.

Guards against another statement in every poll: budgets cover a day and drift a quarter of an hour, so some seconds of
delay cost them nothing, and the counts that a killed worker loses are too few to matter. Sums that tables keep (bytes
and reads by source) are published by every process from there, not here.
"""

from __future__ import annotations

import math
import operator
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from cachetools import TTLCache
from django.db import transaction
from django.dispatch import receiver
from prometheus_client import REGISTRY
from prometheus_client import Counter as PrometheusCounter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scraping.models import Source, SourceDay
from scraping.payloads import Payload
from scraping.policies.drift import BUCKET_SECONDS, Fill
from scraping.readings import Reading, ReadMode
from scraping.signals import read_mode_changed
from scraping.stats import fill_rates, unknown_values
from scraping.stats.fill_rates import INTEGRITY, fields_of, schema_of
from victoryline.lib.bulk_sql import add_up
from victoryline.lib.times import bucket_start

FILLS_SECONDS = 30.0  # drift covers a quarter of an hour: its many small rows are not written at every heartbeat
SHOWN_SECONDS = 600.0  # then the match is over, or read by another worker
MAX_MATCHES = 2000
SUMS = ("bytes_in", "requests", "requests_blocked", "visits", "direct_reads", "attached_reads")
DIRECT = "direct"  # the type of a request that no page made
DayKey = tuple[str, date]
Fills = dict[tuple[str, str, str, datetime], list[int]]  # by source, schema, field, bucket: seen, filled

_requests_total = PrometheusCounter(
    "scraper_requests", "Requests made, by the browser's resource type or the read mode.", ["type"]
)
_blocked_total = PrometheusCounter("scraper_requests_blocked", "Requests of pages that were blocked.", ["type"])
_mode_changes_total = PrometheusCounter(
    "scraper_read_mode_changes", "Changes of a match's read mode.", ["source", "from", "to"]
)
_missing_total = PrometheusCounter(
    "integrity_required_missing", "Wanted fields that a source left out.", ["source", "field"]
)


@receiver(read_mode_changed)
def count_change(sender: object, *, source: str, **change: Any) -> None:
    _mode_changes_total.labels(source, change["from"], change["to"]).inc()


class NullRates(Collector):
    """The share of missing fields in the latest payload of every match that this worker has read lately."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: TTLCache[str, float] = TTLCache(MAX_MATCHES, SHOWN_SECONDS)

    def put(self, key: str, rate: float) -> None:
        with self._lock:
            self._latest[key] = rate

    def describe(self) -> Iterable[Metric]:
        return [GaugeMetricFamily("integrity_null_rate", "Share of the wanted fields that a match's payload lacks.")]

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            latest = dict(self._latest.items())
        rates = GaugeMetricFamily(
            "integrity_null_rate", "Share of the wanted fields that a match's payload lacks.", labels=["match_id"]
        )
        for key, rate in latest.items():
            rates.add_metric([key], rate)
        yield rates


null_rates = NullRates()
REGISTRY.register(null_rates)


class Cost(NamedTuple):
    """Traffic of readings, in the order of SUMS."""

    bytes_in: int = 0
    requests: int = 0
    requests_blocked: int = 0
    visits: int = 0
    direct_reads: int = 0
    attached_reads: int = 0

    @classmethod
    def of(cls, reading: Reading) -> Cost:
        return cls(
            bytes_in=reading.bytes_in,
            requests=reading.requests_made,
            requests_blocked=reading.requests_blocked,
            visits=int(reading.mode is ReadMode.VISIT),
            direct_reads=int(reading.mode is ReadMode.DIRECT),
            attached_reads=int(reading.mode is ReadMode.ATTACHED),
        )

    def plus(self, other: Cost) -> Cost:
        return Cost(*map(operator.add, self, other))


def add_costs(costs: Mapping[tuple[int, date], Cost]) -> int:
    """Adds to the daily sums, by source id and day. Only writer of SourceDay."""
    return add_up(SourceDay, by=("source", "day"), sums=SUMS, rows=dict(costs))


@dataclass
class _Counts:
    """Counts since the last write, by the source's key."""

    days: dict[DayKey, Cost] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    blocked: Counter[str] = field(default_factory=Counter)
    missing: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: _Counts) -> None:
        for key, cost in other.days.items():
            self.days[key] = self.days.get(key, Cost()).plus(cost)
        self.requests += other.requests
        self.blocked += other.blocked
        self.missing += other.missing

    def publish(self) -> None:
        for kind, number in self.requests.items():
            _requests_total.labels(kind).inc(number)
        for kind, number in self.blocked.items():
            _blocked_total.labels(kind).inc(number)
        for (source, name), number in self.missing.items():
            _missing_total.labels(source, name).inc(number)


class ReadStats:
    """Counted by the task threads and the loop thread of one worker, written by its heartbeat thread.

    The observer of the Reader: counts every reading, also of lists and of invalid ones, which cost as much, and every
    payload.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = _Counts()
        self._seen: Counter[tuple[Any, ...]] = Counter()  # source, schema, bucket, and which fields were filled
        self._fills: Fills = {}
        self._shares: dict[tuple[str, str], float] = {}  # rest of integrity below one, not counted yet
        self._fills_written_at: datetime | None = None

    def reading(self, source: str, reading: Reading) -> None:
        """Counts the cost of a reading of the source (by its key)."""
        cost = Cost.of(reading)
        key = source, reading.captured_at.date()
        with self._lock:
            counts = self._counts
            known = counts.days.get(key)
            counts.days[key] = cost if known is None else known.plus(cost)
            if reading.mode is ReadMode.DIRECT:
                counts.requests[DIRECT] += reading.requests_made
            else:
                counts.requests.update(reading.requests_by_type)
                counts.blocked.update(reading.blocked_by_type)

    def payload(self, source: str, payload: Payload) -> None:
        """Counts the completeness of a payload."""
        where = source, schema_of(payload), bucket_start(payload.captured_at, BUCKET_SECONDS)
        found = *where, *fields_of(payload).items()
        with self._lock:
            self._seen[found] += 1
            self._count_integrity(where, 1.0 - payload.integrity.null_field_rate)
            for name in payload.integrity.missing_fields:
                self._counts.missing[source, name] += 1
        if payload.unknown:
            unknown_values.count(source, payload)
        null_rates.put(f"{source}_{payload.source_event_id}", payload.integrity.null_field_rate)

    def _count_integrity(self, where: tuple[str, str, datetime], share: float) -> None:
        """Sums integrity in whole numbers; the rest below one is kept for the next payload."""
        source, schema, starts_at = where
        total = self._shares.get((source, schema), 0.0) + share
        whole = math.floor(total + 1e-9)
        self._shares[source, schema] = max(0.0, total - whole)
        fill = self._fills.setdefault((source, schema, INTEGRITY, starts_at), [0, 0])
        fill[0] += 1
        fill[1] += whole

    def flush(self, *, now: datetime, is_last: bool = False) -> int:
        """Writes the counts; returns the number of rows. If it fails, the next heartbeat writes them."""
        with self._lock:
            counts, self._counts = self._counts, _Counts()
            fills = self._due_fills(now, is_last)
        try:
            written = _write(counts.days, fills)
        except BaseException:
            self._restore(counts, fills)
            raise
        counts.publish()
        return written + unknown_values.flush(now=now, is_last=is_last)

    def _due_fills(self, now: datetime, is_last: bool) -> Fills:
        """Returns all fills if they are due or this is the last write; else none."""
        due_at = self._fills_written_at and self._fills_written_at + timedelta(seconds=FILLS_SECONDS)
        if due_at is not None and now < due_at and not is_last:
            return {}
        fills, self._fills, self._fills_written_at = self._fills, {}, now
        seen, self._seen = self._seen, Counter()
        for (source, schema, starts_at, *found), number in seen.items():
            for name, is_filled in found:
                fill = fills.setdefault((source, schema, name, starts_at), [0, 0])
                fill[0] += number
                fill[1] += number * is_filled
        return fills

    def _restore(self, counts: _Counts, fills: Fills) -> None:
        with self._lock:
            self._counts.add(counts)
            for key, (seen, filled) in fills.items():
                fill = self._fills.setdefault(key, [0, 0])
                fill[0] += seen
                fill[1] += filled
            if fills:
                self._fills_written_at = None


def _write(days: Mapping[DayKey, Cost], fills: Fills) -> int:
    """Writes in one transaction. Counts of a deleted source are dropped."""
    if not days and not fills:
        return 0
    keys = {key[0] for key in days} | {key[0] for key in fills}
    ids = dict(Source.objects.filter(key__in=keys).values_list("key", "pk"))
    costs = {(ids[source], day): cost for (source, day), cost in days.items() if source in ids}
    found = {
        (ids[source], schema, name, starts_at): Fill(*fill)
        for (source, schema, name, starts_at), fill in fills.items()
        if source in ids
    }
    with transaction.atomic():
        return add_costs(costs) + fill_rates.add(found)
