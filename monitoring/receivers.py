"""Turns what scraping announces into audit entries and alerts.

A receiver must never hurt the sender: each runs in a savepoint of its own, and what it raises is logged and dropped.
match_updated fires with every poll and is left alone: what an update ends is ended by the staleness watchdog.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from django.db import transaction
from django.dispatch import Signal
from django.utils import timezone

from apiauth.signals import key_issued, key_revoked
from monitoring import audit
from monitoring.alerts import causes
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import AuditOutcome, Severity
from scraping import signals
from scraping.models import Breaker, Match, ScrapeTask, Source
from victoryline.lib.times import as_utc_iso

logger = logging.getLogger(__name__)
Listener = Callable[..., None]


def listens_to(signal: Signal) -> Callable[[Listener], Listener]:
    def connect(listener: Listener) -> Listener:
        @wraps(listener)
        def safely(sender: object, **announced: Any) -> None:
            announced.pop("signal", None)
            now: datetime = announced.pop("now", None) or timezone.now()
            try:
                with transaction.atomic():
                    listener(now=now, **announced)
            except Exception:
                logger.warning("Could not note %s", listener.__name__, exc_info=True, extra={"action": "receiver"})

        signal.connect(safely, weak=False, dispatch_uid=f"monitoring.{listener.__name__}")
        return safely

    return connect


@listens_to(signals.task_died)
def note_death(*, now: datetime, task_id: int, match_id: int | None, reason: str = "", **more: Any) -> None:
    task = ScrapeTask.objects.filter(pk=task_id).values_list("source__key", "job_id", "job__name").first()
    source, job_id, job_name = task or ("?", None, None)
    key = causes.death(match_id=match_id, source_key=source, job_id=job_id)
    name = _name(match_id) if match_id else job_name or f"the list of matches at {source}"
    detail = {"task_id": task_id, "match_id": match_id, "reason": reason, **_plain(more)}
    raise_alert(key, Severity.CRITICAL, f"A task of {name} is dead: {reason}", detail, now)


@listens_to(signals.match_paused)
def note_pause(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **more: Any) -> None:
    audit.record(
        actor=actor or "lifecycle", action_type="pause", trigger_condition=reason, target=_name(match_id), now=now
    )
    detail = {"match_id": match_id, "reason": reason, **_plain(more)}
    raise_alert(causes.paused(match_id), Severity.WARNING, f"{_name(match_id)} is paused: {reason}", detail, now)


@listens_to(signals.match_resumed)
def note_resume(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    audit.record(
        actor=actor or "lifecycle", action_type="resume", trigger_condition=reason, target=_name(match_id), now=now
    )
    close_alert(causes.paused(match_id), now)


@listens_to(signals.watch_began)
def note_watch(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    audit.record(actor=actor, action_type="watch", trigger_condition=reason, target=_name(match_id), now=now)


@listens_to(signals.watch_ended)
def note_end_of_watch(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    audit.record(actor=actor, action_type="watch_end", trigger_condition=reason, target=_name(match_id), now=now)


@listens_to(signals.watch_put_off)
def note_refused_watch(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    audit.record(
        actor=actor,
        action_type="watch",
        trigger_condition=reason,
        target=_name(match_id),
        outcome=AuditOutcome.FAILED,
        now=now,
    )


@listens_to(signals.matches_joined)
def note_joining(*, now: datetime, match_id: int, gone_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    audit.record(
        actor=actor,
        action_type="join",
        trigger_condition=reason,
        target=_name(match_id),
        metadata={"match_id": match_id, "gone_id": gone_id},
        now=now,
    )
    close_alert(causes.paused(gone_id), now)


@listens_to(signals.matches_kept_apart)
def note_keeping_apart(*, now: datetime, match_id: int, other_id: int, actor: str = "", **_: Any) -> None:
    audit.record(
        actor=actor,
        action_type="keep_apart",
        trigger_condition="called two matches",
        target=_name(match_id),
        metadata={"match_id": match_id, "other_id": other_id},
        now=now,
    )


@listens_to(signals.scraper_restarted)
def note_restart(*, now: datetime, match_id: int, reason: str = "", **more: Any) -> None:
    audit.record(
        actor="scheduler",
        action_type=audit.SOFT_RESTART,
        trigger_condition=reason,
        target=_name(match_id),
        outcome=AuditOutcome.PENDING,
        metadata=_plain(more),
        now=now,
    )


@listens_to(signals.scraper_took_over)
def note_takeover(*, now: datetime, match_id: int, reason: str = "", problems: str = "", **more: Any) -> None:
    audit.record(
        actor="ingest",
        action_type="takeover",
        trigger_condition=reason,
        target=_name(match_id),
        outcome=AuditOutcome.PARTIAL if problems else AuditOutcome.SUCCESS,
        metadata={"problems": problems, **_plain(more)},
        now=now,
    )


@listens_to(signals.match_incomplete)
def note_incomplete(*, now: datetime, match_id: int, missing: list[str], **_: Any) -> None:
    summary = f"{_name(match_id)} has ended, and there is no {', no '.join(missing)}"
    detail = {"match_id": match_id, "missing": ", ".join(missing)}
    raise_alert(causes.incomplete(match_id), Severity.WARNING, summary, detail, now)


@listens_to(signals.match_settled)
def note_settled(*, now: datetime, match_id: int, **_: Any) -> None:
    close_alert(causes.incomplete(match_id), now)


@listens_to(signals.browser_replaced)
def note_new_browser(*, now: datetime, worker_id: str, reason: str = "", seconds: float = 0.0, **more: Any) -> None:
    audit.record(
        actor="worker",
        action_type=audit.BROWSER_RECYCLE,
        trigger_condition=reason,
        target=worker_id,
        outcome=AuditOutcome.PENDING,
        duration_seconds=seconds,
        metadata=_plain(more),
        now=now,
    )


@listens_to(signals.breaker_opened)
def note_open_breaker(
    *,
    now: datetime,
    name: str,
    match_id: int | None = None,
    source_id: int | None = None,
    reason: str = "",
    actor: str = "",
    **more: Any,
) -> None:
    if not actor:  # what a person did is written once, with the person's reason
        why = reason or "too many failures"
        audit.record(actor="breaker", action_type="breaker_open", trigger_condition=why, target=name, now=now)
    until = Breaker.objects.filter(name=name).values_list("open_until", flat=True).first()
    end = f"until {until:%H:%M:%S} UTC" if until else "for a while"
    source = Source.objects.filter(pk=source_id or 0).values_list("name", flat=True).first()
    detail = {"breaker": name, "match_id": match_id, "source": source, "reason": reason, **_plain(more)}
    if source:
        summary = f"{source} is left alone {end}; the data of its matches grows old until then"
        raise_alert(causes.breaker(name), Severity.CRITICAL, summary, detail, now)
        return
    summary = f"Reading {_name(match_id)} failed so often that it is left alone {end}"
    if actor:
        summary = f"{_name(match_id)} is left alone {end}, as {actor} decided"
    raise_alert(causes.breaker(name), Severity.WARNING, summary, detail, now)


@listens_to(signals.breaker_half_opened)
def note_half_open_breaker(*, now: datetime, name: str, reason: str = "", actor: str = "", **_: Any) -> None:
    if not actor:
        audit.record(actor="breaker", action_type="breaker_half_open", trigger_condition=reason, target=name, now=now)


@listens_to(signals.breaker_closed)
def note_closed_breaker(*, now: datetime, name: str, reason: str = "", actor: str = "", **_: Any) -> None:
    if not actor:
        why = reason or "it works again"
        audit.record(actor="breaker", action_type="breaker_close", trigger_condition=why, target=name, now=now)
    close_alert(causes.breaker(name), now)


@listens_to(signals.breaker_operated)
def note_operated_breaker(
    *, now: datetime, name: str, action: str, reason: str, actor: str, until: datetime | None = None
) -> None:
    audit.record(
        actor=actor,
        action_type=action,
        trigger_condition=reason,
        target=name,
        metadata={"until": as_utc_iso(until)} if until else {},
        now=now,
    )


@listens_to(signals.orphan_killed)
def note_orphan(
    *, now: datetime, pid: int, memory_bytes: int = 0, dry_run: bool = False, reason: str = "", **more: Any
) -> None:
    audit.record(
        actor="reaper",
        action_type="orphan_found" if dry_run else "orphan_killed",
        trigger_condition=reason or "a browser outlived its worker",
        target=f"pid {pid}",
        metadata={"pid": pid, "memory_bytes": memory_bytes, "dry_run": dry_run, **_plain(more)},
        now=now,
    )


@listens_to(signals.store_returned)
def note_replay(*, now: datetime, worker_id: str, seconds: float, written: int, dropped: int, **_: Any) -> None:
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


@listens_to(signals.disk_ran_short)
def note_full_disk(*, now: datetime, worker_id: str, free_mb: int, **_: Any) -> None:
    summary = f"The disk of worker {worker_id} has {free_mb} MB left: it takes no new tasks"
    detail = {"worker_id": worker_id, "free_mb": free_mb}
    raise_alert(causes.disk(worker_id), Severity.CRITICAL, summary, detail, now)


@listens_to(signals.disk_recovered)
def note_free_disk(*, now: datetime, worker_id: str, **_: Any) -> None:
    close_alert(causes.disk(worker_id), now)


@listens_to(signals.layout_lost)
def note_lost_layout(*, now: datetime, match_id: int, failures: int, reason: str = "", **_: Any) -> None:
    detail = {"match_id": match_id, "failures": failures, "reason": reason}
    summary = f"The page of {_name(match_id)} has changed: {reason}"
    raise_alert(causes.layout(match_id), Severity.CRITICAL, summary, detail, now)


@listens_to(signals.layout_found)
def note_found_layout(*, now: datetime, match_id: int, **_: Any) -> None:
    close_alert(causes.layout(match_id), now)


@listens_to(signals.source_lost)
def note_lost_source(*, now: datetime, source_id: int, failures: int, reason: str = "", **_: Any) -> None:
    source = Source.objects.filter(pk=source_id).values_list("key", "name").first()
    if source is not None:
        detail = {"source": source[0], "failures": failures, "reason": reason}
        raise_alert(causes.changed(source[0]), Severity.CRITICAL, f"{source[1]} has changed: {reason}", detail, now)


@listens_to(signals.breaker_closed)
def note_understood_source(*, now: datetime, source_id: int | None = None, **_: Any) -> None:
    key = Source.objects.filter(pk=source_id or 0).values_list("key", flat=True).first()
    if key is not None:
        close_alert(causes.changed(key), now)


@listens_to(signals.token_lost)
def note_lost_token(*, now: datetime, source_key: str, seconds: float, reason: str = "", **more: Any) -> None:
    name = Source.objects.filter(key=source_key).values_list("name", flat=True).first() or source_key
    detail = {"source": source_key, "seconds": round(seconds), "reason": reason, **_plain(more)}
    summary = f"{name} has given us no token for {seconds / 60:.0f} min: only what it tells everybody is read"
    raise_alert(causes.token(source_key), Severity.WARNING, summary, detail, now)


@listens_to(signals.token_found)
def note_found_token(*, now: datetime, source_key: str, **_: Any) -> None:
    close_alert(causes.token(source_key), now)


@listens_to(signals.errors_resolved)
def note_resolved_errors(*, now: datetime, count: int, actor: str, **_: Any) -> None:
    audit.record(
        actor=actor,
        action_type="errors_resolved",
        trigger_condition="marked by a person",
        target=f"{count} {'error' if count == 1 else 'errors'}",
        now=now,
    )


@listens_to(signals.task_retried)
def note_retry(*, now: datetime, task_id: int, actor: str, **_: Any) -> None:
    audit.record(
        actor=actor, action_type="retry", trigger_condition="asked for by a person", target=f"task {task_id}", now=now
    )


@listens_to(key_issued)
def note_issued_key(*, now: datetime, prefix: str, consumer: str = "", actor: str = "operator", **_: Any) -> None:
    audit.record(
        actor=actor,
        action_type="key_issued",
        trigger_condition="asked for by a person",
        target=prefix,
        metadata={"consumer": consumer},
        now=now,
    )


@listens_to(key_revoked)
def note_revoked_key(*, now: datetime, prefix: str, actor: str = "operator", **_: Any) -> None:
    audit.record(
        actor=actor, action_type="key_revoked", trigger_condition="asked for by a person", target=prefix, now=now
    )


def _name(match_id: int | None) -> str:
    title = Match.objects.filter(pk=match_id or 0).values_list("title", flat=True).first()
    return title or f"match {match_id}"


def _plain(values: dict[str, Any]) -> dict[str, str | int | float | bool | None]:
    """What a signal brought along, in a form that JSON can hold."""
    return {
        key: value if isinstance(value, str | int | float | bool | None) else str(value)
        for key, value in values.items()
    }
