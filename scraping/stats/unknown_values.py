"""Counts values that no schema knows, so that none is dropped silently. Only writer of UnknownValue.

Counted in memory, written by the worker's heartbeat with the other counts: a value that comes with every poll costs one
statement in half a minute.
"""

from __future__ import annotations

import threading
from collections import Counter
from datetime import datetime, timedelta
from typing import Protocol

from django.db import transaction
from django.db.models import F

from scraping.models import Source, UnknownValue
from scraping.payloads import UnrecognizedValue

WRITE_EVERY_SECONDS = 30.0
MAX_COUNTED = 500  # different values between two writes, of a source that invents values
MAX_ROWS = 2000  # per source

Key = tuple[str, str, str, str]  # source, schema, path, value


class Read(Protocol):
    """A payload, line-ups or figures."""

    @property
    def payload_schema(self) -> str: ...

    @property
    def unknown(self) -> tuple[UnrecognizedValue, ...]: ...


class UnknownCounts:
    """Counted by many threads, written by one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: Counter[Key] = Counter()
        self._written_at: datetime | None = None

    def count(self, source_key: str, read: Read) -> None:
        if not read.unknown:
            return
        with self._lock:
            for one in read.unknown:
                key = source_key, read.payload_schema, one.path, one.value
                if key in self._counted or len(self._counted) < MAX_COUNTED:
                    self._counted[key] += 1

    def flush(self, *, now: datetime, is_last: bool = False) -> int:
        """Writes the counts if they are due; returns the number of values. If it fails, the next call writes them."""
        counted = self._due(now, is_last)
        if not counted:
            return 0
        try:
            return _write(counted, now)
        except BaseException:
            with self._lock:
                self._counted += counted
                self._written_at = None
            raise

    def _due(self, now: datetime, is_last: bool) -> Counter[Key]:
        with self._lock:
            is_early = self._written_at is not None and now < self._written_at + timedelta(seconds=WRITE_EVERY_SECONDS)
            if not self._counted or (is_early and not is_last):
                return Counter()
            counted, self._counted, self._written_at = self._counted, Counter(), now
            return counted


_counts = UnknownCounts()
count = _counts.count
flush = _counts.flush


def _write(counted: Counter[Key], now: datetime) -> int:
    """Writes in a fixed order, so that two writers can't deadlock."""
    ids = dict(Source.objects.filter(key__in={key[0] for key in counted}).values_list("key", "pk"))
    wanted = sorted(
        (ids[source], schema, path, value, number)
        for (source, schema, path, value), number in counted.items()
        if source in ids
    )
    with transaction.atomic():
        full = {source_id for source_id in ids.values() if not _has_room(source_id)}
        _make_missing([row for row in wanted if row[0] not in full], now)
        for source_id, schema, path, value, number in wanted:
            rows = UnknownValue.objects.filter(source_id=source_id, payload_schema=schema, path=path, value=value)
            rows.update(times_seen=F("times_seen") + number, last_seen_at=now)
    return len(wanted)


def _has_room(source_id: int) -> bool:
    return UnknownValue.objects.filter(source_id=source_id).count() < MAX_ROWS


def _make_missing(rows: list[tuple[int, str, str, str, int]], now: datetime) -> None:
    UnknownValue.objects.bulk_create(
        (
            UnknownValue(
                source_id=source_id, payload_schema=schema, path=path, value=value, first_seen_at=now, last_seen_at=now
            )
            for source_id, schema, path, value, _ in rows
        ),
        ignore_conflicts=True,
    )
