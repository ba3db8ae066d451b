"""The consumer behind a token, read from the database and cached for a few seconds.

A token is valid for a day; its key may be revoked in a minute. So each request checks whether the key is still valid.
The result is cached in this process's memory, not in Redis: it costs no round trip, cannot fail, and is at most
CACHE_SECONDS old, which is the longest that a revoked key can go on working. In a web process a thread refreshes all
keys in use together, before they expire, so that no request waits.

While the database is away, the last known state of a key is valid for AWAY_SECONDS, unless Redis has a note that the
key was revoked (`revoked`). Without Redis, a key that was revoked in the last seconds before an outage may work that
much longer: the price for not refusing every consumer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cachetools import FIFOCache
from django.db import connection
from django.dispatch import receiver

from apiauth import revoked
from apiauth.models import ApiKey
from apiauth.signals import consumer_changed, key_revoked, key_rotated
from victoryline.lib import availability, pg_wait
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.http.problems import DatabaseAway

logger = logging.getLogger(__name__)

CACHE_SECONDS = 3.0
REFRESH_SECONDS = 1.5
AWAY_SECONDS = 600.0
CACHE_ENTRIES = 10_000
BATCH = 500


@dataclass(frozen=True)
class Principal:
    """The consumer and key behind a request. Django REST framework's `request.user`."""

    consumer_pk: int
    consumer_id: str
    name: str
    tier: str
    scopes: frozenset[str]
    key_prefix: str
    is_active: bool
    expires_at: datetime | None
    requests_per_minute: int | None = None  # for the tier custom
    is_authenticated: bool = True

    def is_admitted(self, now: datetime) -> bool:
        return self.is_active and (self.expires_at is None or now < self.expires_at)


# By key prefix: time of the read, and the principal. FIFO: a hit changes nothing, so that reading needs no lock.
_cache: FIFOCache[str, tuple[float, Principal | None]] = FIFOCache(CACHE_ENTRIES)
_used: set[str] = set()  # prefixes since the last refresh
_lock = threading.Lock()


def find(prefix: str) -> Principal | None:
    """Returns the principal of the key with this prefix; None when there is no such key."""
    known = _cache.get(prefix)
    age = time.monotonic() - known[0] if known else float("inf")
    if known and age < CACHE_SECONDS:
        _used.add(prefix)
        return known[1]
    if not availability.database.is_away():
        try:
            return _read(prefix)
        except DATABASE_AWAY as error:
            availability.database.report(error)
    if known and age < AWAY_SECONDS:
        return _with_revocation_note(known[1])
    raise DatabaseAway.now("Your token can't be checked without it. ")


def _with_revocation_note(principal: Principal | None) -> Principal | None:
    """Returns it as inactive if Redis has a note that its key was revoked."""
    if principal is None or not principal.is_active or not revoked.is_noted(principal.key_prefix):
        return principal
    return replace(principal, is_active=False)


def _read(prefix: str) -> Principal | None:
    read_at = time.monotonic()
    with pg_wait.within(availability.READ_SECONDS):
        principal = _load([prefix]).get(prefix)
    with _lock:
        _cache[prefix] = (read_at, principal)
    _used.add(prefix)
    return principal


def refresh() -> int:
    """Reads all keys used since the last refresh, in batches; returns their number.

    An entry that was evicted meanwhile (its key was revoked) or read since is left alone: this read may be older.
    """
    wanted, read_at = sorted(_used), time.monotonic()
    _used.clear()
    for start in range(0, len(wanted), BATCH):
        some = wanted[start : start + BATCH]
        with pg_wait.within(availability.READ_SECONDS):
            found = _load(some)
        with _lock:
            for prefix in some:
                held = _cache.get(prefix)
                if held is not None and held[0] < read_at:
                    _cache[prefix] = (read_at, found.get(prefix))
    return len(wanted)


def start_refreshing() -> None:
    """Starts the refresh thread of a web process."""
    threading.Thread(target=_keep_refreshing, name="principals", daemon=True).start()


def _keep_refreshing() -> None:
    while True:
        time.sleep(REFRESH_SECONDS)
        if not _used or availability.database.is_away():
            continue
        try:
            refresh()
        except DATABASE_AWAY as error:
            availability.database.report(error)
        except Exception:  # requests read by themselves then
            logger.exception("The keys in use could not be refreshed", extra={"action": "principals_failed"})
        finally:
            connection.close()


@receiver((key_revoked, key_rotated))
def forget(prefix: str = "", **_: object) -> None:
    """Evicts one key, or all of them without a prefix: the next request reads it again."""
    with _lock:
        if prefix:
            _cache.pop(prefix, None)
        else:
            _cache.clear()
            _used.clear()


@receiver(consumer_changed)
def forget_all_of(prefixes: Iterable[str] = (), **_: object) -> None:
    """Evicts all keys of a consumer whose tier or access has changed."""
    with _lock:
        for prefix in prefixes:
            _cache.pop(prefix, None)


def _load(prefixes: Sequence[str]) -> dict[str, Principal]:
    keys = ApiKey.objects.select_related("consumer").filter(prefix__in=prefixes)
    return {key.prefix: _principal(key) for key in keys}


def _principal(key: ApiKey) -> Principal:
    return Principal(
        consumer_pk=key.consumer_id,
        consumer_id=str(key.consumer.consumer_id),
        name=key.consumer.name,
        tier=key.consumer.tier,
        scopes=frozenset(key.scopes),
        key_prefix=key.prefix,
        is_active=key.revoked_at is None and key.consumer.is_active,
        expires_at=key.expires_at,
        requests_per_minute=key.consumer.requests_per_minute,
    )
