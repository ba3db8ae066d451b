"""Commands to workers: change a session, replace the browser. The only writer of WorkerCommand rows.

Guards against a command that is lost, or executed twice: it is a row, so that it survives the process that issued it,
and the worker's heartbeat takes it with a conditional update. The scheduler closes commands that were not taken in
time because their worker is gone. The end of a command is signalled once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db import IntegrityError, transaction

from scraping.models import CommandKind, MatchRef, Worker, WorkerCommand
from scraping.policies.ladder import Rung
from scraping.recovery.silent_matches import read_at_once
from scraping.signals import command_done

UNTAKEN_AFTER = timedelta(seconds=60)
NO_FIGURES: Mapping[str, float] = MappingProxyType({})


def issue(
    kind: CommandKind, *, worker_id: str, reason: str, actor: str, now: datetime, source_key: str = ""
) -> WorkerCommand | None:
    """Creates a command. Returns None if the worker has the same command open already."""
    try:
        with transaction.atomic():
            return WorkerCommand.objects.create(
                worker_id=worker_id,
                kind=kind,
                source_key=source_key,
                reason=reason[:300],
                actor=actor[:150],
                asked_at=now,
            )
    except IntegrityError:
        return None


def workers_at_work(now: datetime) -> list[str]:
    return list(Worker.objects.at_work(now).order_by("worker_id").values_list("worker_id", flat=True))


@dataclass(frozen=True)
class RecycleRequest:
    workers: list[str]  # their browsers are replaced
    commands: list[int]  # the new commands; a worker that has one open already gets none


def recycle(worker_id: str, *, reason: str, actor: str, now: datetime) -> RecycleRequest:
    """Commands all running workers, or one of them, to replace the browser. Running visits finish first."""
    at_work = [name for name in workers_at_work(now) if worker_id in ("", name)]
    given = [
        command.pk
        for name in at_work
        if (command := issue(CommandKind.RECYCLE_BROWSER, worker_id=name, reason=reason, actor=actor, now=now))
    ]
    return RecycleRequest(at_work, given)


def take(worker_id: str, *, now: datetime) -> list[WorkerCommand]:
    """Returns the commands that this worker has not taken yet. Each is returned once."""
    waiting = WorkerCommand.objects.filter(worker_id=worker_id, taken_at__isnull=True, done_at__isnull=True)
    taken = []
    for command in waiting.order_by("pk"):
        if WorkerCommand.objects.filter(pk=command.pk, taken_at__isnull=True, done_at__isnull=True).update(
            taken_at=now
        ):
            command.taken_at = now
            taken.append(command)
    return taken


def finish(
    command: WorkerCommand,
    *,
    outcome: str,
    now: datetime,
    has_failed: bool = False,
    figures: Mapping[str, float] = NO_FIGURES,
) -> bool:
    """Closes a command and signals its end; silent matches are read at once, whatever its outcome.

    `figures`: of the replaced browser, for the audit. Returns False if it was closed before.
    """
    unfinished = WorkerCommand.objects.filter(pk=command.pk, done_at__isnull=True)
    if not unfinished.update(done_at=now, outcome=outcome[:200]):
        return False
    silent = MatchRef.objects.filter(match__silence_rung__gt=Rung.GROUND, is_watched=True, source__is_enabled=True)
    silent = silent.filter(source__key=command.source_key) if command.source_key else silent
    read_at_once(list(silent.select_related("source__breaker", "breaker").defer("payload")), now)
    command_done.send_robust(
        sender=WorkerCommand,
        command_id=command.pk,
        worker_id=command.worker_id,
        kind=command.kind,
        actor=command.actor,
        reason=command.reason,
        outcome=outcome,
        has_failed=has_failed,
        seconds=(now - command.asked_at).total_seconds(),
        now=now,
        **figures,
    )
    return True


def close_untaken(now: datetime) -> int:
    """Scheduler step: closes overdue commands, so that a dead worker's command does not block the next one."""
    late = WorkerCommand.objects.filter(done_at__isnull=True, asked_at__lt=now - UNTAKEN_AFTER)
    return sum(finish(command, outcome="not taken in time", now=now, has_failed=True) for command in late)
