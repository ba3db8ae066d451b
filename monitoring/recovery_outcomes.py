"""Evaluates recovery actions: whether each one helped is decided after 120 seconds at the latest.

Guards against recoveries that change nothing: such an action is recorded as failed, with the state before and after. A
success is recorded as soon as it is clear. The rules are pure; the step reads the open audit entries and the current
state of their subjects, and closes those that can be decided. Two leaders may run it at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from monitoring import audit
from monitoring.audit import EVALUATED_AFTER, MatchContext, OutcomeRule, SystemContext
from monitoring.models import AuditEntry, AuditOutcome, Grade
from scraping.models import MatchLifecycle, ScrapeTask, TaskState

BATCH_SIZE = 1000  # the rest follows five seconds later
_OUTCOME_OF_GRADE = {
    Grade.HEALTHY: AuditOutcome.SUCCESS,
    Grade.DEGRADED: AuditOutcome.PARTIAL,
    Grade.RECOVERING: AuditOutcome.PARTIAL,
    Grade.FAILING: AuditOutcome.FAILED,
}
_FAILED_STATES = (TaskState.FAILED, TaskState.DEAD)


@dataclass(frozen=True)
class RecoveryResult:
    """`recovered_at`: the time from which the subject worked again, where that took time."""

    outcome: AuditOutcome
    recovered_at: datetime | None = None


def match_result(
    acted_at: datetime, match: MatchContext, now: datetime, *, source_key: str = ""
) -> RecoveryResult | None:
    """Decides by whether the match was read since; None while undecided.

    `source_key` limits it to the source whose silence caused the action.
    """
    if match.lifecycle in (MatchLifecycle.COMPLETED, MatchLifecycle.ARCHIVED):
        return RecoveryResult(AuditOutcome.SUCCESS)
    read = [source for source in match.sources if source.read_at and source.read_at > acted_at]
    is_paused = match.lifecycle == MatchLifecycle.PAUSED
    relevant = [source for source in read if (source.key == source_key if source_key else not source.is_fallback)]
    if any(not source.is_slowed for source in relevant) and not is_paused:
        return RecoveryResult(AuditOutcome.SUCCESS, min(source.read_at for source in relevant if source.read_at))
    if now - acted_at < EVALUATED_AFTER:
        return None
    was_read = bool(read) or (match.read_at is not None and match.read_at > acted_at)
    if was_read or is_paused or not match.sources:  # a match without a source is not polled any more
        return RecoveryResult(AuditOutcome.PARTIAL)
    return RecoveryResult(AuditOutcome.FAILED)


def system_result(
    acted_at: datetime, system: SystemContext, now: datetime, *, grade_before: str = ""
) -> RecoveryResult | None:
    """Decides by the grade that was reached (SO-6)."""
    was_read = not system.ages or min(system.ages) < (now - acted_at).total_seconds()  # or no match is live
    if system.grade == Grade.HEALTHY and was_read:
        return RecoveryResult(AuditOutcome.SUCCESS, now if grade_before not in {"", Grade.HEALTHY} else None)
    return RecoveryResult(_OUTCOME_OF_GRADE[system.grade]) if now - acted_at >= EVALUATED_AFTER else None


def task_result(acted_at: datetime, state: str, finished_at: datetime | None, now: datetime) -> RecoveryResult | None:
    if state == TaskState.SUCCESS:
        return RecoveryResult(AuditOutcome.SUCCESS, finished_at)
    if state in _FAILED_STATES and finished_at and finished_at > acted_at:
        return RecoveryResult(AuditOutcome.FAILED)
    if now - acted_at < EVALUATED_AFTER:
        return None
    return RecoveryResult(AuditOutcome.FAILED if state in _FAILED_STATES else AuditOutcome.PARTIAL)


def evaluate_recoveries(now: datetime) -> int:
    """Scheduler step: returns how many actions were decided."""
    waiting = [entry for entry in audit.pending(BATCH_SIZE) if entry.timestamp <= now]
    if not waiting:
        return 0
    current = _CurrentState(waiting, now)
    decided = []
    for entry in waiting:
        result, after = current.result(entry)
        if result is not None:
            entry.outcome, entry.after, entry.judged_at = result.outcome, after, now
            if result.recovered_at is not None:
                entry.duration_seconds = max(0.0, (result.recovered_at - entry.timestamp).total_seconds())
            decided.append(entry)
    return audit.close(decided)


class _CurrentState:
    """The current state of the subjects of all open entries, read at once."""

    def __init__(self, waiting: list[AuditEntry], now: datetime) -> None:
        self._now = now
        self._matches = audit.match_contexts({entry.match_id for entry in waiting if entry.match_id}, now)
        self._system = audit.system_context(now)
        task_ids = [pk for entry in waiting if (pk := entry.metadata.get("task_id"))]
        rows = ScrapeTask.objects.filter(pk__in=task_ids).values_list("pk", "state", "finished_at")
        self._tasks = {pk: (state, finished_at) for pk, state, finished_at in rows} if task_ids else {}

    def result(self, entry: AuditEntry) -> tuple[RecoveryResult | None, dict[str, Any]]:
        """Returns the result, or None while undecided, and the state after the action."""
        now, at, rule = self._now, entry.timestamp, audit.outcome_rule(entry.action_type, entry.match_id)
        if rule is OutcomeRule.BY_TASK:
            task = self._tasks.get(entry.metadata.get("task_id", 0))
            if task is None:  # deleted by retention
                return RecoveryResult(AuditOutcome.PARTIAL), {"state": "gone"}
            return task_result(at, *task, now), {"state": task[0]}
        if rule is OutcomeRule.BY_MATCH:
            match = self._matches.get(entry.match_id or 0)
            if match is None:
                return RecoveryResult(AuditOutcome.PARTIAL), {"lifecycle": "gone"}
            source_key = str(entry.metadata.get("source_key") or "")
            return match_result(at, match, now, source_key=source_key), match.as_document(now)
        # By the grade; also an entry of an older version whose action needs no evaluation any more.
        grade_before = str(entry.before.get("grade") or "")
        return system_result(at, self._system, now, grade_before=grade_before), self._system.as_document()
