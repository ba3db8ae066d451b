"""Receivers of source and breaker signals."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from monitoring import audit
from monitoring.alerts import alert_keys
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import Severity
from monitoring.receivers.base import json_safe, match_name, receives
from scraping import signals
from scraping.models import Breaker, Source
from victoryline.lib.times import as_utc_iso


@receives(signals.breaker_opened)
def record_open_breaker(
    *,
    now: datetime,
    name: str,
    match_id: int | None = None,
    source_id: int | None = None,
    reason: str = "",
    actor: str = "",
    **more: Any,
) -> None:
    if not actor:  # an operator's action is recorded once, with its reason
        why = reason or "too many failures"
        _record("breaker_open", why, name, match_id, now)
    until = Breaker.objects.filter(name=name).values_list("open_until", flat=True).first()
    end = f"until {until:%H:%M:%S} UTC" if until else "for a while"
    source = Source.objects.filter(pk=source_id or 0).values_list("name", flat=True).first()
    detail = {"breaker": name, "match_id": match_id, "source": source, "reason": reason, **json_safe(more)}
    if source:
        summary = f"{source} is not polled {end}; the data of its matches grows old until then"
        raise_alert(alert_keys.BREAKER.of(name), Severity.CRITICAL, summary, detail, now)
        return
    summary = f"Reading {match_name(match_id)} failed so often that it is not polled {end}"
    if actor:
        summary = f"{match_name(match_id)} is not polled {end}, by decision of {actor}"
    raise_alert(alert_keys.BREAKER.of(name), Severity.WARNING, summary, detail, now)


@receives(signals.breaker_half_opened)
def record_half_open_breaker(
    *, now: datetime, name: str, match_id: int | None = None, reason: str = "", actor: str = "", **_: Any
) -> None:
    if not actor:
        _record("breaker_half_open", reason, name, match_id, now)


@receives(signals.breaker_closed)
def record_closed_breaker(
    *, now: datetime, name: str, match_id: int | None = None, reason: str = "", actor: str = "", **_: Any
) -> None:
    if not actor:
        _record("breaker_close", reason or "probes succeeded", name, match_id, now)
    close_alert(alert_keys.BREAKER.of(name), now)


@receives(signals.breaker_operated)
def record_operated_breaker(
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


@receives(signals.source_lost)
def record_lost_source(*, now: datetime, source_id: int, failures: int, reason: str = "", **_: Any) -> None:
    source = Source.objects.filter(pk=source_id).values_list("key", "name").first()
    if source is not None:
        detail = {"source": source[0], "failures": failures, "reason": reason}
        raise_alert(
            alert_keys.CHANGED.of(source[0]), Severity.CRITICAL, f"{source[1]} has changed: {reason}", detail, now
        )


@receives(signals.breaker_closed)
def record_understood_source(*, now: datetime, source_id: int | None = None, **_: Any) -> None:
    key = Source.objects.filter(pk=source_id or 0).values_list("key", flat=True).first()
    if key is not None:
        close_alert(alert_keys.CHANGED.of(key), now)


@receives(signals.token_lost)
def record_lost_token(*, now: datetime, source_key: str, seconds: float, reason: str = "", **more: Any) -> None:
    name = Source.objects.filter(key=source_key).values_list("name", flat=True).first() or source_key
    detail = {"source": source_key, "seconds": round(seconds), "reason": reason, **json_safe(more)}
    summary = f"{name} has issued no token for {seconds / 60:.0f} min: only its public data is read"
    raise_alert(alert_keys.TOKEN.of(source_key), Severity.WARNING, summary, detail, now)


@receives(signals.token_found)
def record_found_token(*, now: datetime, source_key: str, **_: Any) -> None:
    close_alert(alert_keys.TOKEN.of(source_key), now)
