"""Notes of revoked keys in Redis, for processes that can't reach the database.

Guards against a key that was revoked just before the database went away, or while only this process can't reach it:
its cached state would be valid for ten minutes more. Nothing here raises: the database is the source of truth, and
without Redis there is no note.
"""

from collections.abc import Iterable

from redis import Redis

from victoryline.lib.availability import in_redis

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

    return in_redis(write, False)


def take_back(prefixes: Iterable[str]) -> None:
    """Deletes the notes of a consumer that is active again."""
    if names := [NAME + prefix for prefix in prefixes]:
        in_redis(lambda client: client.delete(*names), 0)


def is_noted(prefix: str) -> bool:
    return in_redis(lambda client: bool(client.exists(NAME + prefix)), False)
