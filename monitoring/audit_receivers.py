"""Writes audit entries by the signals of scraping and apiauth. Importing the module connects the receivers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.dispatch import Signal

from apiauth.signals import consumer_changed, key_issued, key_revoked, key_rotated
from monitoring import audit
from monitoring.models import AuditEntry, AuditOutcome
from monitoring.signal_receivers import json_safe, match_name, receives
from scraping import signals
from scraping.browser.health import LaunchCause
from scraping.models import Breaker, CommandKind, Importance, ScrapeTask, TaskState
from scraping.policies.ladder import RUNGS, Rung
from victoryline.lib.operators import UNNAMED_OPERATOR
from victoryline.lib.times import as_utc_iso

REQUESTED = "requested by an operator"
_CLOCK_MARGIN = timedelta(seconds=30)  # the first rung is recorded a little after the start of the silence
# Signals that are recorded as they are: the action, and the values that apply where the signal has none. `subject`
# names the value of the signal that is the target; without one, the target is the match.
KEY_DEFAULTS = {"actor": UNNAMED_OPERATOR, "reason": REQUESTED, "subject": "prefix"}
AUDITED: tuple[tuple[Signal, str, dict[str, Any]], ...] = (
    (signals.match_paused, "pause", {"actor": "lifecycle"}),
    (signals.match_resumed, "resume", {"actor": "lifecycle"}),
    (signals.watch_began, "watch", {}),
    (signals.watch_ended, "watch_end", {}),
    (signals.read_requested, "read_now", {}),
    (signals.watch_put_off, "watch", {"outcome": AuditOutcome.FAILED}),
    (signals.matches_joined, "join", {}),
    (signals.matches_kept_apart, "keep_apart", {"reason": "decided by an operator"}),
    (signals.source_overridden, "source_override", {"subject": "source_key"}),
    (signals.source_override_ended, "source_override_end", {"subject": "source_key"}),
    (signals.source_changed, "source_changed", {"subject": "source_key", "reason": REQUESTED}),
    (signals.source_switched, "source_switch", {"subject": "source_key"}),
    (signals.team_alias_deleted, "alias_deleted", {"subject": "alias"}),
    (signals.scraper_restarted, audit.SOFT_RESTART, {"actor": "scheduler"}),
    (key_issued, "key_issued", KEY_DEFAULTS),
    (key_rotated, "key_rotated", KEY_DEFAULTS),
    (key_revoked, "key_revoked", KEY_DEFAULTS),
)
MOVES = {TaskState.DISCARDED.value: "discard", TaskState.CANCELLED.value: "cancel"}
# Changes of a breaker by the system: the action, and the reason that applies where the signal has none.
BREAKER_CHANGES = (
    (signals.breaker_opened, "breaker_open", "too many failures"),
    (signals.breaker_half_opened, "breaker_half_open", ""),
    (signals.breaker_closed, "breaker_close", "probes succeeded"),
)


def _record(
    action: str,
    *,
    now: datetime,
    actor: str = "",
    reason: str = "",
    target: str = "",
    subject: str = "",
    match_id: int | None = None,
    outcome: AuditOutcome | None = None,
    seconds: float = 0.0,
    **metadata: Any,
) -> None:
    """Writes an audit entry from the values of a signal."""
    if subject:
        target = str(metadata.pop(subject))
    audit.record(
        actor=actor,
        action_type=action,
        trigger_condition=reason,
        target=target or match_name(match_id),
        match_id=match_id,
        outcome=outcome,
        metadata=json_safe(metadata),
        duration_seconds=seconds,
        now=now,
    )


def _record_breaker(
    action: str, *, now: datetime, name: str, reason: str, match_id: int | None = None, actor: str = "", **_: Any
) -> None:
    if not actor:  # `record_operated_breaker` records an operator's change
        _record(action, now=now, actor="breaker", reason=reason, target=name, match_id=match_id)


for _signal, _action, _defaults in AUDITED:
    receives(_signal, f"record_{_action}_{_defaults.get('outcome', '')}")(partial(_record, _action, **_defaults))
for _signal, _action, _reason in BREAKER_CHANGES:
    receives(_signal, f"record_{_action}")(partial(_record_breaker, _action, reason=_reason))


@receives(signals.breaker_operated)
def record_operated_breaker(*, name: str, action: str, until: datetime | None = None, **values: Any) -> None:
    match_id = Breaker.objects.filter(name=name).values_list("ref__match_id", flat=True).first()
    end: dict[str, Any] = {"until": as_utc_iso(until)} if until else {}
    _record(action, target=name, match_id=match_id, **values, **end)


@receives(signals.importance_set)
def record_importance(*, importance: int, is_fixed: bool = True, **values: Any) -> None:
    level = Importance(importance).label.lower()
    reason = f"set to {level}" if is_fixed else f"by the rules again: {level}"
    _record("importance", reason=reason, importance=importance, **values)


@receives(signals.silence_climbed)
def record_rung(*, rung: int, detail: Mapping[str, Any] | None = None, **values: Any) -> None:
    _record(Rung(rung).action, actor="scheduler", rung=rung, **values, **(detail or {}))


@receives(signals.silence_over)
def record_end_of_silence(
    *, now: datetime, match_id: int, rung: int, seconds: float, source_key: str = "", **_: Any
) -> None:
    since = now - timedelta(seconds=seconds) - _CLOCK_MARGIN
    tried = AuditEntry.objects.filter(
        match_id=match_id, action_type__in=[step.action for step in RUNGS], timestamp__gte=since
    )
    steps = list(tried.order_by("timestamp", "pk").values_list("action_type", flat=True))
    text = f"read again from {source_key}" if source_key else "it is not polled any more"
    audit.record(
        actor="scheduler",
        action_type="silence_over",
        trigger_condition=f"{text}, after {seconds:.0f} s",
        target=match_name(match_id),
        match_id=match_id,
        duration_seconds=seconds,
        metadata={"rung": rung, "source_key": source_key, "tried": steps},
        now=now,
    )


@receives(signals.scraper_took_over)
def record_takeover(*, problems: str = "", **values: Any) -> None:
    outcome = AuditOutcome.PARTIAL if problems else AuditOutcome.SUCCESS
    _record("takeover", actor="ingest", outcome=outcome, problems=problems, **values)


@receives(signals.group_changed)
def record_group(*, group: str, action: str, **values: Any) -> None:
    _record(action, target=group, **values)


@receives(signals.operation_changed)
def record_operation(*, event: str, reason: str = REQUESTED, **values: Any) -> None:
    outcome = AuditOutcome.FAILED if event == "bulk_failed" else AuditOutcome.SUCCESS
    _record(event, reason=reason, outcome=outcome, **values)


@receives(signals.errors_resolved)
def record_resolved_errors(*, count: int, **values: Any) -> None:
    errors = f"{count} {'error' if count == 1 else 'errors'}"
    _record("errors_resolved", reason=REQUESTED, target=errors, **values)


@receives(signals.tasks_moved)
def record_moved_tasks(*, now: datetime, task_ids: list[int], to: str, actor: str, reason: str, **_: Any) -> None:
    about = ScrapeTask.objects.filter(pk__in=task_ids).order_by("pk").values_list("pk", "ref__match_id", "attempt")
    for task_id, match_id, attempt in about:
        audit.record(
            actor=actor,
            action_type=MOVES.get(to, audit.RETRY),
            trigger_condition=reason,
            target=f"task {task_id}",
            match_id=match_id,
            before={"attempt": attempt},
            metadata={"task_id": task_id},
            now=now,
        )


@receives(signals.browser_replaced)
def record_new_browser(*, worker_id: str, cause: str = "", **values: Any) -> None:
    if cause != LaunchCause.COMMAND:  # `record_command` records it with the operator
        _record(audit.BROWSER_RECYCLE, actor="worker", target=worker_id, cause=cause, **values)


@receives(signals.command_done)
def record_command(
    *, worker_id: str, kind: str, actor: str = "", outcome: str = "", has_failed: bool = False, **values: Any
) -> None:
    """A command that no worker carried out has failed; the others are evaluated later."""
    is_manual = actor not in audit.COMPONENTS
    recycle = audit.MANUAL_TRIGGER if is_manual else audit.BROWSER_RECYCLE
    _record(
        recycle if kind == CommandKind.RECYCLE_BROWSER else audit.CONTEXT_POOL_RESET,
        actor=actor,
        target=worker_id,
        outcome=AuditOutcome.FAILED if has_failed else None,
        came_of_it=outcome,
        **values,
    )


@receives(signals.orphan_killed)
def record_orphan(*, pid: int, dry_run: bool = False, **values: Any) -> None:
    action = "orphan_found" if dry_run else "orphan_killed"
    about: dict[str, Any] = {"reason": "a browser outlived its worker", "pid": pid, "dry_run": dry_run} | values
    _record(action, actor="reaper", target=f"pid {pid}", **about)


@receives(signals.store_returned)
def record_replay(*, worker_id: str, seconds: float, dropped: int, **values: Any) -> None:
    _record(
        "spool_replay",
        actor="worker",
        reason=f"the database was away for {seconds:.0f} s",
        target=worker_id,
        outcome=AuditOutcome.PARTIAL if dropped else AuditOutcome.SUCCESS,
        seconds=seconds,
        dropped=dropped,
        **values,
    )


@receives(consumer_changed)
def record_changed_consumer(
    *, now: datetime, consumer: str, changes: Mapping[str, Any], actor: str = UNNAMED_OPERATOR, **_: Any
) -> None:
    _record("consumer_changed", now=now, actor=actor, reason=REQUESTED, target=consumer, **changes)
