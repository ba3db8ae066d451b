"""Receivers of match signals: pauses, watches, merges, dead tasks, endings, silence, restarts, retries."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from monitoring import audit
from monitoring.alerts import alert_keys
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import AuditEntry, AuditOutcome, Severity
from monitoring.receivers.base import json_safe, match_name, receives, record_match_action
from scraping import signals
from scraping.models import Importance, ScrapeTask
from scraping.policies.ladder import Rung

SILENCE_ACTIONS = {
    Rung.HINT: "silence_hint",
    Rung.SESSION: "silence_session",
    Rung.BROWSER: "silence_browser",
    Rung.OTHER_SOURCE: "silence_other_source",
    Rung.FROZEN: "frozen",
}
_CLOCK_MARGIN = timedelta(seconds=30)  # the first rung is recorded a little after the start of the silence


@receives(signals.task_died)
def record_death(*, now: datetime, task_id: int, match_id: int | None, reason: str = "", **more: Any) -> None:
    task = ScrapeTask.objects.filter(pk=task_id).values_list("source__key", "job_id", "job__name").first()
    source, job_id, job_name = task or ("?", None, None)
    key = alert_keys.dead_task(match_id=match_id, source_key=source, job_id=job_id)
    name = match_name(match_id) if match_id else job_name or f"the list of matches at {source}"
    detail = {"task_id": task_id, "match_id": match_id, "reason": reason, **json_safe(more)}
    raise_alert(key, Severity.CRITICAL, f"A task of {name} is dead: {reason}", detail, now)


@receives(signals.match_paused)
def record_pause(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **more: Any) -> None:
    record_match_action(match_id, "pause", actor=actor or "lifecycle", reason=reason, now=now)
    detail = {"match_id": match_id, "reason": reason, **json_safe(more)}
    raise_alert(
        alert_keys.PAUSED.of(match_id), Severity.WARNING, f"{match_name(match_id)} is paused: {reason}", detail, now
    )


@receives(signals.match_resumed)
def record_resume(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    record_match_action(match_id, "resume", actor=actor or "lifecycle", reason=reason, now=now)
    close_alert(alert_keys.PAUSED.of(match_id), now)


@receives(signals.watch_began)
def record_watch(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    record_match_action(match_id, "watch", actor=actor, reason=reason, now=now)


@receives(signals.watch_ended)
def record_end_of_watch(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    record_match_action(match_id, "watch_end", actor=actor, reason=reason, now=now)


@receives(signals.watch_put_off)
def record_refused_watch(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    record_match_action(match_id, "watch", actor=actor, reason=reason, outcome=AuditOutcome.FAILED, now=now)


@receives(signals.matches_joined)
def record_joining(*, now: datetime, match_id: int, gone_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    record_match_action(
        match_id, "join", actor=actor, reason=reason, metadata={"match_id": match_id, "gone_id": gone_id}, now=now
    )
    close_alert(alert_keys.PAUSED.of(gone_id), now)


@receives(signals.matches_kept_apart)
def record_keeping_apart(*, now: datetime, match_id: int, other_id: int, actor: str = "", **_: Any) -> None:
    record_match_action(
        match_id,
        "keep_apart",
        actor=actor,
        reason="decided by an operator",
        metadata={"match_id": match_id, "other_id": other_id},
        now=now,
    )


@receives(signals.match_incomplete)
def record_incomplete(*, now: datetime, match_id: int, missing: list[str], **_: Any) -> None:
    summary = f"{match_name(match_id)} has ended without {', '.join(missing)}"
    detail = {"match_id": match_id, "missing": ", ".join(missing)}
    raise_alert(alert_keys.INCOMPLETE.of(match_id), Severity.WARNING, summary, detail, now)


@receives(signals.match_settled)
def record_settled(*, now: datetime, match_id: int, **_: Any) -> None:
    close_alert(alert_keys.INCOMPLETE.of(match_id), now)


@receives(signals.layout_lost)
def record_lost_layout(*, now: datetime, match_id: int, failures: int, reason: str = "", **_: Any) -> None:
    detail = {"match_id": match_id, "failures": failures, "reason": reason}
    summary = f"The page of {match_name(match_id)} has changed: {reason}"
    raise_alert(alert_keys.LAYOUT.of(match_id), Severity.CRITICAL, summary, detail, now)


@receives(signals.layout_found)
def record_found_layout(*, now: datetime, match_id: int, **_: Any) -> None:
    close_alert(alert_keys.LAYOUT.of(match_id), now)


@receives(signals.importance_set)
def record_importance(
    *, now: datetime, match_id: int, importance: int, actor: str = "", is_fixed: bool = True, **_: Any
) -> None:
    level = Importance(importance).label.lower()
    record_match_action(
        match_id,
        "importance",
        actor=actor,
        reason=f"set to {level}" if is_fixed else f"by the rules again: {level}",
        metadata={"importance": importance},
        now=now,
    )


@receives(signals.silence_climbed)
def record_rung(
    *, now: datetime, match_id: int, rung: int, reason: str, detail: dict[str, Any] | None = None, **_: Any
) -> None:
    record_match_action(
        match_id,
        SILENCE_ACTIONS[Rung(rung)],
        actor="scheduler",
        reason=reason,
        metadata={"rung": rung, **json_safe(detail or {})},
        now=now,
    )


@receives(signals.silence_over)
def record_end_of_silence(
    *, now: datetime, match_id: int, rung: int, seconds: float, source_key: str = "", **_: Any
) -> None:
    since = now - timedelta(seconds=seconds) - _CLOCK_MARGIN
    tried = AuditEntry.objects.filter(match_id=match_id, action_type__in=SILENCE_ACTIONS.values(), timestamp__gte=since)
    text = f"read again from {source_key}" if source_key else "it is not polled any more"
    record_match_action(
        match_id,
        "silence_over",
        actor="scheduler",
        reason=f"{text}, after {seconds:.0f} s",
        duration_seconds=seconds,
        metadata={
            "rung": rung,
            "source_key": source_key,
            "tried": list(tried.order_by("timestamp", "pk").values_list("action_type", flat=True)),
        },
        now=now,
    )


@receives(signals.scraper_restarted)
def record_restart(*, now: datetime, match_id: int, reason: str = "", **more: Any) -> None:
    record_match_action(
        match_id, audit.SOFT_RESTART, actor="scheduler", reason=reason, metadata=json_safe(more), now=now
    )


@receives(signals.scraper_took_over)
def record_takeover(*, now: datetime, match_id: int, reason: str = "", problems: str = "", **more: Any) -> None:
    record_match_action(
        match_id,
        "takeover",
        actor="ingest",
        reason=reason,
        outcome=AuditOutcome.PARTIAL if problems else AuditOutcome.SUCCESS,
        metadata={"problems": problems, **json_safe(more)},
        now=now,
    )


@receives(signals.errors_resolved)
def record_resolved_errors(*, now: datetime, count: int, actor: str, **_: Any) -> None:
    audit.record(
        actor=actor,
        action_type="errors_resolved",
        trigger_condition="requested by an operator",
        target=f"{count} {'error' if count == 1 else 'errors'}",
        now=now,
    )


@receives(signals.task_retried)
def record_retry(*, now: datetime, task_id: int, actor: str, **_: Any) -> None:
    about = ScrapeTask.objects.filter(pk=task_id).values_list("ref__match_id", "attempt").first()
    match_id, attempt = about or (None, 0)
    audit.record(
        actor=actor,
        action_type=audit.RETRY,
        trigger_condition="requested by an operator",
        target=f"task {task_id}",
        match_id=match_id,
        before={"attempt": attempt},
        metadata={"task_id": task_id},
        now=now,
    )
