"""What a worker's reads cost, how complete they were, which way they took: counted in memory, written by the heartbeat.

Guards against a statement more in every poll: budgets look at a day and drift at a quarter of an hour, so some seconds
of delay cost them nothing, and what a killed worker had not written yet is too little to matter.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction

from scraping.models import Source
from scraping.payloads import Payload
from scraping.policies.drift import BUCKET_SECONDS, Fill
from scraping.readings import Reading, ReadMode
from scraping.stats import fill_rates, metrics, traffic, unknown_values
from scraping.stats.integrity import INTEGRITY, fields_of, schema_of
from scraping.stats.traffic import Cost
from victoryline.lib.times import bucket_start

FILLS_SECONDS = 30.0  # drift is judged over a quarter of an hour: its many small rows need not go with every heartbeat
DIRECT = "direct"  # the type of a request that no page made
DayKey = tuple[str, date]
Fills = dict[tuple[str, str, str, datetime], list[int]]  # by source, schema, field, bucket: seen, filled


@dataclass
class _Counted:
    """Everything counted since the last writing, by the source's key."""

    days: dict[DayKey, Cost] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    blocked: Counter[str] = field(default_factory=Counter)
    missing: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: _Counted) -> None:
        for key, cost in other.days.items():
            self.days[key] = self.days.get(key, Cost()).plus(cost)
        self.requests += other.requests
        self.blocked += other.blocked
        self.missing += other.missing


class Tallies:
    """Counted by the task threads and the loop thread of one worker, written by its heartbeat thread.

    The Reader tells of every reading (also of lists, and of those that turn out to be useless: they cost as much)
    and of every payload. Changes of the read mode are counted where they are told (`tally_metrics`).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted = _Counted()
        self._seen: Counter[tuple[Any, ...]] = Counter()  # source, schema, bucket, and which fields were filled
        self._fills: Fills = {}
        self._shares: dict[tuple[str, str], float] = {}  # parts of a whole that `integrity` has not counted yet
        self._fills_written_at: datetime | None = None

    def reading(self, source: str, reading: Reading) -> None:
        """What a reading of the source (by its key) cost."""
        cost = Cost.of(reading)
        key = source, reading.captured_at.date()
        with self._lock:
            counted = self._counted
            known = counted.days.get(key)
            counted.days[key] = cost if known is None else known.plus(cost)
            if reading.mode is ReadMode.DIRECT:
                counted.requests[DIRECT] += reading.requests_made
            else:
                counted.requests.update(reading.requests_by_type)
                counted.blocked.update(reading.blocked_by_type)

    def payload(self, source: str, payload: Payload) -> None:
        """How complete a payload was that is fit to be served."""
        where = source, schema_of(payload), bucket_start(payload.captured_at, BUCKET_SECONDS)
        found = *where, *fields_of(payload).items()
        with self._lock:
            self._seen[found] += 1
            self._count_integrity(where, 1.0 - payload.integrity.null_field_rate)
            for name in payload.integrity.missing_fields:
                self._counted.missing[source, name] += 1
        unknown_values.count(source, payload)
        metrics.null_rates.put(f"{source}_{payload.source_event_id}", payload.integrity.null_field_rate)

    def _count_integrity(self, where: tuple[str, str, datetime], share: float) -> None:
        """Its mean, in whole numbers: what is less than one is kept for the next payload."""
        source, schema, starts_at = where
        total = self._shares.get((source, schema), 0.0) + share
        whole = math.floor(total + 1e-9)
        self._shares[source, schema] = max(0.0, total - whole)
        fill = self._fills.setdefault((source, schema, INTEGRITY, starts_at), [0, 0])
        fill[0] += 1
        fill[1] += whole

    def flush(self, *, now: datetime, is_last: bool = False) -> int:
        """Write what was counted; how many rows. What cannot be written now is written with the next heartbeat."""
        with self._lock:
            counted, self._counted = self._counted, _Counted()
            fills = self._due_fills(now, is_last)
        try:
            written = _write(counted.days, fills)
        except BaseException:
            self._take_back(counted, fills)
            raise
        metrics.publish(counted.requests, counted.blocked, counted.missing)
        return written + unknown_values.flush(now=now, is_last=is_last)

    def _due_fills(self, now: datetime, is_last: bool) -> Fills:
        """All of them now and then, and at the end; else none."""
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

    def _take_back(self, counted: _Counted, fills: Fills) -> None:
        with self._lock:
            self._counted.add(counted)
            for key, (seen, filled) in fills.items():
                fill = self._fills.setdefault(key, [0, 0])
                fill[0] += seen
                fill[1] += filled
            if fills:
                self._fills_written_at = None


def _write(days: Mapping[DayKey, Cost], fills: Fills) -> int:
    """One transaction. A source that is no longer there takes what was counted of it along."""
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
        return traffic.add(costs) + fill_rates.add(found)
