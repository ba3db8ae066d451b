"""The sole writer of audit entries: actor, action, reason, state before and after, outcome.

The entry of a recovery action is open when it is written and closed by `recovery_outcomes`; other entries are closed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from monitoring.models import AuditEntry, AuditOutcome, Grade, GradeChange
from monitoring.queries import live_ages, percentile, workers_at_work
from scraping.models import Breaker, BreakerState, Match, MatchLifecycle, MatchRef

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
    **dict.fromkeys(
        (
            *(SOFT_RESTART, "resume", "breaker_reset", "breaker_probe", "breaker_force_closed"),
            *("silence_hint", "silence_session", "silence_browser", "silence_other_source", "frozen"),
        ),
        OutcomeRule.BY_MATCH,
    ),
    BROWSER_RECYCLE: OutcomeRule.BY_GRADE,
    FRESH_SESSION: OutcomeRule.BY_GRADE,
    RETRY: OutcomeRule.BY_TASK,
}
MATCH_COLUMNS = (
    *("pk", "lifecycle", "scraper_status", "silence_rung", "consecutive_failure_count"),
    *("last_scraper_update", "created_at"),
)
REF_COLUMNS = ("match_id", "source__key", "captured_at", "polling_interval_seconds", "slowed_until", "called_in_at")


@dataclass(frozen=True)
class SourceContext:
    """A match at one of its sources."""

    key: str
    read_at: datetime | None = None
    interval: float = 0.0
    is_slowed: bool = False
    is_fallback: bool = False  # polled only because another source is silent


@dataclass(frozen=True)
class MatchContext:
    """The columns of a match that show whether a recovery has helped it."""

    sources: tuple[SourceContext, ...] = ()
    lifecycle: str = MatchLifecycle.ACTIVE
    scraper_status: str = ""
    rung: int = 0
    error_count: int = 0
    read_at: datetime | None = None
    known_since: datetime | None = None

    def as_document(self, now: datetime) -> dict[str, Any]:
        read = self.read_at or self.known_since
        return {
            "age_s": round(max(0.0, (now - read).total_seconds()), 1) if read else None,
            "rung": self.rung,
            "scraper_status": self.scraper_status,
            "lifecycle": self.lifecycle,
            "error_count": self.error_count,
            "interval_s": min((source.interval for source in self.sources), default=None),
            "sources": [source.key for source in self.sources],
        }


def match_contexts(ids: Collection[int], now: datetime) -> dict[int, MatchContext]:
    """Returns contexts by match id, without matches that are deleted; two queries for any number of matches."""
    if not ids:
        return {}
    sources = defaultdict(list)
    refs = MatchRef.objects.filter(match_id__in=ids, is_watched=True).order_by("pk").values_list(*REF_COLUMNS)
    for match_id, key, read_at, interval, slowed_until, called_in_at in refs:
        is_slowed = slowed_until is not None and slowed_until > now
        sources[match_id].append(SourceContext(key, read_at, interval, is_slowed, called_in_at is not None))
    matches = Match.objects.filter(pk__in=ids).values_list(*MATCH_COLUMNS)
    return {pk: MatchContext(tuple(sources[pk]), *columns) for pk, *columns in matches}


@dataclass(frozen=True)
class SystemContext:
    """The whole system; `ages` are those of the live matches' data."""

    grade: Grade
    ages: tuple[float, ...] = ()
    workers: int = 0
    open_breakers: int = 0

    def as_document(self) -> dict[str, Any]:
        return {
            "grade": self.grade.value,
            "median_s": round(percentile(self.ages, 0.5), 1),
            "p95_s": round(percentile(self.ages, 0.95), 1),
            "max_s": round(max(self.ages, default=0.0), 1),
            "matches": len(self.ages),
            "workers": self.workers,
            "open_breakers": self.open_breakers,
        }


def system_context(now: datetime) -> SystemContext:
    grade = GradeChange.objects.order_by("-pk").values_list("to_grade", flat=True).first()
    open_breakers = Breaker.objects.exclude(state=BreakerState.CLOSED).count()
    return SystemContext(Grade(grade or Grade.HEALTHY), tuple(live_ages(now)), len(workers_at_work(now)), open_breakers)


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
        known = match_contexts([match_id], now) if match_id else {}
        match_id = next(iter(known), None)  # the id of a deleted match would make the sender's commit fail
        if rule is OutcomeRule.BY_GRADE:
            before = system_context(now).as_document()
        else:
            before = known[match_id].as_document(now) if match_id else {}
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
