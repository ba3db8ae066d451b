"""How a receiver listens without ever hurting the sender."""

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


def name_of(match_id: int | None) -> str:
    title = Match.objects.filter(pk=match_id or 0).values_list("title", flat=True).first()
    return title or f"match {match_id}"


def record_of_match(match_id: int, **entry: Any) -> None:
    """An audit entry about a match, under its name; `entry`: as `audit.record` has it."""
    audit.record(target=name_of(match_id), match_id=match_id, **entry)


def plain(values: dict[str, Any]) -> dict[str, str | int | float | bool | None]:
    """What a signal brought along, in a form that JSON can hold."""
    return {
        key: value if isinstance(value, str | int | float | bool | None) else str(value)
        for key, value in values.items()
    }
