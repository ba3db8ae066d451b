"""Counts the outcomes of a worker's calls per source in memory and writes them with every heartbeat.

Saves one statement in every poll. The source breaker evaluates ten minutes, so a delay of seconds does not matter, nor
do the few calls that a killed worker had not written yet.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import F, Sum

from scraping.models import OutcomeBucket
from scraping.policies.source_breaker import BUCKET_SECONDS, CallWindow
from scraping.recovery import breakers
from victoryline.lib.times import bucket_start

Key = tuple[int, datetime]  # source and bucket


class Outcomes:
    """Counted by the task threads of one worker, written by its heartbeat thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[Key] = Counter()
        self._bad: Counter[Key] = Counter()
        self._retries: Counter[Key] = Counter()

    def count(self, source_id: int, *, is_bad: bool = False, is_retry: bool = False, now: datetime) -> None:
        key = source_id, bucket_start(now, BUCKET_SECONDS)
        with self._lock:
            self._calls[key] += 1
            self._bad[key] += is_bad
            self._retries[key] += is_retry

    def flush(self, *, now: datetime) -> int:
        """Writes the counts and returns the number of calls. On an error they are kept for the next heartbeat."""
        with self._lock:
            calls, bad, retries = self._calls, self._bad, self._retries
            self._calls, self._bad, self._retries = Counter(), Counter(), Counter()
        try:
            with transaction.atomic():
                for key in sorted(calls):  # in one order, two workers never deadlock
                    _add(key, calls=calls[key], bad=bad[key], retries=retries[key])
                for source_id in sorted({key[0] for key in calls}):
                    breakers.add_totals(source_id, calls=_of(calls, source_id), bad=_of(bad, source_id), now=now)
        except BaseException:
            with self._lock:
                self._calls += calls
                self._bad += bad
                self._retries += retries
            raise
        return calls.total()


def _of(counted: Counter[Key], source_id: int) -> int:
    return sum(number for key, number in counted.items() if key[0] == source_id)


def _add(key: Key, *, calls: int, bad: int, retries: int) -> None:
    source_id, starts_at = key
    bucket = OutcomeBucket.objects.filter(source_id=source_id, starts_at=starts_at)
    more = {"calls": F("calls") + calls, "bad": F("bad") + bad, "retries": F("retries") + retries}
    if bucket.update(**more):
        return
    # Two workers may create the same bucket at once: the second one finds it, and both add to it.
    OutcomeBucket.objects.bulk_create([OutcomeBucket(source_id=source_id, starts_at=starts_at)], ignore_conflicts=True)
    bucket.update(**more)


def windows(source_ids: Iterable[int], *, since: datetime) -> dict[int, CallWindow]:
    """Returns the calls per source since a time."""
    buckets = OutcomeBucket.objects.filter(source_id__in=list(source_ids), starts_at__gte=since).order_by()
    sums = buckets.values_list("source_id").annotate(Sum("calls"), Sum("bad"), Sum("retries"))
    return {source_id: CallWindow(calls, bad, retries) for source_id, calls, bad, retries in sums}
