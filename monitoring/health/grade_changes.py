"""Writes changes of the grade and their alert, by the same evaluation that /health and the pages show.

The number of calm intervals is kept in the leader's memory only, and only from one interval to the next: a new leader
counts from zero, so HEALTHY may come later, never sooner. If there are two leaders, only one writes a change.
"""

import logging
from dataclasses import replace
from datetime import datetime
from typing import Final

from django.db import transaction

from monitoring.alerts import alert_keys
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.health import grading
from monitoring.health.evaluation import Evaluation
from monitoring.health.grading import GradeState
from monitoring.models import Grade, GradeChange, Severity
from scraping.models import Match

logger = logging.getLogger(__name__)

MEMORY_SECONDS: Final = 40.0  # a little over two intervals; older counts are dropped

_memory: tuple[GradeState, datetime] | None = None


def update_grade(now: datetime) -> int:
    """Scheduler step: returns 1 when the grade has changed."""
    global _memory  # noqa: PLW0603 - the only state that the leader keeps between two intervals
    previous = grading.stored_grade()
    if _memory is not None and _memory[0].grade == previous.grade:
        is_last_interval = 0 <= (now - _memory[1]).total_seconds() <= MEMORY_SECONDS
        previous = replace(previous, calm_intervals=_memory[0].calm_intervals if is_last_interval else 0)
    evaluation = Evaluation(now)
    state = grading.assess(previous, evaluation.freshness, evaluation.last_success_at, evaluation.trouble, now)
    _memory = (state, now)
    has_changed = state.grade != previous.grade and _write_change(previous.grade, state, evaluation)
    _update_alert(state, now)
    return int(has_changed)


def _write_change(previous: Grade, state: GradeState, evaluation: Evaluation) -> bool:
    """Returns False if another leader has written a change meanwhile."""
    now, reason, match_id = evaluation.now, state.reason, evaluation.cause_id
    with transaction.atomic():
        latest = list(GradeChange.objects.select_for_update().order_by("-pk")[:1])  # serializes two leaders
        if grading.stored_grade().grade != previous:
            return False
        if not evaluation.is_in_trouble and latest and latest[0].match_id is not None:  # the match that has recovered
            match_id = latest[0].match_id
        match = Match.objects.filter(pk=match_id or 0).first()
        key = match.key if match is not None else None
        if key and key not in reason:
            reason = f"{reason} ({key})"
        GradeChange.objects.create(from_grade=previous, to_grade=state.grade, at=now, reason=reason[:300], match=match)
    level = {Grade.FAILING: logging.CRITICAL, Grade.DEGRADED: logging.WARNING}.get(state.grade, logging.INFO)
    about = {"grade": state.grade.value, "match_id": key}
    logger.log(level, "Grade %s, was %s: %s", state.grade, previous, reason, extra={"action": "grade_changed", **about})
    return True


def _update_alert(state: GradeState, now: datetime) -> None:
    """Keeps the alert at the present grade and reason: it must never say something else than the pages."""
    if state.grade == Grade.HEALTHY:
        close_alert(alert_keys.GRADE, now)
        return
    # Still critical while it recovers: a failed recovery must not be notified as a new alert.
    severity = Severity.WARNING if state.grade == Grade.DEGRADED else Severity.CRITICAL
    summary = f"The system is {state.grade.value}: {state.reason}"
    raise_alert(alert_keys.GRADE, severity, summary, {"grade": state.grade.value}, now)
