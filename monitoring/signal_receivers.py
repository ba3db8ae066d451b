"""Connects receivers to the signals of scraping and apiauth; `audit_receivers` and `alert_receivers` are made with it.

A receiver must not break its sender: each runs in its own savepoint, and its errors are logged and dropped.
match_updated is sent with every poll and has no receiver: the staleness watchdog closes alerts after an update.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any

from django.db import transaction
from django.dispatch import Signal
from django.utils import timezone

from scraping.models import Match, match_key

logger = logging.getLogger(__name__)
Receiver = Callable[..., None]


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


def match_name(match_id: int | None) -> str:
    title = Match.objects.filter(pk=match_id or 0).values_list("title", flat=True).first()
    return title or match_key(match_id or 0)


def json_safe(values: Mapping[str, Any]) -> dict[str, str | int | float | bool | None]:
    """Returns the values of a signal, with lists and anything that JSON cannot hold as text."""
    texts = {key: ", ".join(map(str, value)) if isinstance(value, list) else value for key, value in values.items()}
    return {
        key: value if isinstance(value, str | int | float | bool | None) else str(value) for key, value in texts.items()
    }
