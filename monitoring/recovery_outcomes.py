"""Evaluates recovery actions: whether each one helped is decided after 120 seconds at the latest.

Guards against recoveries that change nothing: such an action is recorded as failed, with the state before and after. A
success is recorded as soon as it is clear. The rules are pure; the step reads the open audit entries and the current
state of their subjects, and closes those that can be decided. Two leaders may run it at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from prometheus_client import Counter

from monitoring import audit
from monitoring.audit import EVALUATED_AFTER, OutcomeRule, SystemContext
from monitoring.models import AuditEntry, AuditOutcome, Grade
from scraping.models import Match, MatchLifecycle, MatchRef, ScrapeTask, TaskState

BATCH_SIZE = 1000  # the rest follows five seconds later
_OUTCOME_OF_GRADE = {
    Grade.HEALTHY: AuditOutcome.SUCCESS,
    Grade.DEGRADED: AuditOutcome.PARTIAL,
    Grade.RECOVERING: AuditOutcome.PARTIAL,
    Grade.FAILING: AuditOutcome.FAILED,
}
RECOVERIES = Counter(
    "scraper_recoveries", "Recovery actions by their outcome, decided within two minutes.", ["outcome", "by"]
)
for _outcome in (AuditOutcome.SUCCESS, AuditOutcome.PARTIAL, AuditOutcome.FAILED):
    for _by in ("system", "operator"):
        RECOVERIES.labels(_outcome.value, _by)  # shown from the start
_FAILED_STATES = (TaskState.FAILED, TaskState.DEAD)


@dataclass(frozen=True)
class RecoveryResult:
    """`recovered_at`: the time from which the subject worked again, where that took time."""

    outcome: AuditOutcome
    recovered_at: datetime | None = None


def match_result(
    acted_at: datetime, match: Match, refs: Sequence[MatchRef], now: datetime, *, source_key: str = ""
) -> RecoveryResult | None:
    """Decides by whether the match (at `source_key`, if one is given) was read since; None while undecided."""
    if match.lifecycle in (MatchLifecycle.COMPLETED, MatchLifecycle.ARCHIVED):
        return RecoveryResult(AuditOutcome.SUCCESS)
    read = [ref for ref in refs if ref.captured_at and ref.captured_at > acted_at]
    is_paused = match.lifecycle == MatchLifecycle.PAUSED
    # A reference that was called in is polled only because another source is silent.
    relevant = [ref for ref in read if (ref.source.key == source_key if source_key else ref.called_in_at is None)]
    if any(ref.slowed_until is None or ref.slowed_until <= now for ref in relevant) and not is_paused:
        return RecoveryResult(AuditOutcome.SUCCESS, min(ref.captured_at for ref in relevant if ref.captured_at))
    if now - acted_at < EVALUATED_AFTER:
        return None
    was_read = bool(read) or (match.last_scraper_update is not None and match.last_scraper_update > acted_at)
    if was_read or is_paused or not refs:  # a match without a source is not polled any more
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
    matches = audit.read_matches({entry.match_id for entry in waiting if entry.match_id})
    system = audit.system_context(now)
    tasks = ScrapeTask.objects.only("state", "finished_at").in_bulk(
        [pk for entry in waiting if (pk := entry.metadata.get("task_id"))]
    )
    decided = []
    for entry in waiting:
        rule = audit.outcome_rule(entry.action_type, entry.match_id)
        if rule is OutcomeRule.BY_TASK:
            result, after = _by_task(entry, tasks.get(entry.metadata.get("task_id", 0)), now)
        elif rule is OutcomeRule.BY_MATCH:
            result, after = _by_match(entry, matches.get(entry.match_id or 0), now)
        else:  # by the grade; also an entry of an older version whose action needs no evaluation any more
            grade_before = str(entry.before.get("grade") or "")
            result = system_result(entry.timestamp, system, now, grade_before=grade_before)
            after = system.as_document()
        if result is not None:
            entry.outcome, entry.after, entry.judged_at = result.outcome, after, now
            if result.recovered_at is not None:
                entry.duration_seconds = max(0.0, (result.recovered_at - entry.timestamp).total_seconds())
            decided.append(entry)
            by = "system" if entry.actor in audit.COMPONENTS else "operator"
            RECOVERIES.labels(entry.outcome, by).inc()
    return audit.close(decided)


def _by_task(entry: AuditEntry, task: ScrapeTask | None, now: datetime) -> tuple[RecoveryResult | None, dict[str, Any]]:
    if task is None:  # deleted by retention
        return RecoveryResult(AuditOutcome.PARTIAL), {"state": "gone"}
    return task_result(entry.timestamp, task.state, task.finished_at, now), {"state": task.state}


def _by_match(entry: AuditEntry, match: Match | None, now: datetime) -> tuple[RecoveryResult | None, dict[str, Any]]:
    if match is None:
        return RecoveryResult(AuditOutcome.PARTIAL), {"lifecycle": "gone"}
    source_key = str(entry.metadata.get("source_key") or "")
    result = match_result(entry.timestamp, match, list(match.refs.all()), now, source_key=source_key)
    return result, audit.match_document(match, now)
