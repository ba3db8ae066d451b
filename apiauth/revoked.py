"""Notes of revoked keys in Redis, for processes that can't reach the database.

Guards against a key that was revoked just before the database went away, or while only this process can't reach it:
its cached state would be valid for ten minutes more. Nothing here raises: the database is the source of truth, and
without Redis there is no note.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from victoryline.lib import availability

# Longer than the cached state of a key is valid (principals.AWAY_SECONDS).
LIFETIME_SECONDS = 3600
NAME = "victoryline:revoked:"


def note(prefixes: Iterable[str]) -> bool:
    """Writes the notes; returns whether it succeeded."""
    names = [NAME + prefix for prefix in prefixes]
    if not names or _is_away():
        return False
    try:
        pipeline = _client(settings.CONFIG.redis_url).pipeline(transaction=False)
        for name in names:
            pipeline.set(name, 1, ex=LIFETIME_SECONDS)
        pipeline.execute()
    except (RedisError, OSError) as error:
        _report(error)
        return False
    return True


def take_back(prefixes: Iterable[str]) -> None:
    """Deletes the notes of a consumer that is active again."""
    names = [NAME + prefix for prefix in prefixes]
    if not names or _is_away():
        return
    try:
        _client(settings.CONFIG.redis_url).delete(*names)
    except (RedisError, OSError) as error:
        _report(error)


def is_noted(prefix: str) -> bool:
    if _is_away():
        return False
    try:
        return bool(_client(settings.CONFIG.redis_url).exists(NAME + prefix))
    except (RedisError, OSError) as error:
        _report(error)
        return False


@cache
def _client(url: str) -> Redis:
    return Redis.from_url(url, **availability.BOUNDED)


def _is_away() -> bool:
    url = settings.CONFIG.redis_url
    return not url or availability.redis(url).is_away()


def _report(error: Exception) -> None:
    availability.redis(settings.CONFIG.redis_url).report(error)
