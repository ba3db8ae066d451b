"""The sole writer of audit entries: actor, action, reason, state before and after, outcome.

The entry of a recovery action is open when it is written and closed by `recovery_outcomes`; other entries are closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from monitoring import audit_context
from monitoring.models import AuditEntry, AuditOutcome

# SO-6: a recovery is evaluated by the state reached within this time.
EVALUATED_AFTER = timedelta(seconds=120)
BROWSER_RECYCLE = "browser_recycle"
SOFT_RESTART = "soft_restart"
FRESH_SESSION = "fresh_session"
RETRY = "retry"
# Actions that turn the grade FAILING into RECOVERING.
RECOVERIES = (BROWSER_RECYCLE, SOFT_RESTART)


class OutcomeRule(StrEnum):
    """How the outcome of an action is decided."""

    IMMEDIATE = "when it is written"
    BY_MATCH = "its match is read again"
    BY_GRADE = "the system's grade"
    BY_TASK = "its task succeeds"


# Every recovery action; any other action is complete when it is written.
ACTIONS: Mapping[str, OutcomeRule] = {
    SOFT_RESTART: OutcomeRule.BY_MATCH,
    "resume": OutcomeRule.BY_MATCH,
    "breaker_reset": OutcomeRule.BY_MATCH,
    "breaker_probe": OutcomeRule.BY_MATCH,
    "breaker_force_closed": OutcomeRule.BY_MATCH,
    "silence_hint": OutcomeRule.BY_MATCH,
    "silence_session": OutcomeRule.BY_MATCH,
    "silence_browser": OutcomeRule.BY_MATCH,
    "silence_other_source": OutcomeRule.BY_MATCH,
    "frozen": OutcomeRule.BY_MATCH,
    BROWSER_RECYCLE: OutcomeRule.BY_GRADE,
    FRESH_SESSION: OutcomeRule.BY_GRADE,
    RETRY: OutcomeRule.BY_TASK,
}


def outcome_rule(action_type: str, match_id: int | None) -> OutcomeRule:
    """Returns the rule of an action; one for an unknown match counts for the whole system."""
    rule = ACTIONS.get(action_type, OutcomeRule.IMMEDIATE)
    return OutcomeRule.BY_GRADE if rule is OutcomeRule.BY_MATCH and match_id is None else rule


def record(
    *,
    actor: str,
    action_type: str,
    trigger_condition: str,
    target: str = "",
    match_id: int | None = None,
    outcome: AuditOutcome | None = None,
    before: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    duration_seconds: float = 0.0,
    now: datetime,
) -> AuditEntry:
    """Writes an entry. Without an `outcome`, recovery actions are open and other actions are successes.

    `before` is read from the database if it is not given: the state of the match, or of the system.
    """
    rule = outcome_rule(action_type, match_id)
    if outcome is None:
        outcome = AuditOutcome.SUCCESS if rule is OutcomeRule.IMMEDIATE else AuditOutcome.PENDING
    if before is None:
        match_id, before = _before(rule, match_id, now)
    return AuditEntry.objects.create(
        timestamp=now,
        actor=actor[:150],
        action_type=action_type[:40],
        trigger_condition=trigger_condition[:500],
        target=target[:200],
        match_id=match_id,
        outcome=outcome,
        before=dict(before),
        metadata=dict(metadata or {}),
        duration_seconds=duration_seconds,
    )


def _before(rule: OutcomeRule, match_id: int | None, now: datetime) -> tuple[int | None, dict[str, Any]]:
    """Drops the id of a deleted match: a dangling foreign key would make the sender's commit fail."""
    seen = audit_context.match_contexts([match_id], now) if match_id else {}
    found = next(iter(seen), None)
    if rule is OutcomeRule.BY_GRADE:
        return found, audit_context.system_context(now).as_document()
    return found, seen[found].as_document(now) if found else {}


def pending(limit: int) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(outcome=AuditOutcome.PENDING).order_by("timestamp")[:limit])


def close(decided: Iterable[AuditEntry]) -> int:
    """Writes the outcomes of entries that are still open; of two writers the first wins."""
    still_open = AuditEntry.objects.filter(outcome=AuditOutcome.PENDING)
    return still_open.bulk_update(list(decided), ("outcome", "after", "judged_at", "duration_seconds"), batch_size=100)


def last_recovery_at(since: datetime) -> datetime | None:
    """Returns the time of the latest recovery action that was really carried out."""
    done = AuditEntry.objects.exclude(outcome=AuditOutcome.FAILED, judged_at__isnull=True)
    entry = done.filter(action_type__in=RECOVERIES, timestamp__gte=since).order_by("-timestamp").first()
    return entry.timestamp if entry else None
