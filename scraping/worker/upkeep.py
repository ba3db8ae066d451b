"""Duties of the heartbeat thread other than leases: disk space, missing tokens, proxy session rows, worker commands."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import astuple, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import psutil

from scraping.browser.health import LaunchCause
from scraping.browser.session import SessionRecord
from scraping.browser.sessions import Sessions
from scraping.models import CommandKind, ProxySession, Source, WorkerCommand
from scraping.reading.request_modes import LearnedMode, RequestModes
from scraping.reading.tokens import Tokens
from scraping.readings import ReadMode
from scraping.recovery import worker_commands
from scraping.signals import disk_ran_short, disk_recovered, token_found, token_lost
from victoryline.lib import files
from victoryline.lib.units import MEGABYTE

logger = logging.getLogger(__name__)

RECOVERED_SHARE = 1.2  # of the limit, so that the state does not flicker around it
TOKEN_DEGRADED_SECONDS = 300.0  # without a token; its source then counts as degraded
TOKEN_SIGNAL_EVERY = timedelta(seconds=20)
SESSION_ROWS_EVERY = timedelta(seconds=15)  # of active sessions; ended ones are written with the next heartbeat
REASON_LENGTH = 200
OnLoop = Callable[[Callable[[], None]], object]
FIXED = ("session_id", "proxy_hash", "geo", "created_at")
CHANGING = ("last_used_at", "ended_at", "successes", "failures", "bytes_in", "quarantined_until")
# The fields of LearnedMode.
MODE_COLUMNS = ("request_mode", "request_mode_reason", "request_mode_since", "direct_again_at", "direct_pause_seconds")
NOTHING_LEARNED = ("", "", None, None, None)
LONGEST_COMMAND_SECONDS = 50.0  # then it has failed; the scheduler closes it a little later by itself


class DiskGuard:
    """Stops new work on a full disk: a reading could be neither stored nor spooled."""

    def __init__(self, folder: Path, *, worker_id: str) -> None:
        self._folder = folder
        self._worker_id = worker_id
        self.is_short = False

    def check(self) -> bool:
        """Measures the free space; returns whether there is too little."""
        free_mb = self.free_mb()
        if not self.is_short and free_mb < files.MIN_FREE_DISK_MB:
            self.is_short = True
            logger.critical(
                "Only %d MB are free on the disk of %s: no new tasks are taken until there is more than %d MB. "
                "Stored data is safe. Free space (`manage.py prune`)",
                free_mb,
                self._folder,
                files.MIN_FREE_DISK_MB,
                extra={"action": "disk_short", "free_mb": free_mb},
            )
            disk_ran_short.send_robust(sender=DiskGuard, worker_id=self._worker_id, free_mb=free_mb)
        elif self.is_short and free_mb >= files.MIN_FREE_DISK_MB * RECOVERED_SHARE:
            self.is_short = False
            logger.warning(
                "%d MB are free again: tasks are taken", free_mb, extra={"action": "disk_recovered", "free_mb": free_mb}
            )
            disk_recovered.send_robust(sender=DiskGuard, worker_id=self._worker_id, free_mb=free_mb)
        return self.is_short

    def free_mb(self) -> int:
        return int(psutil.disk_usage(str(self._folder)).free // MEGABYTE)


class TokenWatch:
    """Reports sources that have had no token for too long: once in the log, repeatedly by signal.

    Guards against a source that silently returns less than it should. Repeated, so that a listener can notice that the
    worker itself is gone.
    """

    def __init__(self, tokens: Tokens, *, worker_id: str) -> None:
        self._tokens = tokens
        self._worker_id = worker_id
        self._reported_at: dict[str, datetime] = {}

    def check(self, *, now: datetime) -> None:
        missing = {one.source_key: one for one in self._tokens.missing() if one.seconds >= TOKEN_DEGRADED_SECONDS}
        for key, one in missing.items():
            if key not in self._reported_at:
                logger.error(
                    "%s has given us no token for %.0f s (%s): only its public endpoints are read, nothing is lost. "
                    "Check its token service, its token_url and SOURCE_CREDENTIALS; a token ends this by itself",
                    key,
                    one.seconds,
                    one.reason,
                    extra={"action": "source_without_token", "source": key},
                )
            elif now - self._reported_at[key] < TOKEN_SIGNAL_EVERY:
                continue
            self._reported_at[key] = now
            token_lost.send_robust(
                sender=Source,
                source_key=key,
                seconds=one.seconds,
                reason=one.reason,
                worker_id=self._worker_id,
                now=now,
            )
        for key in self._reported_at.keys() - missing.keys():
            del self._reported_at[key]
            logger.info("%s has a token again", key, extra={"action": "source_has_token", "source": key})
            token_found.send_robust(sender=Source, source_key=key, worker_id=self._worker_id, now=now)


class SessionRows:
    """Writes the worker's sessions as ProxySession rows, some seconds late. Their only writer."""

    def __init__(self, sessions: Sessions, *, worker_id: str) -> None:
        self._sessions = sessions
        self._worker_id = worker_id
        self._written_at: datetime | None = None

    def write(self, *, now: datetime, is_last: bool = False) -> int:
        """Returns the number of rows written. `is_last`: the worker stops, and its sessions with it."""
        is_due = self._written_at is None or now - self._written_at >= SESSION_ROWS_EVERY
        records = [one for one in self._sessions.records() if is_due or is_last or one.ended_at is not None]
        if not records:
            return 0
        rows = [
            replace(one, ended_at=now, end_reason="the worker has stopped") if is_last and not one.ended_at else one
            for one in records
        ]
        written = write_sessions(rows, worker_id=self._worker_id)
        self._sessions.written(records)
        if is_due:
            self._written_at = now
        return written


