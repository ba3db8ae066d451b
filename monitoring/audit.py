"""The sole writer of audit entries: actor, action, reason, state before and after, outcome.

The entry of a recovery action is open when it is written and closed by `recovery_outcomes`; other entries are closed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import Prefetch

from monitoring.models import AuditEntry, AuditOutcome, Grade, GradeChange
from monitoring.queries import live_matches, percentile, workers_at_work
from scraping.models import Breaker, BreakerState, Match, MatchRef
from scraping.policies.ladder import RUNGS

# SO-6: a recovery is evaluated by the state reached within this time.
EVALUATED_AFTER = timedelta(seconds=120)
BROWSER_RECYCLE = "browser_recycle"
SOFT_RESTART = "soft_restart"
MANUAL_TRIGGER = "manual_trigger"  # a browser that an operator had replaced
CONTEXT_POOL_RESET = "context_pool_reset"  # the contexts of a source are replaced by a fresh session
RETRY = "retry"
# Actions that turn the grade FAILING into RECOVERING.
RECOVERIES = (BROWSER_RECYCLE, MANUAL_TRIGGER, SOFT_RESTART)


# Actors that are parts of the system; any other one is an operator, whose name and words are not public.
COMPONENTS = frozenset({"scheduler", "worker", "lifecycle", "breaker", "ingest", "reaper"})
# Metadata that GET /status shows: figures only.
PUBLIC_METADATA = ("pids_before", "pids_after", "browser_uptime_hours", "task_count")


class OutcomeRule(StrEnum):
    IMMEDIATE = "when it is written"
    BY_MATCH = "its match is read again"
    BY_GRADE = "the system's grade"
    BY_TASK = "its task succeeds"


# Every recovery action; any other action is complete when it is written.
ACTIONS: Mapping[str, OutcomeRule] = {
    **dict.fromkeys(
        (
            *(SOFT_RESTART, "resume", "read_now", "breaker_reset", "breaker_probe", "breaker_force_closed"),
            *(rung.action for rung in RUNGS),
        ),
        OutcomeRule.BY_MATCH,
    ),
    BROWSER_RECYCLE: OutcomeRule.BY_GRADE,
    MANUAL_TRIGGER: OutcomeRule.BY_GRADE,
    CONTEXT_POOL_RESET: OutcomeRule.BY_GRADE,
    RETRY: OutcomeRule.BY_TASK,
}
MATCH_COLUMNS = (
    *("lifecycle", "scraper_status", "silence_rung", "consecutive_failure_count"),
    *("last_scraper_update", "created_at"),
)
REF_COLUMNS = ("match_id", "source__key", "captured_at", "polling_interval_seconds", "slowed_until", "called_in_at")


def read_matches(ids: Collection[int]) -> dict[int, Match]:
    """Returns existing matches by id, with their watched references; two queries for any number of matches."""
    watched = MatchRef.objects.filter(is_watched=True).select_related("source").only(*REF_COLUMNS).order_by("pk")
    matches = Match.objects.only(*MATCH_COLUMNS).prefetch_related(Prefetch("refs", watched))
    return matches.in_bulk(list(ids))


def match_document(match: Match, now: datetime) -> dict[str, Any]:
    """Returns the columns of a match that show whether a recovery has helped it."""
    refs = match.refs.all()
    read = match.last_scraper_update or match.created_at
    return {
        "age_s": round(max(0.0, (now - read).total_seconds()), 1),
        "rung": match.silence_rung,
        "scraper_status": match.scraper_status,
        "lifecycle": match.lifecycle,
        "error_count": match.consecutive_failure_count,
        "interval_s": min((ref.polling_interval_seconds for ref in refs), default=None),
        "sources": [ref.source.key for ref in refs],
    }


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
    ages = tuple(match.age_seconds for match in live_matches(now))
    return SystemContext(Grade(grade or Grade.HEALTHY), ages, len(workers_at_work(now)), open_breakers)


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
    """Writes an entry: open for a recovery without `outcome`; `before` is by default the state of match or system."""
    rule = outcome_rule(action_type, match_id)
    if outcome is None:
        outcome = AuditOutcome.SUCCESS if rule is OutcomeRule.IMMEDIATE else AuditOutcome.PENDING
    if before is None:
        match = read_matches([match_id]).get(match_id) if match_id else None
        match_id = match.pk if match else None  # the id of a deleted match would make the sender's commit fail
        if rule is OutcomeRule.BY_GRADE:
            before = system_context(now).as_document()
        else:
            before = match_document(match, now) if match else {}
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
