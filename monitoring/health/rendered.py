"""/health and /status as they are sent: bytes, code, and when their figures were true.

Where web processes share a Redis, one of them builds and all serve it: the answer lies there for five seconds. Without
Redis, or while it is away, each builds its own. What a process says while it can't reach the database is only its own
experience, and is not shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from django.utils import timezone

from monitoring.health.document import health_document
from monitoring.health.summary import status_summary
from monitoring.health.verdict import Status
from scraping.documents import redis_store
from victoryline.lib import availability

LIFETIME_SECONDS = 5
FRESH_SECONDS = 1.0  # what another process has built since then is as good as our own
SUMMARY_KEY = "health_summary"
DOCUMENT_KEY = "health_document"


@dataclass(frozen=True)
class Rendered:
    body: bytes
    code: int
    made_at: datetime

    @property
    def age_seconds(self) -> float:
        """By the wall clock, which another host may have set a little ahead of ours."""
        return max(0.0, (timezone.now() - self.made_at).total_seconds())

    def as_text(self) -> bytes:
        return b"%d %d\n%b" % (round(self.made_at.timestamp() * 1000), self.code, self.body)

    @classmethod
    def of_text(cls, text: bytes) -> Rendered | None:
        """None for what another version of this program has written, or somebody else."""
        head, _, body = text.partition(b"\n")
        try:
            made_at, code = head.split(b" ")
            return cls(body, int(code), datetime.fromtimestamp(int(made_at) / 1000, UTC))
        except (ValueError, OverflowError, OSError):
            return None


def health(*, is_shared: bool) -> Rendered:
    return _shared(DOCUMENT_KEY, _health) if is_shared else _health()


def status(*, is_shared: bool) -> Rendered:
    return _shared(SUMMARY_KEY, _status) if is_shared else _status()


def _health() -> Rendered:
    now = timezone.now()
    document = health_document(now)
    return Rendered(orjson.dumps(document), 503 if document["status"] == Status.DOWN else 200, now)


def _status() -> Rendered:
    now = timezone.now()
    summary: dict[str, Any] = status_summary(now)
    return Rendered(orjson.dumps(summary), 200, now)


def _shared(key: str, make: Callable[[], Rendered]) -> Rendered:
    text = redis_store.get_text(key)
    found = Rendered.of_text(text) if text else None
    if found is not None and found.age_seconds < FRESH_SECONDS:
        return found
    made = make()
    if not availability.database.is_away():
        redis_store.put_text(key, made.as_text(), seconds=LIFETIME_SECONDS)
    return made
