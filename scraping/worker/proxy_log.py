"""The sessions of a worker as rows, so that people can see through which proxy a source is read, and how that goes.

Written by the heartbeat, some seconds late: a session that a killed worker had not told of yet is missing, no more.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from scraping.browser.sessions import SessionRecord, Sessions
from scraping.models import ProxySession, Source

EVERY = timedelta(seconds=15)  # what goes on is told now and then; what has ended, with the next heartbeat
REASON_LENGTH = 200
CHANGING = (
    "last_used_at", "ended_at", "end_reason", "successes", "failures", "bytes_in", "quarantined_until"
)  # fmt: skip


class ProxyLog:
    """The one writer of `ProxySession`; belongs to the heartbeat thread."""

    def __init__(self, sessions: Sessions, *, worker_id: str) -> None:
        self._sessions = sessions
        self._worker_id = worker_id
        self._written_at: datetime | None = None

    def write(self, *, now: datetime, is_last: bool = False) -> int:
        """Rows written. `is_last`: the worker stops, and its sessions with it."""
        is_due = self._written_at is None or now - self._written_at >= EVERY
        records = [one for one in self._sessions.records() if is_due or is_last or one.ended_at is not None]
        if not records:
            return 0
        told = [_ended(one, now) if is_last and one.ended_at is None else one for one in records]
        written = record(told, worker_id=self._worker_id)
        self._sessions.written(records)
        if is_due:
            self._written_at = now
        return written


def record(records: list[SessionRecord], *, worker_id: str) -> int:
    """One statement for all of them. A source that is gone takes its sessions along."""
    sources = dict(Source.objects.filter(key__in={one.source for one in records}).values_list("key", "pk"))
    rows = [_row(one, sources[one.source], worker_id) for one in records if one.source in sources]
    ProxySession.objects.bulk_create(rows, update_conflicts=True, unique_fields=("session_id",), update_fields=CHANGING)
    return len(rows)


def _row(one: SessionRecord, source_id: int, worker_id: str) -> ProxySession:
    return ProxySession(
        session_id=one.session_id,
        source_id=source_id,
        worker_id=worker_id,
        proxy_hash=one.proxy_hash,
        geo=one.geo,
        created_at=one.created_at,
        last_used_at=one.last_used_at,
        ended_at=one.ended_at,
        end_reason=one.end_reason[:REASON_LENGTH],
        successes=one.successes,
        failures=one.failures,
        bytes_in=one.bytes_in,
        quarantined_until=one.quarantined_until,
    )


def _ended(one: SessionRecord, now: datetime) -> SessionRecord:
    return replace(one, ended_at=now, end_reason="the worker has stopped")
