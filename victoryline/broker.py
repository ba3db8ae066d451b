"""The broker that carries hints: Redis when there is a URL, else the one inside the engine process."""

from __future__ import annotations

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware.asyncio import AsyncIO

# Nothing of Dramatiq's own retries, delays, age limits, time limits or results: the journal does all of that.


def make_broker(redis_url: str) -> dramatiq.Broker:
    middleware: list[dramatiq.Middleware] = [AsyncIO()]
    if not redis_url:
        return StubBroker(middleware=middleware)
    client = redis.Redis.from_url(redis_url, socket_timeout=5, socket_connect_timeout=3, socket_keepalive=True)
    return RedisBroker(client=client, namespace="victoryline", middleware=middleware)  # type: ignore[no-untyped-call]


def install(redis_url: str) -> dramatiq.Broker:
    """Make the process's broker. Before the first import of an actor: actors bind to the broker they find."""
    broker = make_broker(redis_url)
    dramatiq.set_broker(broker)
    return broker
