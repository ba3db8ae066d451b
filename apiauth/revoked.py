"""Notes of revoked keys in Redis, for processes that can't reach the database.

Guards against a key that was revoked just before the database went away, or while only this process can't reach it:
its cached state would be valid for ten minutes more. Nothing here raises: the database is the source of truth, and
without Redis there is no note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from victoryline.lib import availability

# Longer than the cached state of a key is valid (authentication.AWAY_SECONDS).
LIFETIME_SECONDS = 3600
NAME = "victoryline:revoked:"


def note(prefixes: Iterable[str]) -> bool:
    """Writes the notes; returns whether it succeeded."""

    def write(client: Redis) -> bool:
        pipeline = client.pipeline(transaction=False)
        for prefix in prefixes:
            pipeline.set(NAME + prefix, 1, ex=LIFETIME_SECONDS)
        return bool(pipeline.execute())

    return _in_redis(write)


def take_back(prefixes: Iterable[str]) -> None:
    """Deletes the notes of a consumer that is active again."""
    if names := [NAME + prefix for prefix in prefixes]:
        _in_redis(lambda client: bool(client.delete(*names)))


def is_noted(prefix: str) -> bool:
    return _in_redis(lambda client: bool(client.exists(NAME + prefix)))


@cache
def _client(url: str) -> Redis:
    return Redis.from_url(url, **availability.BOUNDED)


def _in_redis(action: Callable[[Redis], bool]) -> bool:
    """Returns False when Redis is away or fails."""
    url = settings.CONFIG.redis_url
    if not url or availability.redis(url).is_away():
        return False
    try:
        return action(_client(url))
    except (RedisError, OSError) as error:
        availability.redis(url).report(error)
        return False
