"""The system's grade, every 15 seconds: HEALTHY, DEGRADED, FAILING, RECOVERING.

`grade` is the whole state machine, pure. A system with old or missing data changes to DEGRADED or FAILING at once; the
return is slower: after two intervals without trouble, or after a recovery that worked. The number of these intervals
is kept in the leader's memory only (`grade_changes`). Every reason says how things are now and names a match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from monitoring import audit
from monitoring.models import Grade, GradeChange
from monitoring.queries import LiveMatch, percentile

DEGRADED_FROM_SECONDS: Final = 60.0
FAILING_FROM_SECONDS: Final = 120.0
STALLED_FROM_SECONDS: Final = 90.0
CALM_INTERVALS_TO_HEALTHY: Final = 2
FRESH_AGAIN: Final = "data is fresh again"
RECOVERY_SECONDS: Final = audit.EVALUATED_AFTER.total_seconds()
# In a long outage scrapers are replaced repeatedly: after a failed recovery the next ones do not change the grade.
FAILED_RECOVERY_SECONDS: Final = 600.0


@dataclass(frozen=True)
class AgeStats:
    median: float = 0.0
    p95: float = 0.0
    max: float = 0.0
    count: int = 0
    late: int = 0  # number at or over DEGRADED_FROM_SECONDS
    stalest: LiveMatch | None = None

    @classmethod
    def of(cls, matches: Sequence[LiveMatch]) -> AgeStats:
        ages = [match.age_seconds for match in matches]
        late = sum(age >= DEGRADED_FROM_SECONDS for age in ages)
        stalest = max(matches, key=lambda match: match.age_seconds, default=None)
        return cls(percentile(ages, 0.5), percentile(ages, 0.95), max(ages, default=0.0), len(ages), late, stalest)


@dataclass(frozen=True)
class Trouble:
    """Reasons other than old data: of /health `down` (failing), or `degraded` and critical alerts."""

    failing: str = ""
    degraded: str = ""


NO_TROUBLE: Final = Trouble()


@dataclass(frozen=True)
class Recovery:
    """The latest recovery action since the system began to fail."""

    age_seconds: float
    has_succeeded: bool  # a task has succeeded since
    seconds_since_failed: float | None = None  # since an earlier one failed; None: none did

    @property
    def is_under_way(self) -> bool:
        is_first = self.seconds_since_failed is None or self.seconds_since_failed >= FAILED_RECOVERY_SECONDS
        return is_first and self.age_seconds < RECOVERY_SECONDS


@dataclass(frozen=True)
class GradeState:
    grade: Grade
    calm_intervals: int = 0
    reason: str = ""


def grade(
    previous: GradeState,
    freshness: AgeStats,
    stall_seconds: float,
    recovery: Recovery | None = None,
    trouble: Trouble = NO_TROUBLE,
) -> GradeState:
    if failing := _failing(freshness, stall_seconds) or trouble.failing:
        if recovery is not None and recovery.is_under_way and previous.grade in {Grade.FAILING, Grade.RECOVERING}:
            return GradeState(Grade.RECOVERING, 0, f"recovery is under way: {failing}")
        return GradeState(Grade.FAILING, 0, failing)
    is_waiting = previous.grade == Grade.RECOVERING and recovery is not None and not recovery.has_succeeded
    if late := _degraded(freshness) or trouble.degraded:
        if is_waiting:
            return GradeState(Grade.RECOVERING, 0, f"recovery is under way: {late}")
        return GradeState(Grade.DEGRADED, 0, late)
    if previous.grade == Grade.HEALTHY:
        return previous
    if is_waiting and freshness.count:  # a recovery ends with the first successful reading after it
        return replace(previous, reason="recovery is under way: nothing was read since")
    if previous.grade == Grade.FAILING:
        return GradeState(Grade.RECOVERING, 1, FRESH_AGAIN)
    calm = previous.calm_intervals + 1
    if previous.grade == Grade.RECOVERING or calm >= CALM_INTERVALS_TO_HEALTHY:
        return GradeState(Grade.HEALTHY, calm, "data is fresh")
    return GradeState(previous.grade, calm, FRESH_AGAIN)


def _failing(freshness: AgeStats, stall_seconds: float) -> str:
    stalest = freshness.stalest or "the stalest live match"
    if stall_seconds >= STALLED_FROM_SECONDS:
        return f"nothing has been read for {stall_seconds:.0f} s ({stalest})"
    if freshness.max >= FAILING_FROM_SECONDS:
        return str(stalest)
    return ""


def _degraded(freshness: AgeStats) -> str:
    if max(freshness.median, freshness.p95) < DEGRADED_FROM_SECONDS:
        return ""
    matches = "match" if freshness.count == 1 else "matches"
    are = "is" if freshness.late == 1 else "are"
    late = f"{freshness.late} of {freshness.count} live {matches} {are} {DEGRADED_FROM_SECONDS:.0f} s old or older"
    return f"{late} ({freshness.stalest})" if freshness.stalest else late


def current_grade(freshness: AgeStats, succeeded_at: datetime | None, trouble: Trouble, now: datetime) -> GradeState:
    """Returns the grade for readers: an outage shows even if the scheduler is dead, though only it ends one."""
    stored = stored_grade()
    seen = assess(stored, freshness, succeeded_at, trouble, now)
    if stored.grade == Grade.RECOVERING and seen.grade == Grade.HEALTHY:
        return replace(stored, reason=FRESH_AGAIN)
    return seen


def stored_grade() -> GradeState:
    latest = GradeChange.objects.order_by("-pk").first()  # not by its time: clocks may be set back
    return GradeState(Grade(latest.to_grade), 0, latest.reason) if latest else GradeState(Grade.HEALTHY)


def assess(
    previous: GradeState, freshness: AgeStats, succeeded_at: datetime | None, trouble: Trouble, now: datetime
) -> GradeState:
    stall = (now - succeeded_at).total_seconds() if freshness.count and succeeded_at else 0.0
    return grade(previous, freshness, stall, _recovery(previous.grade, succeeded_at, now), trouble)


def _recovery(previous: Grade, succeeded_at: datetime | None, now: datetime) -> Recovery | None:
    if previous not in {Grade.FAILING, Grade.RECOVERING}:
        return None
    began = GradeChange.objects.filter(to_grade=Grade.FAILING).order_by("-pk").first()
    acted_at = audit.last_recovery_at(since=began.at) if began else None
    if began is None or acted_at is None:
        return None
    failed = (now - began.at).total_seconds() if began.from_grade == Grade.RECOVERING else None
    return Recovery((now - acted_at).total_seconds(), succeeded_at is not None and succeeded_at > acted_at, failed)
