"""Dramatiq's Redis broker for messages that may be lost: it never waits for Redis, and never fails because of it.

Guards against Dramatiq's behaviour while Redis is unreachable: a worker thread tries to acknowledge its message until
Redis is back, a consumer can die of an unexpected error, and a stop breaks off when messages can't be put back. Our
messages are hints, which the scheduler repeats: they may be duplicated or lost. Meanwhile workers read the journal.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import dramatiq
import redis
from dramatiq import Message
from dramatiq.brokers.redis import RedisBroker, _RedisConsumer
from dramatiq.brokers.stub import StubBroker
from dramatiq.common import dq_name
from dramatiq.errors import ConnectionClosed
from dramatiq.middleware.asyncio import AsyncIO
from redis.backoff import NoBackoff
from redis.retry import Retry

from victoryline.lib import availability

logger = logging.getLogger(__name__)

QUEUE = "tasks"
ANSWER_SECONDS = 2.0  # a command takes milliseconds; a frozen Redis must not block
JOURNAL_AFTER_SECONDS = 1.0
JOURNAL_EVERY_SECONDS = 0.25

OwnHints = Callable[[int], list[Message[Any]]]
"""Returns messages for due tasks without a hint, at most so many."""


def install_broker(redis_url: str) -> dramatiq.Broker:
    """Creates the broker of this process. Call it before an actor is imported: actors bind to the current broker."""
    broker = make_broker(redis_url)
    dramatiq.set_broker(broker)
    return broker


def make_broker(redis_url: str) -> dramatiq.Broker:
    """Returns a broker on Redis, or without a URL the one inside the engine process."""
    middleware: list[dramatiq.Middleware] = [AsyncIO()]
    if not redis_url:
        return StubBroker(middleware=middleware)
    client = redis.Redis.from_url(
        redis_url,
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=ANSWER_SECONDS,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
    )
    return HintBroker(client=client, namespace="victoryline", middleware=middleware)


class HintConsumer(_RedisConsumer):
    """Counts its rounds, for the watchdog."""

    def __next__(self) -> Any:
        found = super().__next__()  # type: ignore[no-untyped-call]
        self.broker.rounds[self.queue_name] += 1
        return found


class HintBroker(RedisBroker):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call]
        self.rounds: Counter[str] = Counter()
        self.own_hints: OwnHints | None = None
        self._read_journal_at = 0.0
        probe = partial(self.client.set, availability.PROBE_KEY, 1, ex=60)
        meanwhile = "no hints are sent; tasks are safe in the journal, where workers read them"
        self._availability = availability.Availability("Broker", probe, meanwhile=meanwhile)

    @property
    def consumer_class(self) -> type[HintConsumer]:
        return HintConsumer

    @property
    def is_away(self) -> bool:
        return self._availability.is_away()

    # Dramatiq's commands to Redis go through these; RedisBroker creates the others by name.

    def do_enqueue(self, *arguments: Any) -> Any:
        return self._ask("enqueue", *arguments)

    def do_fetch(self, queue_name: str, count: int) -> list[Any]:
        try:
            found: list[Any] = self._ask("fetch", queue_name, count)
        except (ConnectionClosed, redis.RedisError):
            return self._hints_from_journal(queue_name, count)
        return found

    def do_ack(self, queue_name: str, message_id: str) -> None:
        self._try("ack", queue_name, message_id)

    def do_nack(self, queue_name: str, message_id: str) -> None:
        self._try("nack", queue_name, message_id)

    def do_requeue(self, queue_name: str, *message_ids: str) -> None:
        self._try("requeue", queue_name, *message_ids)

    def _try(self, command: str, queue_name: str, *message_ids: str) -> None:
        known = [each for each in message_ids if each]  # hints from the journal are unknown to Redis
        if not known:
            return
        try:
            self._ask(command, queue_name, *known)
        except (ConnectionClosed, redis.RedisError) as error:
            logger.debug("A hint was not settled (%s): %s", command, error)

    def _ask(self, command: str, *arguments: Any) -> Any:
        """Sends a command to Redis, unless it is known to be unreachable: a frozen one costs a timeout."""
        if self.is_away:
            raise ConnectionClosed("Redis is away")  # type: ignore[no-untyped-call]
        try:
            return self._dispatch(command)(*arguments)  # type: ignore[no-untyped-call]
        except redis.RedisError as error:
            self._availability.report(error)
            raise

    def _hints_from_journal(self, queue_name: str, count: int) -> list[bytes]:
        now, is_delayed = time.monotonic(), queue_name == dq_name(queue_name)
        is_short = self._availability.seconds_away() < JOURNAL_AFTER_SECONDS
        if self.own_hints is None or is_delayed or is_short or now < self._read_journal_at:
            return []
        self._read_journal_at = now + JOURNAL_EVERY_SECONDS
        return [message.copy(options={"redis_message_id": ""}).encode() for message in self.own_hints(count)]
