"""Drift as arithmetic: how often a field was filled lately, against how often it used to be.

Guards against a source that changes bit by bit: every payload still passes, only less and less is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

BUCKET_SECONDS = 300


@dataclass(frozen=True)
class DriftPolicy:
    drop_points: float = 30.0  # percentage points that a fill rate must fall
    window_minutes: int = 15
    baseline_hours: int = 24
    # Fewer readings tell nothing, neither of what is usual nor of what is now.
    least_baseline: int = 50
    least_window: int = 20
    null_rate: float = 0.20  # of the wanted fields, over an hour: the source as a whole is not what it should be
    null_rate_minutes: int = 60
    # More than so many parse failures in a row, of any match, and the source counts as changed: asked rarely, until
    # somebody has taught its adapter the new layout. The first good reading ends that.
    failures: int = 10
    retry_seconds: float = 300.0


@dataclass(frozen=True)
class Fill:
    seen: int = 0
    filled: int = 0

    @property
    def percent(self) -> float:
        return 100 * self.filled / self.seen if self.seen else 0.0

    def __add__(self, other: Fill) -> Fill:
        return Fill(self.seen + other.seen, self.filled + other.filled)


def bucket_start(at: datetime) -> datetime:
    return at.replace(microsecond=0) - timedelta(seconds=int(at.timestamp()) % BUCKET_SECONDS)


def window_start(now: datetime, minutes: int) -> datetime:
    """The window is made of whole buckets: the present one, and those before it that began within so many minutes."""
    return bucket_start(now - timedelta(minutes=minutes) + timedelta(seconds=BUCKET_SECONDS))


def points_fallen(baseline: Fill, window: Fill, policy: DriftPolicy) -> float | None:
    """How far the fill rate has fallen, where that counts as drift; None where it does not, or nothing can be said."""
    if baseline.seen < policy.least_baseline or window.seen < policy.least_window:
        return None
    points = baseline.percent - window.percent
    return points if points > policy.drop_points else None


def is_sparse(integrity: Fill, policy: DriftPolicy) -> bool:
    """Has the source left out too many of the wanted fields, whatever is usual for it?"""
    return integrity.seen >= policy.least_window and integrity.filled < integrity.seen * (1 - policy.null_rate)
