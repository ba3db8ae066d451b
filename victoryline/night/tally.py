"""What became of a source's calls, in the buckets of its window: as the table of outcomes keeps them."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from scraping.policies.source_breaker import BUCKET_SECONDS, Bucket, CallWindow, sum_buckets
from victoryline.lib.times import bucket_start
from victoryline.night.moments import BEGIN

BUCKET = timedelta(seconds=BUCKET_SECONDS)


class Tally:
    def __init__(self) -> None:
        self._buckets: deque[Bucket] = deque()  # the last one is counted beside it, and put in when somebody looks
        self._start = self._until = BEGIN - BUCKET
        self._calls = self._bad = self._retries = 0

    def count(self, now: datetime, *, is_bad: bool, is_retry: bool) -> None:
        if now >= self._until:
            self._start = bucket_start(now, BUCKET_SECONDS)
            self._until = self._start + BUCKET
            self._buckets.append(Bucket(self._start))
            self._calls = self._bad = self._retries = 0
        self._calls += 1
        self._bad += is_bad
        self._retries += is_retry

    def window(self, now: datetime, seconds: float, *, since: datetime | None = None) -> CallWindow:
        start = now - timedelta(seconds=seconds)
        if self._buckets:
            self._buckets[-1] = Bucket(self._start, self._calls, self._bad, self._retries)
        while len(self._buckets) > 1 and self._buckets[0].starts_at < start:
            self._buckets.popleft()
        return sum_buckets(self._buckets, since=max(start, since) if since else start)
