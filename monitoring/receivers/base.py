"""The decorator of receivers, which isolates their errors from the sender, and helpers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from django.db import transaction
from django.dispatch import Signal
from django.utils import timezone

from monitoring import audit
from scraping.models import Match

logger = logging.getLogger(__name__)
Receiver = Callable[..., None]


def receives(signal: Signal) -> Callable[[Receiver], Receiver]:
    def connect(receiver: Receiver) -> Receiver:
        @wraps(receiver)
        def receive(sender: object, **values: Any) -> None:
            values.pop("signal", None)
            now: datetime = values.pop("now", None) or timezone.now()
            try:
                with transaction.atomic():
                    receiver(now=now, **values)
            except Exception:
                logger.warning("Receiver %s failed", receiver.__name__, exc_info=True, extra={"action": "receiver"})

        signal.connect(receive, weak=False, dispatch_uid=f"monitoring.{receiver.__name__}")
        return receive

    return connect


def match_name(match_id: int | None) -> str:
    title = Match.objects.filter(pk=match_id or 0).values_list("title", flat=True).first()
    return title or f"match {match_id}"


def record_match_action(match_id: int, action_type: str, *, reason: str, **entry: Any) -> None:
    """Writes an audit entry about a match; `entry`: further arguments of `audit.record`."""
    audit.record(
        action_type=action_type, trigger_condition=reason, target=match_name(match_id), match_id=match_id, **entry
    )


def json_safe(values: dict[str, Any]) -> dict[str, str | int | float | bool | None]:
    """Returns the values of a signal with anything that JSON cannot hold as text."""
    return {
        key: value if isinstance(value, str | int | float | bool | None) else str(value)
        for key, value in values.items()
    }
