"""The sole writer of audit entries: who did what to the system, why, how things stood, and how it came out.

What tries to mend something is open when it is written and is judged later (see judging); everything else is a fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from monitoring import standing
from monitoring.models import AuditEntry, AuditOutcome

# SO-6: a recovery is judged by what has been reached within this time.
JUDGED_AFTER = timedelta(seconds=120)
BROWSER_RECYCLE = "browser_recycle"
SOFT_RESTART = "soft_restart"
FRESH_SESSION = "fresh_session"
RETRY = "retry"
# What makes a failing system a recovering one.
RECOVERIES = (BROWSER_RECYCLE, SOFT_RESTART)


class Judged(StrEnum):
    """By what it is known whether an action has helped."""

    AT_ONCE = "a fact"
    BY_MATCH = "its match is heard of again"
    BY_GRADE = "the system's grade"
    BY_TASK = "its task ends well"


# Every action that tries to mend something; what is not here is a fact, true as soon as it is written.
ACTIONS: Mapping[str, Judged] = {
    SOFT_RESTART: Judged.BY_MATCH,
    "resume": Judged.BY_MATCH,
    "breaker_reset": Judged.BY_MATCH,
    "breaker_probe": Judged.BY_MATCH,
    "breaker_force_closed": Judged.BY_MATCH,
    "silence_hint": Judged.BY_MATCH,
    "silence_session": Judged.BY_MATCH,
    "silence_browser": Judged.BY_MATCH,
    "silence_other_source": Judged.BY_MATCH,
    "frozen": Judged.BY_MATCH,
    BROWSER_RECYCLE: Judged.BY_GRADE,
    FRESH_SESSION: Judged.BY_GRADE,
    RETRY: Judged.BY_TASK,
}


def judged_by(action_type: str, match_id: int | None) -> Judged:
    """What is about a match that is not known is about the whole system."""
    how = ACTIONS.get(action_type, Judged.AT_ONCE)
    return Judged.BY_GRADE if how is Judged.BY_MATCH and match_id is None else how


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
    """Without an outcome it is open where the table of actions says that it is judged, and a success elsewhere.

    `before` is looked up where the caller does not know it: how the match stood, or the whole system.
    """
    how = judged_by(action_type, match_id)
    if outcome is None:
        outcome = AuditOutcome.SUCCESS if how is Judged.AT_ONCE else AuditOutcome.PENDING
    if before is None:
        match_id, before = _before(how, match_id, now)
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


def _before(how: Judged, match_id: int | None, now: datetime) -> tuple[int | None, dict[str, Any]]:
    """With the match only if it is still there: a foreign key that points nowhere would cost the sender its commit."""
    seen = standing.of_matches([match_id], now) if match_id else {}
    found = next(iter(seen), None)
    if how is Judged.BY_GRADE:
        return found, standing.of_system(now).as_document()
    return found, seen[found].as_document(now) if found else {}


def pending(limit: int) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(outcome=AuditOutcome.PENDING).order_by("timestamp")[:limit])


def close(judged: Iterable[AuditEntry]) -> int:
    """Write the outcomes of those that are still open: where two have judged the same one, the first is right."""
    still_open = AuditEntry.objects.filter(outcome=AuditOutcome.PENDING)
    return still_open.bulk_update(list(judged), ("outcome", "after", "judged_at", "duration_seconds"), batch_size=100)


def last_recovery_at(since: datetime) -> datetime | None:
    """Without those that were never carried out: they could not help."""
    done = AuditEntry.objects.exclude(outcome=AuditOutcome.FAILED, judged_at__isnull=True)
    entry = done.filter(action_type__in=RECOVERIES, timestamp__gte=since).order_by("-timestamp").first()
    return entry.timestamp if entry else None
