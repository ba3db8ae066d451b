"""Breakers that open and close, by themselves or by a person."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from monitoring import audit
from monitoring.alerts import causes
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import Severity
from monitoring.receivers.listening import listens_to, name_of, plain
from scraping import signals
from scraping.models import Breaker, Source
from victoryline.lib.times import as_utc_iso


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
        _record("breaker_open", why, name, match_id, now)
    until = Breaker.objects.filter(name=name).values_list("open_until", flat=True).first()
    end = f"until {until:%H:%M:%S} UTC" if until else "for a while"
    source = Source.objects.filter(pk=source_id or 0).values_list("name", flat=True).first()
    detail = {"breaker": name, "match_id": match_id, "source": source, "reason": reason, **plain(more)}
    if source:
        summary = f"{source} is left alone {end}; the data of its matches grows old until then"
        raise_alert(causes.breaker(name), Severity.CRITICAL, summary, detail, now)
        return
    summary = f"Reading {name_of(match_id)} failed so often that it is left alone {end}"
    if actor:
        summary = f"{name_of(match_id)} is left alone {end}, as {actor} decided"
    raise_alert(causes.breaker(name), Severity.WARNING, summary, detail, now)


@listens_to(signals.breaker_half_opened)
def note_half_open_breaker(
    *, now: datetime, name: str, match_id: int | None = None, reason: str = "", actor: str = "", **_: Any
) -> None:
    if not actor:
        _record("breaker_half_open", reason, name, match_id, now)


@listens_to(signals.breaker_closed)
def note_closed_breaker(
    *, now: datetime, name: str, match_id: int | None = None, reason: str = "", actor: str = "", **_: Any
) -> None:
    if not actor:
        _record("breaker_close", reason or "it works again", name, match_id, now)
    close_alert(causes.breaker(name), now)


@listens_to(signals.breaker_operated)
def note_operated_breaker(
    *, now: datetime, name: str, action: str, reason: str, actor: str, until: datetime | None = None, **_: Any
) -> None:
    audit.record(
        actor=actor,
        action_type=action,
        trigger_condition=reason,
        target=name,
        match_id=Breaker.objects.filter(name=name).values_list("ref__match_id", flat=True).first(),
        metadata={"until": as_utc_iso(until)} if until else {},
        now=now,
    )


def _record(action_type: str, why: str, name: str, match_id: int | None, now: datetime) -> None:
    audit.record(
        actor="breaker", action_type=action_type, trigger_condition=why, target=name, match_id=match_id, now=now
    )
