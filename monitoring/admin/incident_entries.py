"""The entries of an incident's time line: attempts, states, breakers, recoveries, operators, alerts, processes, reads.

Guards the page against the size of the journal: each kind is read newest first, through an index and up to a limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from statistics import median
from typing import Any

from django.db.models import Q
from django.urls import reverse

from monitoring.admin.history import OUTCOME_COLOURS, action_label, change_text
from monitoring.audit import ACTIONS, COMPONENTS
from monitoring.models import Alert, AuditEntry, AuditOutcome, Severity
from scraping.models import ScrapeError, ScrapeTask, TaskState, TaskTransition, Worker
from victoryline.lib.admin import BAD, CAREFUL, GOOD, NEWS
from victoryline.lib.shown import duration

MAX_OF_A_KIND = 200
MAX_READS = 1500


class Kind(StrEnum):
    """The kinds of entries, with their names on the page."""

    ATTEMPT = "failed attempts"
    STATE = "task states"
    BREAKER = "breakers"
    RECOVERY = "recovery"
    OPERATOR = "operators"
    ALERT = "alerts"
    PROCESS = "processes"
    READ = "reads"


@dataclass(frozen=True)
class Entry:
    at: datetime
    kind: Kind
    text: str
    detail: str = ""
    colour: str = ""
    links: tuple[tuple[str, str], ...] = ()  # text and address


@dataclass(frozen=True)
class Scope:
    """The rows that belong to the subject, as conditions on each table. None: none of that kind."""

    errors: Q
    tasks: Q
    audit: Q
    alerts: Q
    reads: Q | None = None
    since: datetime = field(kw_only=True)


def entries(scope: Scope) -> tuple[list[Entry], bool]:
    """Returns the entries, the newest first, and whether a limit has left out older ones."""
    kinds: tuple[list[Entry], ...] = (
        *_attempts_and_states(scope),
        list(_audited(scope)),
        list(_alerts(scope)),
        list(_processes(scope.since)),
    )
    newest = sorted((entry for kind in kinds for entry in kind), key=lambda entry: entry.at, reverse=True)
    return list(_with_reads(newest, _reads(scope))), any(len(kind) >= MAX_OF_A_KIND for kind in kinds)


def _task_page(task_id: int) -> tuple[str, str]:
    return f"task {task_id}", reverse("admin:scraping_scrapetask_change", args=[task_id])


def _attempts_and_states(scope: Scope) -> tuple[list[Entry], list[Entry]]:
    """Returns failed attempts, and the changes of tasks that no failed attempt explains."""
    errors = ScrapeError.objects.filter(scope.errors, timestamp__gte=scope.since).prefetch_related("files")
    failed = list(errors.defer("stack_trace", "evidence").order_by("-timestamp")[:MAX_OF_A_KIND])
    tasks = ScrapeTask.objects.filter(scope.tasks).order_by("-pk").values("pk")
    moves = TaskTransition.objects.filter(task__in=tasks[:MAX_READS], at__gte=scope.since).select_related("task")
    states: list[Entry] = []
    became: dict[tuple[int | None, datetime], str] = {}
    known = {(error.task_id, error.timestamp) for error in failed}
    for move in moves.defer("task__error").order_by("-at", "-pk")[:MAX_OF_A_KIND]:
        key = move.task_id, move.at
        if key in known:  # written with the failure, by way of FAILED
            became.setdefault(key, move.to_state)
            continue
        change = f"{move.task.resource}: {move.from_state} → {move.to_state} by {move.actor}"
        colour = BAD if move.to_state == TaskState.DEAD else ""
        states.append(Entry(move.at, Kind.STATE, change, move.reason, colour, (_task_page(move.task_id),)))
    return [_attempt(error, became.get((error.task_id, error.timestamp), "")) for error in failed], states


def _attempt(error: ScrapeError, became: str) -> Entry:
    """Returns a failed attempt: how long it took, where it ended, what became of its task, and its evidence."""
    took = f" after {duration(error.duration_ms / 1000)}" if error.duration_ms is not None else ""
    stage = f" at {error.stage}" if error.stage else ""
    then = f" → {became}" if became else ""
    text = f"{error.match_key or 'list of matches'}: attempt {error.retry_attempt} of {error.operation or 'a task'} "
    text += f"failed{took}{stage}: {error.error_code}{then}"
    pages = [("error", reverse("admin:scraping_scrapeerror_change", args=[error.pk]))]
    pages += [_task_page(error.task_id)] if error.task_id else []
    pages += [(file.kind, reverse("admin:scraping_evidence_change", args=[file.pk])) for file in error.files.all()]
    resolved = f" (resolved: {error.resolution_method.replace('_', ' ')})" if error.resolved else ""
    colour = BAD if became == TaskState.DEAD else CAREFUL
    return Entry(error.timestamp, Kind.ATTEMPT, text, error.error_message[:300] + resolved, colour, tuple(pages))


def _audited(scope: Scope) -> Iterator[Entry]:
    """Yields breaker moves, ladder steps and operator actions, and the outcome of each recovery when it was decided."""
    rows = AuditEntry.objects.filter(scope.audit, timestamp__gte=scope.since).order_by("-timestamp")
    for row in rows[:MAX_OF_A_KIND]:
        is_operator = row.actor not in COMPONENTS
        kind = (
            Kind.OPERATOR if is_operator else Kind.BREAKER if row.action_type.startswith("breaker") else Kind.RECOVERY
        )
        name, link = (
            action_label(row.action_type),
            ("audit", reverse("admin:monitoring_auditentry_change", args=[row.pk])),
        )
        by = f" by {row.actor}" if is_operator else ""
        text = f"{name}{by}: {row.target}" if row.target else f"{name}{by}"
        colour = {"breaker_open": BAD, "breaker_close": GOOD}.get(row.action_type, NEWS)
        yield Entry(row.timestamp, kind, text, row.trigger_condition, colour, (link,))
        if row.action_type in ACTIONS and row.outcome != AuditOutcome.PENDING and row.judged_at:
            took = f" after {duration(row.duration_seconds)}" if row.duration_seconds else ""
            outcome = f"{name}: {row.outcome}{took}"
            yield Entry(
                *(row.judged_at, Kind.RECOVERY, outcome, change_text(row.before, row.after)),
                *(OUTCOME_COLOURS[row.outcome], (link,)),
            )


def _alerts(scope: Scope) -> Iterator[Entry]:
    ended = Q(opened_at__gte=scope.since) | Q(closed_at__gte=scope.since)
    for alert in Alert.objects.filter(scope.alerts).filter(ended).order_by("-opened_at")[:MAX_OF_A_KIND]:
        link = (("alert", reverse("admin:monitoring_alert_change", args=[alert.pk])),)
        colour = BAD if alert.severity == Severity.CRITICAL else CAREFUL
        if alert.opened_at >= scope.since:
            yield Entry(alert.opened_at, Kind.ALERT, f"Alert opened: {alert.summary}", "", colour, link)
        if alert.closed_at:
            after = duration((alert.closed_at - alert.opened_at).total_seconds())
            yield Entry(alert.closed_at, Kind.ALERT, f"Alert closed after {after}: {alert.summary}", "", GOOD, link)


def _processes(since: datetime) -> Iterator[Entry]:
    """Yields starts and ends of workers; a worker that was killed has ended with its last heartbeat."""
    changed = Worker.objects.filter(Q(started_at__gte=since) | Q(stopped_at__gte=since)).order_by("-started_at")
    for worker in changed[:MAX_OF_A_KIND]:
        link = (("worker", reverse("admin:scraping_worker_change", args=[worker.pk])),)
        if worker.started_at >= since:
            yield Entry(worker.started_at, Kind.PROCESS, f"Worker {worker.worker_id} started", "", NEWS, link)
        if worker.stopped_at:
            yield Entry(worker.stopped_at, Kind.PROCESS, f"Worker {worker.worker_id} stopped", "", NEWS, link)


Read = tuple[datetime, float]  # end and duration in seconds


def _reads(scope: Scope) -> list[Read]:
    """Returns the successful reads; they are kept in the journal for an hour."""
    if scope.reads is None:
        return []
    done = ScrapeTask.objects.filter(scope.reads, state=TaskState.SUCCESS).order_by("-pk")
    times: Iterable[Any] = done.values_list("started_at", "finished_at")[:MAX_READS]
    reads = [(end, (end - begin).total_seconds()) for begin, end in times if begin and end and end >= scope.since]
    return sorted(reads, reverse=True)


def _with_reads(newest: Sequence[Entry], reads: Sequence[Read]) -> Iterator[Entry]:
    """Yields the entries, and between them the successful reads, each run of them as one entry."""
    left = deque(reads)
    for entry in (*newest, None):
        run: list[Read] = []
        while left and (entry is None or left[0][0] >= entry.at):
            run.append(left.popleft())
        if run:
            usual = duration(median(seconds for _, seconds in run))
            number = "1 read" if len(run) == 1 else f"{len(run)} reads"
            first = f"the first at {run[-1][0]:%H:%M:%S}" if len(run) > 1 else ""
            yield Entry(run[0][0], Kind.READ, f"{number} succeeded, taking {usual}", first, GOOD)
        if entry is not None:
            yield entry


def audit_of_source(key: str, breaker: str) -> Q:
    """Returns the condition of audit entries about a source itself."""
    return Q(target__in=[name for name in (key, breaker) if name]) | Q(metadata__source_key=key)
