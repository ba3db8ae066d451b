"""Turns the signals of scraping and apiauth into audit entries and alerts. Importing the module connects them.

A receiver must not break its sender: each runs in its own savepoint, and its errors are logged and dropped.
match_updated is sent with every poll and has no receiver: the staleness watchdog closes alerts after an update.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import Any

from django.db import transaction
from django.dispatch import Signal
from django.utils import timezone

from apiauth.signals import consumer_changed, key_issued, key_revoked, key_rotated
from monitoring import audit
from monitoring.alerts import alert_keys
from monitoring.alerts.alert_keys import AlertKind
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import AuditEntry, AuditOutcome, Severity
from scraping import signals
from scraping.browser.health import LaunchCause
from scraping.models import Breaker, Importance, Match, OrderKind, ScrapeTask, Source
from scraping.policies.ladder import Rung
from victoryline.lib.operators import UNNAMED_OPERATOR
from victoryline.lib.times import as_utc_iso

logger = logging.getLogger(__name__)
Receiver = Callable[..., None]

REQUESTED = "requested by an operator"
SILENCE_ACTIONS = {
    Rung.HINT: "silence_hint",
    Rung.SESSION: "silence_session",
    Rung.BROWSER: "silence_browser",
    Rung.OTHER_SOURCE: "silence_other_source",
    Rung.FROZEN: "frozen",
}
_CLOCK_MARGIN = timedelta(seconds=30)  # the first rung is recorded a little after the start of the silence


# Signals that are only recorded: the action, and the values that apply where the signal has none. `subject` names the
# value of the signal that is the target; without one, the target is the match.
KEY_DEFAULTS = {"actor": UNNAMED_OPERATOR, "reason": REQUESTED, "subject": "prefix"}
AUDITED: tuple[tuple[Signal, str, dict[str, Any]], ...] = (
    (signals.match_paused, "pause", {"actor": "lifecycle"}),
    (signals.match_resumed, "resume", {"actor": "lifecycle"}),
    (signals.watch_began, "watch", {}),
    (signals.watch_ended, "watch_end", {}),
    (signals.watch_put_off, "watch", {"outcome": AuditOutcome.FAILED}),
    (signals.matches_joined, "join", {}),
    (signals.matches_kept_apart, "keep_apart", {"reason": "decided by an operator"}),
    (signals.scraper_restarted, audit.SOFT_RESTART, {"actor": "scheduler"}),
    (key_issued, "key_issued", KEY_DEFAULTS),
    (key_rotated, "key_rotated", KEY_DEFAULTS),
    (key_revoked, "key_revoked", KEY_DEFAULTS),
)
# Signals about a match that raise an alert. The summary is made of the match's name and the values of the signal.
RAISING: tuple[tuple[Signal, AlertKind, Severity, str], ...] = (
    (signals.match_paused, alert_keys.PAUSED, Severity.WARNING, "{match} is paused: {reason}"),
    (signals.match_incomplete, alert_keys.INCOMPLETE, Severity.WARNING, "{match} has ended without {missing}"),
    (signals.layout_lost, alert_keys.LAYOUT, Severity.CRITICAL, "The page of {match} has changed: {reason}"),
)
# Signals that close an alert: its kind, and the value of the signal that is its subject.
CLOSING: tuple[tuple[Signal, AlertKind, str], ...] = (
    (signals.match_resumed, alert_keys.PAUSED, "match_id"),
    (signals.matches_joined, alert_keys.PAUSED, "gone_id"),
    (signals.match_settled, alert_keys.INCOMPLETE, "match_id"),
    (signals.layout_found, alert_keys.LAYOUT, "match_id"),
    (signals.token_found, alert_keys.TOKEN, "source_key"),
    (signals.breaker_closed, alert_keys.BREAKER, "name"),
)


def receives(signal: Signal, name: str = "") -> Callable[[Receiver], Receiver]:
    """Connects a receiver; it does not get the signal's empty texts, so that its defaults apply."""

    def connect(receiver: Receiver) -> Receiver:
        label = name or receiver.__name__

        @wraps(receiver)
        def receive(sender: object, **values: Any) -> None:
            values = {name: value for name, value in values.items() if name != "signal" and value != ""}
            now: datetime = values.pop("now", None) or timezone.now()
            try:
                with transaction.atomic():
                    receiver(now=now, **values)
            except Exception:
                logger.warning("Receiver %s failed", label, exc_info=True, extra={"action": "receiver"})

        signal.connect(receive, weak=False, dispatch_uid=f"monitoring.{label}")
        return receive

    return connect


def _match_name(match_id: int | None) -> str:
    title = Match.objects.filter(pk=match_id or 0).values_list("title", flat=True).first()
    return title or f"match {match_id}"


