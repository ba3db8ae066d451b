"""Opens and closes alerts by the signals of scraping. Importing the module connects the receivers."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Q
from django.dispatch import Signal

from monitoring.alerts import alert_keys
from monitoring.alerts.alert_keys import AlertKind
from monitoring.alerts.registry import close_alert, close_alerts, raise_alert
from monitoring.models import Severity
from monitoring.signal_receivers import json_safe, match_name, receives
from scraping import signals
from scraping.models import Breaker, ErrorGroup, JobKind, ScrapeTask, Source, TaskState

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


def _raise(
    kind: AlertKind, severity: Severity, text: str, *, now: datetime, match_id: int, reason: str = "", **values: Any
) -> None:
    detail = {"match_id": match_id, "reason": reason, **json_safe(values)}
    summary = text.format(match=match_name(match_id), **detail)
    raise_alert(kind.of(match_id), severity, summary, detail, now)


def _close(kind: AlertKind, subject: str, *, now: datetime, **values: Any) -> None:
    close_alert(kind.of(values[subject]), now)


for _signal, _kind, _severity, _text in RAISING:
    receives(_signal, f"raise_{_kind}")(partial(_raise, _kind, _severity, _text))
for _signal, _kind, _subject in CLOSING:
    receives(_signal, f"close_{_kind}_{_subject}")(partial(_close, _kind, _subject))


@receives(signals.task_died)
def raise_dead_task(*, now: datetime, task_id: int, match_id: int | None, reason: str = "", **more: Any) -> None:
    task = ScrapeTask.objects.filter(pk=task_id).values_list("source__key", "job_id", "job__name", "job__kind")
    source, job_id, job_name, kind = task.first() or ("?", None, None, None)
    key = alert_keys.dead_task(match_id=match_id, source_key=source, job_id=job_id)
    name = match_name(match_id) if match_id else job_name or f"the list of matches at {source}"
    detail = {"task_id": task_id, "match_id": match_id, "reason": reason, **json_safe(more)}
    # A job reports its own failures; live data does not depend on it.
    severity = Severity.CRITICAL if kind in (None, JobKind.WATCH) else Severity.WARNING
    groups = ErrorGroup.objects.filter(errors__task=task_id, muted_until__gt=now)
    muted_until = groups.order_by("-errors__pk").values_list("muted_until", flat=True).first()
    summary = f"A task of {name} is dead: {reason}"
    raise_alert(key, severity, summary, detail, now, muted_until=muted_until)


@receives(signals.tasks_moved)
def close_dead_tasks(*, now: datetime, task_ids: list[int], to: str, **_: Any) -> None:
    """Closes the alert with the last dead task that it is about. A task that is retried leaves it open."""
    about: dict[str, Q] = {}
    for task in ScrapeTask.objects.filter(pk__in=task_ids if to == TaskState.DISCARDED else ()).select_related(
        "ref", "source"
    ):
        match_id = task.ref.match_id if task.ref else None
        key = alert_keys.dead_task(match_id=match_id, source_key=task.source.key, job_id=task.job_id)
        about[key] = Q(ref__match=match_id) if match_id else Q(ref=None, source=task.source, job=task.job_id)
    dead = ScrapeTask.objects.filter(state=TaskState.DEAD)
    close_alerts([key for key, same in about.items() if not dead.filter(same).exists()], now)


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
    until = Breaker.objects.filter(name=name).values_list("open_until", flat=True).first()
    end = f"until {until:%H:%M:%S} UTC" if until else "for a while"
    source = Source.objects.filter(pk=source_id or 0).values_list("name", flat=True).first()
    if source:
        summary = f"{source} is not polled {end}; the data of its matches grows old until then"
    elif actor:
        summary = f"{match_name(match_id)} is not polled {end}, by decision of {actor}"
    else:
        summary = f"Reading {match_name(match_id)} failed so often that it is not polled {end}"
    severity = Severity.CRITICAL if source else Severity.WARNING
    detail = {"breaker": name, "match_id": match_id, "source": source, "reason": reason, **json_safe(more)}
    raise_alert(alert_keys.BREAKER.of(name), severity, summary, detail, now)


@receives(signals.source_lost)
def raise_lost_source(*, now: datetime, source_id: int, failures: int, reason: str = "", **_: Any) -> None:
    source = Source.objects.filter(pk=source_id).values_list("key", "name").first()
    if source is not None:
        key, name = source
        detail = {"source": key, "failures": failures, "reason": reason}
        raise_alert(alert_keys.CHANGED.of(key), Severity.CRITICAL, f"{name} has changed: {reason}", detail, now)


@receives(signals.breaker_closed)
def close_lost_source(*, now: datetime, source_id: int | None = None, **_: Any) -> None:
    """The breaker of a source closes when the source was parsed again."""
    for key in Source.objects.filter(pk=source_id or 0).values_list("key", flat=True):
        close_alert(alert_keys.CHANGED.of(key), now)


@receives(signals.token_lost)
def raise_lost_token(*, now: datetime, source_key: str, seconds: float, reason: str = "", **more: Any) -> None:
    name = Source.objects.filter(key=source_key).values_list("name", flat=True).first() or source_key
    detail = {"source": source_key, "seconds": round(seconds), "reason": reason, **json_safe(more)}
    summary = f"{name} has issued no token for {seconds / 60:.0f} min: only its public data is read"
    raise_alert(alert_keys.TOKEN.of(source_key), Severity.WARNING, summary, detail, now)


@receives(signals.disk_ran_short)
def raise_full_disk(*, now: datetime, worker_id: str, free_mb: int, **_: Any) -> None:
    summary = f"The disk of worker {worker_id} has {free_mb} MB left: it takes no new tasks"
    detail = {"worker_id": worker_id, "free_mb": free_mb}
    raise_alert(alert_keys.disk(worker_id), Severity.CRITICAL, summary, detail, now)


@receives(signals.disk_recovered)
def close_full_disk(*, now: datetime, worker_id: str, **_: Any) -> None:
    close_alert(alert_keys.disk(worker_id), now)
