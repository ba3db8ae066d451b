"""The system's grade, every 15 seconds: HEALTHY, DEGRADED, FAILING, RECOVERING.

`grade` is the whole machine, pure. From every grade a system that is late or silent goes straight to the grade of its
trouble; the way back is slower: through two calm intervals, or through a recovery that was seen to work.
How many calm intervals there were is all that a leader remembers, and only from one interval to the next: a new leader,
and one that leads again, begins to count anew, which makes a return to HEALTHY later, never sooner. Of two leaders at
once only one writes a change.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db import transaction

from monitoring import audit
from monitoring.alerts import causes
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import Grade, GradeChange, Severity
from monitoring.queries import last_success_at, live_ages, percentile

logger = logging.getLogger(__name__)

DEGRADED_FROM_SECONDS: Final = 60.0
FAILING_FROM_SECONDS: Final = 120.0
STALLED_FROM_SECONDS: Final = 90.0
CALM_INTERVALS_TO_HEALTHY: Final = 2
MEMORY_SECONDS: Final = 40.0  # two intervals and a little: what a leader saw before that says nothing about now
RECOVERY_MAY_TAKE_SECONDS: Final = audit.JUDGED_AFTER.total_seconds()
# In a long outage scrapers are replaced again and again: after one recovery in vain the next is no news for a while.
VAIN_COUNTS_SECONDS: Final = 600.0


@dataclass(frozen=True)
class Freshness:
    """Ages of the live matches' data, in seconds."""

    median: float = 0.0
    p95: float = 0.0
    max: float = 0.0
    count: int = 0
    late: int = 0  # how many are past DEGRADED_FROM_SECONDS

    @classmethod
    def of(cls, ages: list[float]) -> Freshness:
        late = sum(age >= DEGRADED_FROM_SECONDS for age in ages)
        return cls(percentile(ages, 0.5), percentile(ages, 0.95), max(ages, default=0.0), len(ages), late)


@dataclass(frozen=True)
class Recovery:
    """The latest recovery action since the system began to fail."""

    age_seconds: float
    has_succeeded: bool  # a scrape has worked since
    vain_seconds: float | None = None  # how long ago another one was in vain; None: none was

    @property
    def is_under_way(self) -> bool:
        is_first = self.vain_seconds is None or self.vain_seconds >= VAIN_COUNTS_SECONDS
        return is_first and self.age_seconds < RECOVERY_MAY_TAKE_SECONDS


@dataclass(frozen=True)
class Standing:
    grade: Grade
    calm_intervals: int = 0
    reason: str = ""


def grade(previous: Standing, freshness: Freshness, stall_seconds: float, recovery: Recovery | None = None) -> Standing:
    trouble = _failing(freshness, stall_seconds)
    if trouble:
        if recovery is not None and recovery.is_under_way and previous.grade in {Grade.FAILING, Grade.RECOVERING}:
            return Standing(Grade.RECOVERING, 0, f"recovery is under way: {trouble}")
        return Standing(Grade.FAILING, 0, trouble)
    is_waiting = previous.grade == Grade.RECOVERING and recovery is not None and not recovery.has_succeeded
    if late := _degraded(freshness):
        return replace(previous, calm_intervals=0) if is_waiting else Standing(Grade.DEGRADED, 0, late)
    if previous.grade == Grade.HEALTHY or (is_waiting and freshness.count):
        return previous  # a recovery is over with the first reading after it, where there is something to read
    if previous.grade == Grade.FAILING:
        return Standing(Grade.RECOVERING, 1, "data is fresh again")
    calm = previous.calm_intervals + 1
    if previous.grade == Grade.RECOVERING or calm >= CALM_INTERVALS_TO_HEALTHY:
        return Standing(Grade.HEALTHY, calm, "data is fresh")
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


@dataclass(frozen=True)
class _Memory:
    standing: Standing
    at: datetime


_memory: _Memory | None = None


def update_grade(now: datetime) -> int:
    """Scheduler step: 1 when the grade has changed."""
    global _memory  # noqa: PLW0603 the only thing the leader remembers between two intervals
    previous = _with_memory(stored_standing(), now)
    standing = observe(previous, now)
    _memory = _Memory(standing, now)
    if standing.grade == previous.grade or not _write_change(previous.grade, standing, now):
        return 0
    _announce(previous.grade, standing, now)
    return 1


def _with_memory(stored: Standing, now: datetime) -> Standing:
    known = _memory
    if known is None or known.standing.grade != stored.grade:
        return stored
    is_last_interval = 0 <= (now - known.at).total_seconds() <= MEMORY_SECONDS
    return replace(stored, calm_intervals=known.standing.calm_intervals if is_last_interval else 0)


def _write_change(previous: Grade, standing: Standing, now: datetime) -> bool:
    """False where another leader was faster: the change that we saw is then in its row."""
    with transaction.atomic():
        list(GradeChange.objects.select_for_update().order_by("-pk")[:1])  # one after the other
        if stored_standing().grade != previous:
            return False
        GradeChange.objects.create(from_grade=previous, to_grade=standing.grade, at=now, reason=standing.reason[:300])
    return True


def current_standing(now: datetime) -> Standing:
    """For readers: a scheduler that has died cannot keep an outage from being seen, though only it ends one."""
    stored = stored_standing()
    seen = observe(stored, now)
    return stored if stored.grade == Grade.RECOVERING and seen.grade == Grade.HEALTHY else seen


def stored_standing() -> Standing:
    latest = GradeChange.objects.order_by("-pk").first()  # not by its time: clocks are set back
    return Standing(Grade(latest.to_grade), 0, latest.reason) if latest else Standing(Grade.HEALTHY)


def observe(previous: Standing, now: datetime) -> Standing:
    ages = live_ages(now)
    succeeded_at = last_success_at()
    stall = (now - succeeded_at).total_seconds() if ages and succeeded_at else 0.0
    return grade(previous, Freshness.of(ages), stall, _recovery(previous.grade, succeeded_at, now))


def _recovery(previous: Grade, succeeded_at: datetime | None, now: datetime) -> Recovery | None:
    if previous not in {Grade.FAILING, Grade.RECOVERING}:
        return None
    began = GradeChange.objects.filter(to_grade=Grade.FAILING).order_by("-pk").first()
    acted_at = audit.last_recovery_at(since=began.at) if began else None
    if began is None or acted_at is None:
        return None
    vain = (now - began.at).total_seconds() if began.from_grade == Grade.RECOVERING else None
    return Recovery((now - acted_at).total_seconds(), succeeded_at is not None and succeeded_at > acted_at, vain)


def _announce(previous: Grade, standing: Standing, now: datetime) -> None:
    level = {Grade.FAILING: logging.CRITICAL, Grade.DEGRADED: logging.WARNING}.get(standing.grade, logging.INFO)
    logger.log(
        level,
        "Grade %s, was %s: %s",
        standing.grade,
        previous,
        standing.reason,
        extra={"action": "grade_changed", "grade": standing.grade.value},
    )
    if standing.grade == Grade.HEALTHY:
        close_alert(causes.GRADE, now)
    elif standing.grade != Grade.RECOVERING:
        severity = Severity.CRITICAL if standing.grade == Grade.FAILING else Severity.WARNING
        summary = f"The system is {standing.grade.value}: {standing.reason}"
        raise_alert(causes.GRADE, severity, summary, {"grade": standing.grade.value}, now)
