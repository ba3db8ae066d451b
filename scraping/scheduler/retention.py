"""The retention of tables and files of scraping: one table of rules, for the scheduler and the command `prune`.

Tables are pruned all the time, a little at a time, so that no other step waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from scraping.journal import evidence
from scraping.models import (
    OPEN_STATES,
    Breaker,
    BulkOperation,
    ErrorGroup,
    Evidence,
    FieldFill,
    JobItem,
    JobKind,
    Match,
    MatchArchive,
    MatchLifecycle,
    OutcomeBucket,
    ProxySession,
    ScrapeError,
    ScrapeJob,
    Scraper,
    ScrapeTask,
    Snapshot,
    SourceOverride,
    SourceRate,
    Submission,
    TaskState,
    TaskTransition,
    Worker,
    WorkerCommand,
)
from scraping.models.snapshot import KEPT_HOURS
from scraping.models.traffic import MINUTE
from scraping.stats import traffic
from victoryline.lib.retention import Rule, aged, files, rows
from victoryline.lib.retention import prune as prune_by

EVIDENCE_DAYS = 7
SUBMISSIONS_DAYS = 7  # bodies of POST /cricket-data, and their idempotency keys
MATCH_LOG_DAYS = 90
OPERATIONS_DAYS = 90
MATCHES_AT_ONCE = 20  # with all rows that belong to them


def prune_often(now: datetime) -> int:
    """Prunes the tables that grow with every poll."""
    return prune_by(often(), now)


def prune_seldom(now: datetime) -> int:
    """Prunes the tables that grow with matches, processes and days."""
    return prune_by(seldom(), now)


def rules() -> tuple[Rule, ...]:
    return (*often(), *seldom())


def often() -> tuple[Rule, ...]:
    config = settings.CONFIG
    errors = config.keep_errors_days
    return (
        _tasks(TaskState.SUCCESS, hours=1),
        _tasks(TaskState.SKIPPED, days=7),  # nothing can be learned later from these, nor from cancelled ones
        _tasks(TaskState.CANCELLED, days=7),
        _tasks(TaskState.DISCARDED, days=7),
        _tasks(TaskState.FAILED, days=errors),
        _tasks(TaskState.DEAD, days=errors),
        aged(
            *("snapshots", Snapshot, "created_at", "{}, and the newest of each match"),
            where=Q(sequence__lt=F("match__sequence")),  # the next one is compared with the newest
            hours=KEPT_HOURS,
        ),
        aged("errors", ScrapeError, "timestamp", before=_delete_evidence, is_bare=True, days=errors),
        aged("evidence", Evidence, "created_at", batch=evidence.MOST_REMOVED_AT_ONCE, days=EVIDENCE_DAYS),
        rows(
            *("evidence-total", f"{evidence.TOTAL_MB} MB, the newest"),
            lambda _: Evidence.objects.filter(pk__in=evidence.over_the_total()),
            batch=evidence.MOST_REMOVED_AT_ONCE,
        ),
        aged("outcomes", OutcomeBucket, "starts_at", hours=24),  # far longer than the window of a source's breaker
        aged("rates-minutes", SourceRate, "starts_at", where=Q(seconds=MINUTE), hours=2),
        aged("rates-quarters", SourceRate, "starts_at", hours=25),
        aged("field-fills", FieldFill, "starts_at", hours=72),  # three times the baseline that drift is measured by
    )


def seldom() -> tuple[Rule, ...]:
    config = settings.CONFIG
    has_errors = Exists(ScrapeError.objects.filter(group=OuterRef("pk")))
    is_at_work = Exists(ScrapeTask.objects.filter(job=OuterRef("pk"), state__in=OPEN_STATES))
    return (
        aged(
            *("error-groups", ErrorGroup, "last_seen_at", "{} after their last error"),
            where=~has_errors,
            days=config.keep_errors_days,
        ),
        files(
            *("evidence-orphans", "an hour, because its row may not be written yet", evidence.orphan_files),
        ),
        aged("scrapers", Scraper, "stopped_at", "{} after their stop", days=7),
        aged("proxy-sessions", ProxySession, "last_used_at", days=7),
        Rule(  # added up rather than deleted: a counter that Prometheus reads never goes down
            *("traffic", f"{traffic.KEPT_DAYS} days, and the sum of all before"),
            outstanding=lambda now: traffic.old_days(now).count(),
            step=lambda now: traffic.fold_old_days(now=now),
        ),
        aged("workers", Worker, "heartbeat_at", "{} after the last heartbeat", days=1),
        aged("worker-commands", WorkerCommand, "asked_at", days=7),
        rows(
            *("breakers", "as long as their match or source"),
            lambda _: Breaker.objects.filter(ref__isnull=True, source__isnull=True),
        ),
        aged(
            *("jobs", ScrapeJob, "finished_at", "{} after their end"),
            where=~is_at_work & ~Q(kind=JobKind.WATCH),
            batch=MATCHES_AT_ONCE,
            days=config.keep_errors_days,
        ),
        aged("bulk-operations", BulkOperation, "finished_at", "{} after their end", days=OPERATIONS_DAYS),
        aged("source-overrides", SourceOverride, "ended_at", "{} after their end", days=OPERATIONS_DAYS),
        # Also those that were never processed: a score that old is of no use.
        aged("submissions", Submission, "created_at", days=SUBMISSIONS_DAYS),
        aged(*("match-logs", MatchArchive, "created_at"), batch=MATCHES_AT_ONCE, days=MATCH_LOG_DAYS),
        Rule(
            *("matches", f"{config.keep_matches_days} days after their end, with their events"),
            outstanding=lambda now: _old_matches(now).count(),
            step=_delete_matches,
        ),
    )


def _tasks(state: TaskState, *, hours: int = 0, days: int = 0) -> Rule:
    return aged(
        *(f"tasks-{state.lower()}", ScrapeTask, "finished_at", "{}, with their transitions"),
        where=Q(state=state),
        before=partial(_detach_tasks, state),
        is_bare=True,
        hours=hours,
        days=days,
    )


def _detach_tasks(state: TaskState, task_ids: Sequence[int]) -> None:
    """Deletes their transitions; errors, and the outcomes that a job shows, outlive the tasks."""
    TaskTransition.objects.filter(task_id__in=task_ids).delete()
    ScrapeError.objects.filter(task_id__in=task_ids).update(task=None)
    items = JobItem.objects.filter(task_id__in=task_ids)
    items.filter(outcome="").update(outcome=state)
    items.update(task=None)
    Submission.objects.filter(task_id__in=task_ids).update(task=None)


def _delete_evidence(error_ids: Sequence[int]) -> None:
    Evidence.objects.filter(error_id__in=error_ids).delete()


def _old_matches(now: datetime) -> QuerySet[Match]:
    before = now - timedelta(days=settings.CONFIG.keep_matches_days)
    return Match.objects.filter(lifecycle=MatchLifecycle.ARCHIVED, completed_at__lt=before)


def _delete_matches(now: datetime) -> int:
    """Deletes each match with all its rows in one transaction, so that half a match is never served."""
    deleted = 0
    for match_id in list(_old_matches(now).values_list("pk", flat=True)[:MATCHES_AT_ONCE]):
        with transaction.atomic():
            match = _old_matches(now).select_for_update(skip_locked=True).filter(pk=match_id).first()
            if match is not None:
                match.delete()
                deleted += 1
    return deleted
