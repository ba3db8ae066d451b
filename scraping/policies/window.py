"""How a source has done lately: its calls in small buckets of time, summed over a window that slides.

Guards against going on with a source that answers some and fails many: no match fails often enough in a row for its own
breaker, and all of them together waste the traffic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

BUCKET_SECONDS = 10


@dataclass(frozen=True)
class WindowPolicy:
    window_seconds: float = 600.0
    min_calls: int = 30  # fewer tell nothing
    bad_percent: float = 35.0
    # A source that stumbles for some seconds is no case for a quarter of an hour of silence: the breakers of its
    # matches cover that. Without this, a young window would open on the first hiccup, having seen little else.
    min_bad_seconds: float = 60.0


@dataclass(frozen=True)
class Bucket:
    starts_at: datetime
    calls: int = 0
    bad: int = 0
    retries: int = 0


@dataclass(frozen=True)
class Window:
    calls: int = 0
    bad: int = 0
    retries: int = 0
    bad_seconds: float = 0.0  # from the first bad call to the last

    @property
    def bad_percent(self) -> float:
        return 100 * self.bad / self.calls if self.calls else 0.0


def bucket_start(at: datetime) -> datetime:
    return at - timedelta(seconds=at.timestamp() % BUCKET_SECONDS)


def summed(buckets: Iterable[Bucket], *, since: datetime) -> Window:
    """The calls since then. A bucket that began earlier is left out whole: half of what it holds is older."""
    counted = [bucket for bucket in buckets if bucket.starts_at >= since]
    bad = [bucket.starts_at for bucket in counted if bucket.bad]
    return Window(
        calls=sum(bucket.calls for bucket in counted),
        bad=sum(bucket.bad for bucket in counted),
        retries=sum(bucket.retries for bucket in counted),
        bad_seconds=(max(bad) - min(bad)).total_seconds() + BUCKET_SECONDS if bad else 0.0,
    )


def is_failing(window: Window, policy: WindowPolicy) -> bool:
    is_often = window.calls >= policy.min_calls and window.bad_percent >= policy.bad_percent
    return is_often and window.bad_seconds >= policy.min_bad_seconds
