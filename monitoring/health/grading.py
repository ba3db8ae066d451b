"""The system's grade, every 15 seconds: HEALTHY, DEGRADED, FAILING, RECOVERING.

`grade` is the whole state machine, pure. A system with old or missing data changes to DEGRADED or FAILING at once; the
return is slower: after two intervals without trouble, or after a recovery that worked. The number of these intervals
is kept in the leader's memory only, and only from one interval to the next: a new leader counts from zero, so HEALTHY
may come later, never sooner. If there are two leaders, only one writes a change.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db import transaction

from monitoring import audit
from monitoring.alerts import alert_keys
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import Grade, GradeChange, Severity
from monitoring.queries import last_success_at, live_ages, percentile

logger = logging.getLogger(__name__)

DEGRADED_FROM_SECONDS: Final = 60.0
FAILING_FROM_SECONDS: Final = 120.0
STALLED_FROM_SECONDS: Final = 90.0
CALM_INTERVALS_TO_HEALTHY: Final = 2
MEMORY_SECONDS: Final = 40.0  # a little over two intervals; older counts are dropped
RECOVERY_SECONDS: Final = audit.EVALUATED_AFTER.total_seconds()
# In a long outage scrapers are replaced repeatedly: after a failed recovery the next ones do not change the grade.
FAILED_RECOVERY_SECONDS: Final = 600.0


@dataclass(frozen=True)
class Freshness:
    """Ages of the live matches' data, in seconds."""

    median: float = 0.0
    p95: float = 0.0
    max: float = 0.0
    count: int = 0
    late: int = 0  # number at or over DEGRADED_FROM_SECONDS

    @classmethod
    def of(cls, ages: list[float]) -> Freshness:
        late = sum(age >= DEGRADED_FROM_SECONDS for age in ages)
        return cls(percentile(ages, 0.5), percentile(ages, 0.95), max(ages, default=0.0), len(ages), late)


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
    previous: GradeState, freshness: Freshness, stall_seconds: float, recovery: Recovery | None = None
) -> GradeState:
    trouble = _failing(freshness, stall_seconds)
    if trouble:
        if recovery is not None and recovery.is_under_way and previous.grade in {Grade.FAILING, Grade.RECOVERING}:
            return GradeState(Grade.RECOVERING, 0, f"recovery is under way: {trouble}")
        return GradeState(Grade.FAILING, 0, trouble)
    is_waiting = previous.grade == Grade.RECOVERING and recovery is not None and not recovery.has_succeeded
    if late := _degraded(freshness):
        return replace(previous, calm_intervals=0) if is_waiting else GradeState(Grade.DEGRADED, 0, late)
    if previous.grade == Grade.HEALTHY or (is_waiting and freshness.count):
        return previous  # a recovery ends with the first successful reading after it
    if previous.grade == Grade.FAILING:
        return GradeState(Grade.RECOVERING, 1, "data is fresh again")
    calm = previous.calm_intervals + 1
    if previous.grade == Grade.RECOVERING or calm >= CALM_INTERVALS_TO_HEALTHY:
        return GradeState(Grade.HEALTHY, calm, "data is fresh")
    return replace(previous, calm_intervals=calm)


def _failing(freshness: Freshness, stall_seconds: float) -> str:
    if stall_seconds >= STALLED_FROM_SECONDS:
        return f"nothing has been read for {stall_seconds:.0f} s"
    if freshness.max >= FAILING_FROM_SECONDS:
        return f"the stalest live match is {freshness.max:.0f} s old"
    return ""


def _degraded(freshness: Freshness) -> str:
    if max(freshness.median, freshness.p95) < DEGRADED_FROM_SECONDS:
        return ""
    matches = "match" if freshness.count == 1 else "matches"
    are = "is" if freshness.late == 1 else "are"
    return f"{freshness.late} of {freshness.count} live {matches} {are} {DEGRADED_FROM_SECONDS:.0f} s old or older"


_memory: tuple[GradeState, datetime] | None = None


def update_grade(now: datetime) -> int:
    """Scheduler step: returns 1 when the grade has changed."""
    global _memory  # noqa: PLW0603 - the only state that the leader keeps between two intervals
    previous = stored_grade()
    if _memory is not None and _memory[0].grade == previous.grade:
        is_last_interval = 0 <= (now - _memory[1]).total_seconds() <= MEMORY_SECONDS
        previous = replace(previous, calm_intervals=_memory[0].calm_intervals if is_last_interval else 0)
    state = assess(previous, live_ages(now), last_success_at(), now)
    _memory = (state, now)
    if state.grade == previous.grade or not _write_change(previous.grade, state, now):
        return 0
    _announce(previous.grade, state, now)
    return 1


def _write_change(previous: Grade, state: GradeState, now: datetime) -> bool:
    """Returns False if another leader has written a change meanwhile."""
    with transaction.atomic():
        list(GradeChange.objects.select_for_update().order_by("-pk")[:1])  # serializes two leaders
        if stored_grade().grade != previous:
            return False
        GradeChange.objects.create(from_grade=previous, to_grade=state.grade, at=now, reason=state.reason[:300])
    return True


def current_grade(ages: list[float], succeeded_at: datetime | None, now: datetime) -> GradeState:
    """Returns the grade for readers: an outage shows even if the scheduler is dead, though only it ends one."""
    stored = stored_grade()
    seen = assess(stored, ages, succeeded_at, now)
    return stored if stored.grade == Grade.RECOVERING and seen.grade == Grade.HEALTHY else seen


def stored_grade() -> GradeState:
    latest = GradeChange.objects.order_by("-pk").first()  # not by its time: clocks may be set back
    return GradeState(Grade(latest.to_grade), 0, latest.reason) if latest else GradeState(Grade.HEALTHY)


def assess(previous: GradeState, ages: list[float], succeeded_at: datetime | None, now: datetime) -> GradeState:
    stall = (now - succeeded_at).total_seconds() if ages and succeeded_at else 0.0
    return grade(previous, Freshness.of(ages), stall, _recovery(previous.grade, succeeded_at, now))


def _recovery(previous: Grade, succeeded_at: datetime | None, now: datetime) -> Recovery | None:
    if previous not in {Grade.FAILING, Grade.RECOVERING}:
        return None
    began = GradeChange.objects.filter(to_grade=Grade.FAILING).order_by("-pk").first()
    acted_at = audit.last_recovery_at(since=began.at) if began else None
    if began is None or acted_at is None:
        return None
    failed = (now - began.at).total_seconds() if began.from_grade == Grade.RECOVERING else None
    return Recovery((now - acted_at).total_seconds(), succeeded_at is not None and succeeded_at > acted_at, failed)


def _announce(previous: Grade, state: GradeState, now: datetime) -> None:
    level = {Grade.FAILING: logging.CRITICAL, Grade.DEGRADED: logging.WARNING}.get(state.grade, logging.INFO)
    logger.log(
        level,
        "Grade %s, was %s: %s",
        state.grade,
        previous,
        state.reason,
        extra={"action": "grade_changed", "grade": state.grade.value},
    )
    if state.grade == Grade.HEALTHY:
        close_alert(alert_keys.GRADE, now)
    elif state.grade != Grade.RECOVERING:
        severity = Severity.CRITICAL if state.grade == Grade.FAILING else Severity.WARNING
        summary = f"The system is {state.grade.value}: {state.reason}"
        raise_alert(alert_keys.GRADE, severity, summary, {"grade": state.grade.value}, now)
