"""Sources that have changed, and their tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import Severity
from monitoring.receivers.listening import listens_to, plain
from scraping import signals
from scraping.models import Source


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
    detail = {"source": source_key, "seconds": round(seconds), "reason": reason, **plain(more)}
    summary = f"{name} has given us no token for {seconds / 60:.0f} min: only what it tells everybody is read"
    raise_alert(causes.token(source_key), Severity.WARNING, summary, detail, now)


@listens_to(signals.token_found)
def note_found_token(*, now: datetime, source_key: str, **_: Any) -> None:
    close_alert(causes.token(source_key), now)