def _json_safe(values: Mapping[str, Any]) -> dict[str, str | int | float | bool | None]:
    """Returns the values of a signal, with lists and anything that JSON cannot hold as text."""
    texts = {key: ", ".join(value) if isinstance(value, list) else value for key, value in values.items()}
    return {
        key: value if isinstance(value, str | int | float | bool | None) else str(value) for key, value in texts.items()
    }


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
        target=target or _match_name(match_id),
        match_id=match_id,
        outcome=outcome,
        metadata=_json_safe(metadata),
        duration_seconds=seconds,
        now=now,
    )


def _raise(
    kind: AlertKind, severity: Severity, text: str, *, now: datetime, match_id: int, reason: str = "", **values: Any
) -> None:
    detail = {"match_id": match_id, "reason": reason, **_json_safe(values)}
    summary = text.format(match=_match_name(match_id), **detail)
    raise_alert(kind.of(match_id), severity, summary, detail, now)


def _close(kind: AlertKind, subject: str, *, now: datetime, **values: Any) -> None:
    close_alert(kind.of(values[subject]), now)


for _signal, _action, _defaults in AUDITED:
    receives(_signal, f"record_{_action}_{_defaults.get('outcome', '')}")(partial(_record, _action, **_defaults))
for _signal, _kind, _severity, _text in RAISING:
    receives(_signal, f"raise_{_kind}")(partial(_raise, _kind, _severity, _text))
for _signal, _kind, _subject in CLOSING:
    receives(_signal, f"close_{_kind}_{_subject}")(partial(_close, _kind, _subject))


# Matches and tasks


@receives(signals.task_died)
def record_death(*, now: datetime, task_id: int, match_id: int | None, reason: str = "", **more: Any) -> None:
    task = ScrapeTask.objects.filter(pk=task_id).values_list("source__key", "job_id", "job__name").first()
    source, job_id, job_name = task or ("?", None, None)
    key = alert_keys.dead_task(match_id=match_id, source_key=source, job_id=job_id)
    name = _match_name(match_id) if match_id else job_name or f"the list of matches at {source}"
    detail = {"task_id": task_id, "match_id": match_id, "reason": reason, **_json_safe(more)}
    raise_alert(key, Severity.CRITICAL, f"A task of {name} is dead: {reason}", detail, now)


@receives(signals.importance_set)
def record_importance(*, importance: int, is_fixed: bool = True, **values: Any) -> None:
    level = Importance(importance).label.lower()
    reason = f"set to {level}" if is_fixed else f"by the rules again: {level}"
    _record("importance", reason=reason, importance=importance, **values)


@receives(signals.silence_climbed)
def record_rung(*, rung: int, detail: Mapping[str, Any] | None = None, **values: Any) -> None:
    _record(SILENCE_ACTIONS[Rung(rung)], actor="scheduler", rung=rung, **values, **(detail or {}))


@receives(signals.silence_over)
def record_end_of_silence(
    *, now: datetime, match_id: int, rung: int, seconds: float, source_key: str = "", **_: Any
) -> None:
    since = now - timedelta(seconds=seconds) - _CLOCK_MARGIN
    tried = AuditEntry.objects.filter(match_id=match_id, action_type__in=SILENCE_ACTIONS.values(), timestamp__gte=since)
    steps = list(tried.order_by("timestamp", "pk").values_list("action_type", flat=True))
    text = f"read again from {source_key}" if source_key else "it is not polled any more"
    audit.record(
        actor="scheduler",
        action_type="silence_over",
        trigger_condition=f"{text}, after {seconds:.0f} s",
        target=_match_name(match_id),
        match_id=match_id,
        duration_seconds=seconds,
        metadata={"rung": rung, "source_key": source_key, "tried": steps},
        now=now,
    )


@receives(signals.scraper_took_over)
def record_takeover(*, problems: str = "", **values: Any) -> None:
    outcome = AuditOutcome.PARTIAL if problems else AuditOutcome.SUCCESS
    _record("takeover", actor="ingest", outcome=outcome, problems=problems, **values)


@receives(signals.errors_resolved)
def record_resolved_errors(*, count: int, **values: Any) -> None:
    errors = f"{count} {'error' if count == 1 else 'errors'}"
    _record("errors_resolved", reason=REQUESTED, target=errors, **values)


@receives(signals.task_retried)
def record_retry(*, now: datetime, task_id: int, actor: str, **_: Any) -> None:
    about = ScrapeTask.objects.filter(pk=task_id).values_list("ref__match_id", "attempt").first()
    match_id, attempt = about or (None, 0)
    audit.record(
        actor=actor,
        action_type=audit.RETRY,
        trigger_condition=REQUESTED,
        target=f"task {task_id}",
        match_id=match_id,
        before={"attempt": attempt},
        metadata={"task_id": task_id},
        now=now,
    )


# Sources and breakers