def write_sessions(records: list[SessionRecord], *, worker_id: str) -> int:
    """Writes all rows by one statement. Sessions of a deleted source are left out."""
    sources = dict(Source.objects.filter(key__in={one.source for one in records}).values_list("key", "pk"))
    rows = [
        ProxySession(
            source_id=sources[one.source],
            worker_id=worker_id,
            end_reason=one.end_reason[:REASON_LENGTH],
            **{name: getattr(one, name) for name in (*FIXED, *CHANGING)},
        )
        for one in records
        if one.source in sources
    ]
    changing = (*CHANGING, "end_reason")
    ProxySession.objects.bulk_create(rows, update_conflicts=True, unique_fields=("session_id",), update_fields=changing)
    return len(rows)


class RequestModeRows:
    """Writes what the worker has learned about request modes, and takes over what others have. Their only writer."""

    def __init__(self, modes: RequestModes, *, on_loop: OnLoop) -> None:
        self._modes = modes
        self._on_loop = on_loop

    def sync(self) -> None:
        changes = self._modes.changes()
        for key, learned in changes.items():
            values = NOTHING_LEARNED if learned is None else astuple(learned)
            Source.objects.filter(key=key).update(**dict(zip(MODE_COLUMNS, values, strict=True)))
        rows = Source.objects.exclude(request_mode="").values_list("key", *MODE_COLUMNS)
        stored = {key: LearnedMode(ReadMode(mode), *others) for key, mode, *others in rows}
        self._on_loop(partial(self._modes.restore, stored, written=changes))


class CommandRunner:
    """Takes commands from the database on the heartbeat thread, and runs them on the loop thread without waiting."""

    def __init__(self, sessions: Sessions, *, worker_id: str, on_loop: OnLoop) -> None:
        self._sessions = sessions
        self._worker_id = worker_id
        self._on_loop = on_loop
        self._recycling: tuple[WorkerCommand, int] | None = None  # and the generation of the browser to be replaced

    def run_waiting(self, *, now: datetime) -> None:
        """Takes new commands, and finishes the one that has been carried out meanwhile."""
        self._finish_recycling(now)
        host = self._sessions.host
        for command in worker_commands.take(self._worker_id, now=now):
            logger.info(
                "Command received: %s (%s, requested by %s)",
                command.kind.replace("_", " "),
                command.reason,
                command.actor,
                extra={"action": "command_taken", "command_id": command.pk, "kind": command.kind},
            )
            if command.kind == CommandKind.FRESH_SESSION:
                self._on_loop(partial(self._sessions.renew, command.source_key))
                worker_commands.finish(command, outcome="the next visit begins another session", now=now)
            elif host.usage is None:
                worker_commands.finish(command, outcome="no browser was running: the next read starts one", now=now)
            else:
                self._recycling = command, host.generation
                self._on_loop(
                    partial(host.recycle, LaunchCause.COMMAND, f"{command.reason} (requested by {command.actor})")
                )

    def _finish_recycling(self, now: datetime) -> None:
        if self._recycling is None:
            return
        command, generation = self._recycling
        replacement = self._sessions.host.last_replacement
        is_replaced = replacement is not None and replacement.launches > generation
        if is_replaced:
            outcome = f"browser {self._sessions.host.generation} took its place"
        elif command.taken_at and (now - command.taken_at).total_seconds() > LONGEST_COMMAND_SECONDS:
            outcome = "the browser was not replaced in time"
        else:
            return
        self._recycling = None
        figures = replacement.as_metadata() if is_replaced and replacement is not None else {}
        worker_commands.finish(command, outcome=outcome, now=now, has_failed=not is_replaced, figures=figures)
