"""The broker that carries hints: Redis when there is a URL, else the one inside the engine process."""

from __future__ import annotations

import dramatiq
import redis
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware.asyncio import AsyncIO
from redis.backoff import NoBackoff
from redis.retry import Retry

from victoryline.lib.hint_broker import HintBroker

# Without Dramatiq's retries, delays, age limits, time limits and results: the journal does all of that.

ANSWER_SECONDS = 2.0  # a command takes milliseconds; a frozen Redis must not block


def make_broker(redis_url: str) -> dramatiq.Broker:
    middleware: list[dramatiq.Middleware] = [AsyncIO()]
    if not redis_url:
        return StubBroker(middleware=middleware)
    client = redis.Redis.from_url(
        redis_url,
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=ANSWER_SECONDS,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),  # HintBroker has its own back-off
    )
    return HintBroker(client=client, namespace="victoryline", middleware=middleware)


def install(redis_url: str) -> dramatiq.Broker:
    """Creates the broker of this process. Call it before an actor is imported: actors bind to the current broker."""
    broker = make_broker(redis_url)
    dramatiq.set_broker(broker)
    return broker
