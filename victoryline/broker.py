"""The broker that carries hints: Redis when there is a URL, else the one inside the engine process."""

from __future__ import annotations

import dramatiq
import redis
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware.asyncio import AsyncIO
from redis.backoff import NoBackoff
from redis.retry import Retry

from victoryline.lib.hint_broker import HintBroker

# Nothing of Dramatiq's own retries, delays, age limits, time limits or results: the journal does all of that.

ANSWER_SECONDS = 2.0  # nothing that we ask Redis takes longer than milliseconds; a frozen one must not hold us up


def make_broker(redis_url: str) -> dramatiq.Broker:
    middleware: list[dramatiq.Middleware] = [AsyncIO()]
    if not redis_url:
        return StubBroker(middleware=middleware)
    client = redis.Redis.from_url(
        redis_url,
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=ANSWER_SECONDS,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),  # the broker tries again by itself, and does something useful meanwhile
    )
    return HintBroker(client=client, namespace="victoryline", middleware=middleware)


def install(redis_url: str) -> dramatiq.Broker:
    """Make the process's broker. Before the first import of an actor: actors bind to the broker they find."""
    broker = make_broker(redis_url)
    dramatiq.set_broker(broker)
    return broker
