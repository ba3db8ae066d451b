"""What happens to matches: pauses, watches, joins, deaths, ends."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import AuditOutcome, Severity
from monitoring.receivers.listening import listens_to, name_of, plain, record_of_match
from scraping import signals
from scraping.models import Importance, ScrapeTask


@listens_to(signals.task_died)
def note_death(*, now: datetime, task_id: int, match_id: int | None, reason: str = "", **more: Any) -> None:
    task = ScrapeTask.objects.filter(pk=task_id).values_list("source__key", "job_id", "job__name").first()
    source, job_id, job_name = task or ("?", None, None)
    key = causes.death(match_id=match_id, source_key=source, job_id=job_id)
    name = name_of(match_id) if match_id else job_name or f"the list of matches at {source}"
    detail = {"task_id": task_id, "match_id": match_id, "reason": reason, **plain(more)}
    raise_alert(key, Severity.CRITICAL, f"A task of {name} is dead: {reason}", detail, now)


@listens_to(signals.match_paused)
def note_pause(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **more: Any) -> None:
    record_of_match(
        match_id,
        actor=actor or "lifecycle",
        action_type="pause",
        trigger_condition=reason,
        now=now,
    )
    detail = {"match_id": match_id, "reason": reason, **plain(more)}
    raise_alert(causes.paused(match_id), Severity.WARNING, f"{name_of(match_id)} is paused: {reason}", detail, now)


@listens_to(signals.match_resumed)
def note_resume(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    record_of_match(
        match_id,
        actor=actor or "lifecycle",
        action_type="resume",
        trigger_condition=reason,
        now=now,
    )
    close_alert(causes.paused(match_id), now)


@listens_to(signals.watch_began)
def note_watch(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    record_of_match(
        match_id,
        actor=actor,
        action_type="watch",
        trigger_condition=reason,
        now=now,
    )


@listens_to(signals.watch_ended)
def note_end_of_watch(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    record_of_match(
        match_id,
        actor=actor,
        action_type="watch_end",
        trigger_condition=reason,
        now=now,
    )


@listens_to(signals.watch_put_off)
def note_refused_watch(*, now: datetime, match_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    record_of_match(
        match_id,
        actor=actor,
        action_type="watch",
        trigger_condition=reason,
        outcome=AuditOutcome.FAILED,
        now=now,
    )


@listens_to(signals.matches_joined)
def note_joining(*, now: datetime, match_id: int, gone_id: int, reason: str = "", actor: str = "", **_: Any) -> None:
    record_of_match(
        match_id,
        actor=actor,
        action_type="join",
        trigger_condition=reason,
        metadata={"match_id": match_id, "gone_id": gone_id},
        now=now,
    )
    close_alert(causes.paused(gone_id), now)


@listens_to(signals.matches_kept_apart)
def note_keeping_apart(*, now: datetime, match_id: int, other_id: int, actor: str = "", **_: Any) -> None:
    record_of_match(
        match_id,
        actor=actor,
        action_type="keep_apart",
        trigger_condition="called two matches",
        metadata={"match_id": match_id, "other_id": other_id},
        now=now,
    )


@listens_to(signals.match_incomplete)
def note_incomplete(*, now: datetime, match_id: int, missing: list[str], **_: Any) -> None:
    summary = f"{name_of(match_id)} has ended, and there is no {', no '.join(missing)}"
    detail = {"match_id": match_id, "missing": ", ".join(missing)}
    raise_alert(causes.incomplete(match_id), Severity.WARNING, summary, detail, now)


@listens_to(signals.match_settled)
def note_settled(*, now: datetime, match_id: int, **_: Any) -> None:
    close_alert(causes.incomplete(match_id), now)


@listens_to(signals.layout_lost)
def note_lost_layout(*, now: datetime, match_id: int, failures: int, reason: str = "", **_: Any) -> None:
    detail = {"match_id": match_id, "failures": failures, "reason": reason}
    summary = f"The page of {name_of(match_id)} has changed: {reason}"
    raise_alert(causes.layout(match_id), Severity.CRITICAL, summary, detail, now)


@listens_to(signals.layout_found)
def note_found_layout(*, now: datetime, match_id: int, **_: Any) -> None:
    close_alert(causes.layout(match_id), now)


@listens_to(signals.importance_set)
def note_importance(
    *, now: datetime, match_id: int, importance: int, actor: str = "", is_fixed: bool = True, **_: Any
) -> None:
    level = Importance(importance).label.lower()
    record_of_match(
        match_id,
        actor=actor,
        action_type="importance",
        trigger_condition=f"said to be {level}" if is_fixed else f"given back to the rules: {level}",
        metadata={"importance": importance},
        now=now,
    )
