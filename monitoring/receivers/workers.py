"""Receivers of signals about workers, their browsers and disks."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from monitoring import audit
from monitoring.alerts import alert_keys
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import AuditOutcome, Severity
from monitoring.receivers.base import json_safe, receives
from scraping import signals
from scraping.browser.health import LaunchCause
from scraping.models import OrderKind


@receives(signals.browser_replaced)
def record_new_browser(
    *, now: datetime, worker_id: str, reason: str = "", seconds: float = 0.0, cause: str = "", **more: Any
) -> None:
    """Skips a commanded replacement: `record_order` records it with the operator."""
    if cause == LaunchCause.ORDER:
        return
    audit.record(
        actor="worker",
        action_type=audit.BROWSER_RECYCLE,
        trigger_condition=reason,
        target=worker_id,
        duration_seconds=seconds,
        metadata={"cause": cause, **json_safe(more)},
        now=now,
    )


@receives(signals.order_done)
def record_order(
    *,
    now: datetime,
    order_id: int,
    worker_id: str,
    kind: str,
    actor: str,
    reason: str = "",
    outcome: str = "",
    has_failed: bool = False,
    seconds: float = 0.0,
    **_: Any,
) -> None:
    """A command that no worker carried out has failed; the others are evaluated later."""
    audit.record(
        actor=actor,
        action_type=audit.BROWSER_RECYCLE if kind == OrderKind.RECYCLE_BROWSER else audit.FRESH_SESSION,
        trigger_condition=reason,
        target=worker_id,
        duration_seconds=seconds,
        outcome=AuditOutcome.FAILED if has_failed else None,
        metadata={"order_id": order_id, "came_of_it": outcome},
        now=now,
    )


@receives(signals.orphan_killed)
def record_orphan(
    *, now: datetime, pid: int, memory_bytes: int = 0, dry_run: bool = False, reason: str = "", **more: Any
) -> None:
    audit.record(
        actor="reaper",
        action_type="orphan_found" if dry_run else "orphan_killed",
        trigger_condition=reason or "a browser outlived its worker",
        target=f"pid {pid}",
        metadata={"pid": pid, "memory_bytes": memory_bytes, "dry_run": dry_run, **json_safe(more)},
        now=now,
    )


@receives(signals.store_returned)
def record_replay(*, now: datetime, worker_id: str, seconds: float, written: int, dropped: int, **_: Any) -> None:
    audit.record(
        actor="worker",
        action_type="spool_replay",
        trigger_condition=f"the database was away for {seconds:.0f} s",
        target=worker_id,
        duration_seconds=seconds,
        outcome=AuditOutcome.PARTIAL if dropped else AuditOutcome.SUCCESS,
        metadata={"written": written, "dropped": dropped},
        now=now,
    )


@receives(signals.disk_ran_short)
def record_full_disk(*, now: datetime, worker_id: str, free_mb: int, **_: Any) -> None:
    summary = f"The disk of worker {worker_id} has {free_mb} MB left: it takes no new tasks"
    detail = {"worker_id": worker_id, "free_mb": free_mb}
    raise_alert(alert_keys.disk(worker_id), Severity.CRITICAL, summary, detail, now)


@receives(signals.disk_recovered)
def record_free_disk(*, now: datetime, worker_id: str, **_: Any) -> None:
    close_alert(alert_keys.disk(worker_id), now)
