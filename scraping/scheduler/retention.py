"""How long scraping keeps its tables and files: one table of rules, for the scheduler and the command `prune`.

Tables are pruned all the time, a little at a time, so that no other step waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from scraping.journal import evidence
from scraping.matches import match_logs
from scraping.models import (
    OPEN_STATES,
    Breaker,
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
    Submission,
    TaskState,
    TaskTransition,
    Worker,
    WorkerOrder,
)
from scraping.stats import traffic
from victoryline.lib.retention import Amount, Files, Rows, Rule
from victoryline.lib.retention import prune as prune_by

DONE_HOURS = 1  # tasks that succeeded
UNDONE_DAYS = 7  # tasks that were skipped or cancelled: nothing can be learned from them later
SCRAPERS_DAYS = 7
SESSIONS_DAYS = 7
WORKERS_DAYS = 1
ORDERS_DAYS = 7
OUTCOMES_HOURS = 24  # far longer than any window of a source's breaker
FILLS_HOURS = 72  # three times as long as the baseline that drift is measured against
MATCHES_AT_ONCE = 20  # with all rows that belong to them


def prune_often(now: datetime) -> int:
    """Prunes the tables that grow with every poll."""
    return prune_by(often(), now)


def prune_seldom(now: datetime) -> int:
    """Prunes the tables that grow with matches, processes and days."""
    return prune_by(seldom(), now)


def often() -> tuple[Rule, ...]:
    """Returns the rules of tables that grow with every poll."""
    config = settings.CONFIG
    keep: dict[TaskState, tuple[timedelta, str]] = {
        TaskState.SUCCESS: _hours(DONE_HOURS),
        TaskState.SKIPPED: _days(UNDONE_DAYS),
        TaskState.CANCELLED: _days(UNDONE_DAYS),
        TaskState.FAILED: _days(config.keep_errors_days),
        TaskState.DEAD: _days(config.keep_errors_days),
    }
    snapshots, snapshots_text = _hours(config.keep_snapshots_hours)
    errors, errors_text = _days(config.keep_errors_days)
    old_evidence, evidence_text = _days(config.keep_evidence_days)
    return (
        *(
            Rows(
                f"tasks-{state.lower()}",
                f"{text}, with their transitions",
                partial(_tasks, state, age),
                before=partial(_detach_tasks, state),
                is_bare=True,
            )
            for state, (age, text) in keep.items()
        ),
        Rows("snapshots", f"{snapshots_text}, and the newest of each match", partial(_snapshots, snapshots)),
        Rows("errors", errors_text, partial(_errors, errors), before=_remove_evidence, is_bare=True),
        _EvidenceRule("evidence", evidence_text, partial(_old_evidence, old_evidence)),
        _EvidenceRule(
            "evidence-total",
            f"{config.evidence_total_mb} MB, the newest",
            lambda _, limit: evidence.over_the_total(at_most=limit),
        ),
        Rows("outcomes", f"{OUTCOMES_HOURS} hours", partial(_outcomes, timedelta(hours=OUTCOMES_HOURS))),
        Rows("field-fills", f"{FILLS_HOURS} hours", partial(_fills, timedelta(hours=FILLS_HOURS))),
    )


def seldom() -> tuple[Rule, ...]:
    """Returns the rules of tables that grow with matches, processes and days."""
    config = settings.CONFIG
    errors, errors_text = _days(config.keep_errors_days)
    jobs, jobs_text = _days(config.keep_errors_days)
    matches, matches_text = _days(config.keep_matches_days)
    submissions, submissions_text = _days(config.keep_submissions_days)
    return (
        Rows("error-groups", f"{errors_text} after their last error", partial(_groups, errors)),
        Files(
            "evidence-orphans",
            "an hour, because its row may not be written yet",
            evidence.orphan_files,
            after=evidence.remove_empty_folders,
        ),
        Rows("scrapers", f"{SCRAPERS_DAYS} days after their stop", partial(_scrapers, timedelta(days=SCRAPERS_DAYS))),
        Rows("proxy-sessions", f"{SESSIONS_DAYS} days", partial(_sessions, timedelta(days=SESSIONS_DAYS))),
        _DayRule("traffic", f"{traffic.KEPT_DAYS} days, and the sum of all before"),
        Rows(
            "workers", f"{WORKERS_DAYS} day after the last heartbeat", partial(_workers, timedelta(days=WORKERS_DAYS))
        ),
        Rows("worker-orders", f"{ORDERS_DAYS} days", partial(_orders, timedelta(days=ORDERS_DAYS))),
        Rows("breakers", "as long as their match or source", lambda _: _stray_breakers()),
        Rows("jobs", f"{jobs_text} after their end", partial(_jobs, jobs), batch=MATCHES_AT_ONCE),
        Rows("submissions", submissions_text, partial(_submissions, submissions)),
        _MatchLogRule("match-logs", _days(config.match_log_retention_days)[1]),
        _MatchRule("matches", f"{matches_text} after their end, with their events", partial(_matches, matches)),
    )


def rules() -> tuple[Rule, ...]:
    return (*often(), *seldom())


def _hours(number: int) -> tuple[timedelta, str]:
    return timedelta(hours=number), f"{number} hour{'' if number == 1 else 's'}"


def _days(number: int) -> tuple[timedelta, str]:
    return timedelta(days=number), f"{number} day{'' if number == 1 else 's'}"


def _orders(age: timedelta, now: datetime) -> QuerySet[WorkerOrder]:
    return WorkerOrder.objects.filter(asked_at__lt=now - age)


def _tasks(state: TaskState, age: timedelta, now: datetime) -> QuerySet[ScrapeTask]:
    return ScrapeTask.objects.filter(state=state, finished_at__lt=now - age).order_by("finished_at")


def _detach_tasks(state: TaskState, task_ids: Sequence[int]) -> None:
    """Deletes their transitions; errors, and the outcomes that a job shows, outlive the tasks."""
    TaskTransition.objects.filter(task_id__in=task_ids).delete()
    ScrapeError.objects.filter(task_id__in=task_ids).update(task=None)
    items = JobItem.objects.filter(task_id__in=task_ids)
    items.filter(outcome="").update(outcome=state)
    items.update(task=None)
    Submission.objects.filter(task_id__in=task_ids).update(task=None)


def _snapshots(age: timedelta, now: datetime) -> QuerySet[Snapshot]:
    """Without the newest of each match, which the next one is compared with."""
    old = Snapshot.objects.filter(created_at__lt=now - age, sequence__lt=F("match__sequence"))
    return old.order_by("created_at")


def _submissions(age: timedelta, now: datetime) -> QuerySet[Submission]:
    """Also those that were never processed: a score that old is of no use."""
    return Submission.objects.filter(created_at__lt=now - age).order_by("created_at")


def _errors(age: timedelta, now: datetime) -> QuerySet[ScrapeError]:
    return ScrapeError.objects.filter(timestamp__lt=now - age).order_by("timestamp")


def _remove_evidence(error_ids: Sequence[int]) -> None:
    evidence.remove(list(Evidence.objects.filter(error_id__in=error_ids)))


def _old_evidence(age: timedelta, now: datetime, limit: int | None) -> list[Evidence]:
    return list(Evidence.objects.filter(created_at__lt=now - age).order_by("created_at")[:limit])


def _outcomes(age: timedelta, now: datetime) -> QuerySet[OutcomeBucket]:
    return OutcomeBucket.objects.filter(starts_at__lt=now - age).order_by("starts_at")


def _fills(age: timedelta, now: datetime) -> QuerySet[FieldFill]:
    return FieldFill.objects.filter(starts_at__lt=now - age).order_by("starts_at")


def _groups(age: timedelta, now: datetime) -> QuerySet[ErrorGroup]:
    has_errors = Exists(ScrapeError.objects.filter(group=OuterRef("pk")))
    return ErrorGroup.objects.filter(~has_errors, last_seen_at__lt=now - age)


def _scrapers(age: timedelta, now: datetime) -> QuerySet[Scraper]:
    return Scraper.objects.filter(stopped_at__lt=now - age)


def _sessions(age: timedelta, now: datetime) -> QuerySet[ProxySession]:
    return ProxySession.objects.filter(last_used_at__lt=now - age).order_by("last_used_at")


def _workers(age: timedelta, now: datetime) -> QuerySet[Worker]:
    return Worker.objects.filter(heartbeat_at__lt=now - age)


def _stray_breakers() -> QuerySet[Breaker]:
    """Returns the breakers whose match or source was deleted."""
    return Breaker.objects.filter(ref__isnull=True, source__isnull=True)


def _jobs(age: timedelta, now: datetime) -> QuerySet[ScrapeJob]:
    is_at_work = Exists(ScrapeTask.objects.filter(job=OuterRef("pk"), state__in=OPEN_STATES))
    old = ScrapeJob.objects.filter(~is_at_work, finished_at__lt=now - age)
    return old.exclude(kind=JobKind.WATCH).order_by("finished_at")


def _matches(age: timedelta, now: datetime) -> QuerySet[Match]:
    return Match.objects.filter(lifecycle=MatchLifecycle.ARCHIVED, completed_at__lt=now - age)


@dataclass(frozen=True)
class _EvidenceRule:
    """Evidence: rows with files. `chosen` takes the time, and how many at most."""

    table: str
    keeps: str
    chosen: Callable[[datetime, int | None], list[Evidence]]

    def outstanding(self, now: datetime) -> Amount:
        found = self.chosen(now, None)
        return Amount(len(found), sum(one.size_bytes for one in found))

    def step(self, now: datetime) -> Amount:
        found = self.chosen(now, evidence.MOST_REMOVED_AT_ONCE)
        return Amount(evidence.remove(found), sum(one.size_bytes for one in found))


@dataclass(frozen=True)
class _MatchLogRule:
    """Match logs: rows with files."""

    table: str
    keeps: str

    def outstanding(self, now: datetime) -> Amount:
        found = match_logs.outdated(now, None)
        return Amount(len(found), sum(one.size_bytes for one in found))

    def step(self, now: datetime) -> Amount:
        found = match_logs.outdated(now, MATCHES_AT_ONCE)
        return Amount(match_logs.remove(found), sum(one.size_bytes for one in found))


@dataclass(frozen=True)
class _DayRule:
    """Days of traffic are added up rather than deleted: a counter that Prometheus reads never goes down."""

    table: str
    keeps: str

    def outstanding(self, now: datetime) -> Amount:
        return Amount(traffic.old_days(now).count())

    def step(self, now: datetime) -> Amount:
        return Amount(traffic.fold_old_days(now=now))


@dataclass(frozen=True)
class _MatchRule:
    """Matches: each is deleted with all its rows in one transaction, so that half a match is never served."""

    table: str
    keeps: str
    outdated: Callable[[datetime], QuerySet[Match]]

    def outstanding(self, now: datetime) -> Amount:
        return Amount(self.outdated(now).count())

    def step(self, now: datetime) -> Amount:
        deleted = 0
        for match_id in list(self.outdated(now).values_list("pk", flat=True)[:MATCHES_AT_ONCE]):
            with transaction.atomic():
                match = self.outdated(now).select_for_update(skip_locked=True).filter(pk=match_id).first()
                if match is not None:
                    evidence.remove(list(Evidence.objects.filter(error__match=match)))
                    match_logs.remove(list(MatchArchive.objects.filter(match=match)))
                    match.delete()
                    deleted += 1
        return Amount(deleted)
