"""Dramatiq's Redis broker for messages that may be lost: it never waits for Redis, and never fails because of it.

Guards against what Dramatiq does when Redis is away: a worker thread that has done its work tries to acknowledge the
message until Redis is back, a consumer sleeps between attempts and can die of an error it does not expect, and a stop
breaks off when messages can't be put back. Ours are hints, which the journal repeats: one that is not acknowledged may
come again, one that is not put back may be lost. And while Redis carries none, a worker may ask the journal itself.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import redis
from dramatiq import Message
from dramatiq.brokers.redis import RedisBroker, _RedisConsumer
from dramatiq.common import dq_name
from dramatiq.errors import ConnectionClosed

logger = logging.getLogger(__name__)

QUEUE = "tasks"

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 4.0
SELF_HELP_AFTER_SECONDS = 1.0
SELF_HELP_EVERY_SECONDS = 0.25

OwnHints = Callable[[int], list[Message[Any]]]
"""Messages for due work that no hint tells of, at most so many."""


class HintConsumer(_RedisConsumer):
    """Counts its rounds, so that somebody can see whether it still goes round."""

    def __next__(self) -> Any:
        found = super().__next__()  # type: ignore[no-untyped-call]
        self.broker.rounds[self.queue_name] += 1
        return found


class HintBroker(RedisBroker):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call]
        self.rounds: Counter[str] = Counter()
        self.own_hints: OwnHints | None = None
        self._lock = threading.Lock()
        self._away_since: float | None = None
        self._away_because: Exception | None = None
        self._try_at = 0.0
        self._pause_seconds = FIRST_PAUSE_SECONDS
        self._help_at = 0.0

    @property
    def consumer_class(self) -> type[HintConsumer]:
        return HintConsumer

    @property
    def is_away(self) -> bool:
        return self._away_since is not None

    # What Dramatiq asks of Redis goes through these; RedisBroker makes the rest of them by name.

    def do_enqueue(self, *arguments: Any) -> Any:
        return self._ask("enqueue", *arguments)

    def do_fetch(self, queue_name: str, count: int) -> list[Any]:
        try:
            found: list[Any] = self._ask("fetch", queue_name, count)
        except (ConnectionClosed, redis.RedisError):
            return self._help_ourselves(queue_name, count)
        return found

    def do_ack(self, queue_name: str, message_id: str) -> None:
        self._try("ack", queue_name, message_id)

    def do_nack(self, queue_name: str, message_id: str) -> None:
        self._try("nack", queue_name, message_id)

    def do_requeue(self, queue_name: str, *message_ids: str) -> None:
        self._try("requeue", queue_name, *message_ids)

    def _try(self, command: str, queue_name: str, *message_ids: str) -> None:
        known = [each for each in message_ids if each]  # our own hints are unknown to Redis
        if not known:
            return
        try:
            self._ask(command, queue_name, *known)
        except (ConnectionClosed, redis.RedisError) as error:
            logger.debug("A hint was not settled (%s): %s", command, error)

    def _ask(self, command: str, *arguments: Any) -> Any:
        """Ask Redis; while it is away, only now and then, because a frozen one answers nobody quickly."""
        if self._away_since is not None and time.monotonic() < self._try_at:
            raise ConnectionClosed(self._away_because)  # type: ignore[no-untyped-call]
        try:
            answer = self._dispatch(command)(*arguments)  # type: ignore[no-untyped-call]
        except redis.RedisError as error:
            self._went_away(error)
            raise
        self._is_there()
        return answer

    def _went_away(self, error: Exception) -> None:
        with self._lock:
            now = time.monotonic()
            is_news, self._away_since = self._away_since is None, self._away_since or now
            self._away_because, self._try_at = error, now + self._pause_seconds
            self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)
        if is_news:
            logger.warning(
                "Redis carries no hints: %s. Tasks are safe in the journal%s",
                error,
                "; this worker looks for them there" if self.own_hints else "",
                extra={"action": "broker_away"},
            )

    def _is_there(self) -> None:
        if self._away_since is None:
            return
        with self._lock:
            since, self._away_since = self._away_since, None
            self._pause_seconds = FIRST_PAUSE_SECONDS
        if since is not None:
            seconds = time.monotonic() - since
            logger.info("Redis carries hints again, after %.1f s", seconds, extra={"action": "broker_back"})

    def _help_ourselves(self, queue_name: str, count: int) -> list[bytes]:
        now, since = time.monotonic(), self._away_since
        is_delayed = queue_name == dq_name(queue_name)
        if self.own_hints is None or is_delayed or since is None or now - since < SELF_HELP_AFTER_SECONDS:
            return []
        if now < self._help_at:
            return []
        self._help_at = now + SELF_HELP_EVERY_SECONDS
        found = self.own_hints(count)
        return [message.copy(options={"redis_message_id": ""}).encode() for message in found]