@receives(signals.breaker_opened)
def raise_open_breaker(
    *,
    now: datetime,
    name: str,
    match_id: int | None = None,
    source_id: int | None = None,
    reason: str = "too many failures",
    actor: str = "",
    **more: Any,
) -> None:
    _record_breaker("breaker_open", reason, now=now, name=name, match_id=match_id, actor=actor)
    until = Breaker.objects.filter(name=name).values_list("open_until", flat=True).first()
    end = f"until {until:%H:%M:%S} UTC" if until else "for a while"
    source = Source.objects.filter(pk=source_id or 0).values_list("name", flat=True).first()
    if source:
        summary = f"{source} is not polled {end}; the data of its matches grows old until then"
    elif actor:
        summary = f"{_match_name(match_id)} is not polled {end}, by decision of {actor}"
    else:
        summary = f"Reading {_match_name(match_id)} failed so often that it is not polled {end}"
    severity = Severity.CRITICAL if source else Severity.WARNING
    detail = {"breaker": name, "match_id": match_id, "source": source, "reason": reason, **_json_safe(more)}
    raise_alert(alert_keys.BREAKER.of(name), severity, summary, detail, now)


@receives(signals.breaker_half_opened)
def record_half_open_breaker(*, now: datetime, name: str, reason: str = "", **values: Any) -> None:
    _record_breaker("breaker_half_open", reason, now=now, name=name, **values)


@receives(signals.breaker_closed)
def record_closed_breaker(
    *, now: datetime, name: str, source_id: int | None = None, reason: str = "probes succeeded", **values: Any
) -> None:
    _record_breaker("breaker_close", reason, now=now, name=name, **values)
    key = Source.objects.filter(pk=source_id or 0).values_list("key", flat=True).first()
    if key is not None:  # the source is parsed again
        close_alert(alert_keys.CHANGED.of(key), now)


def _record_breaker(
    action: str, reason: str, *, now: datetime, name: str, match_id: int | None = None, actor: str = "", **_: Any
) -> None:
    if not actor:  # an operator's action is recorded once, with its reason
        _record(action, now=now, actor="breaker", reason=reason, target=name, match_id=match_id)


@receives(signals.breaker_operated)
def record_operated_breaker(*, name: str, action: str, until: datetime | None = None, **values: Any) -> None:
    match_id = Breaker.objects.filter(name=name).values_list("ref__match_id", flat=True).first()
    end: dict[str, Any] = {"until": as_utc_iso(until)} if until else {}
    _record(action, target=name, match_id=match_id, **values, **end)


@receives(signals.source_lost)
def raise_lost_source(*, now: datetime, source_id: int, failures: int, reason: str = "", **_: Any) -> None:
    source = Source.objects.filter(pk=source_id).values_list("key", "name").first()
    if source is not None:
        key, name = source
        detail = {"source": key, "failures": failures, "reason": reason}
        raise_alert(alert_keys.CHANGED.of(key), Severity.CRITICAL, f"{name} has changed: {reason}", detail, now)


@receives(signals.token_lost)
def raise_lost_token(*, now: datetime, source_key: str, seconds: float, reason: str = "", **more: Any) -> None:
    name = Source.objects.filter(key=source_key).values_list("name", flat=True).first() or source_key
    detail = {"source": source_key, "seconds": round(seconds), "reason": reason, **_json_safe(more)}
    summary = f"{name} has issued no token for {seconds / 60:.0f} min: only its public data is read"
    raise_alert(alert_keys.TOKEN.of(source_key), Severity.WARNING, summary, detail, now)


# Workers and consumers


@receives(signals.browser_replaced)
def record_new_browser(*, worker_id: str, cause: str = "", **values: Any) -> None:
    if cause != LaunchCause.ORDER:  # `record_order` records it with the operator
        _record(audit.BROWSER_RECYCLE, actor="worker", target=worker_id, cause=cause, **values)


@receives(signals.order_done)
def record_order(*, worker_id: str, kind: str, outcome: str = "", has_failed: bool = False, **values: Any) -> None:
    """A command that no worker carried out has failed; the others are evaluated later."""
    _record(
        audit.BROWSER_RECYCLE if kind == OrderKind.RECYCLE_BROWSER else audit.FRESH_SESSION,
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


@receives(signals.disk_ran_short)
def raise_full_disk(*, now: datetime, worker_id: str, free_mb: int, **_: Any) -> None:
    summary = f"The disk of worker {worker_id} has {free_mb} MB left: it takes no new tasks"
    detail = {"worker_id": worker_id, "free_mb": free_mb}
    raise_alert(alert_keys.disk(worker_id), Severity.CRITICAL, summary, detail, now)


@receives(signals.disk_recovered)
def close_full_disk(*, now: datetime, worker_id: str, **_: Any) -> None:
    close_alert(alert_keys.disk(worker_id), now)


@receives(consumer_changed)
def record_changed_consumer(
    *, now: datetime, consumer: str, changes: Mapping[str, Any], actor: str = UNNAMED_OPERATOR, **_: Any
) -> None:
    _record("consumer_changed", now=now, actor=actor, reason=REQUESTED, target=consumer, **changes)
