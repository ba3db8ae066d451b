"""Drift: how often a field was filled lately, compared with how often it usually is. Pure.

Guards against a source that changes bit by bit: every payload still passes validation, but holds less and less.
"""

from __future__ import annotations

from dataclasses import dataclass

BUCKET_SECONDS = 300


@dataclass(frozen=True)
class DriftPolicy:
    drop_points: float = 30.0  # percentage points that a fill rate must fall
    window_minutes: int = 15
    baseline_hours: int = 24
    # Fewer readings are no evidence, neither of the usual rate nor of the present one.
    least_baseline: int = 50
    least_window: int = 20
    null_rate: float = 0.20  # of the wanted fields, over an hour: the source as a whole has degraded
    null_rate_minutes: int = 60
    # More parse failures in a row than this, of any match, and the source counts as changed: it is polled rarely until
    # its adapter is updated. The first good reading ends that.
    failures: int = 10
    retry_seconds: float = 300.0


@dataclass(frozen=True)
class Fill:
    """Number of readings, and of those in which a field had a value."""

    seen: int = 0
    filled: int = 0

    @property
    def percent(self) -> float:
        return 100 * self.filled / self.seen if self.seen else 0.0

    def __add__(self, other: Fill) -> Fill:
        return Fill(self.seen + other.seen, self.filled + other.filled)


def points_fallen(baseline: Fill, window: Fill, policy: DriftPolicy) -> float | None:
    """Returns how far the fill rate has fallen where that counts as drift; None otherwise or without evidence."""
    if baseline.seen < policy.least_baseline or window.seen < policy.least_window:
        return None
    points = baseline.percent - window.percent
    return points if points > policy.drop_points else None


def is_sparse(integrity: Fill, policy: DriftPolicy) -> bool:
    """Returns whether the source leaves out too many of the wanted fields, independent of its usual rate."""
    return integrity.seen >= policy.least_window and integrity.filled < integrity.seen * (1 - policy.null_rate)
