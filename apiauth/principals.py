"""Who a token speaks for, looked up on every request and remembered for a few seconds.

A signed token is good for a day; its key may be revoked in a minute. So each request asks whether the key still holds.
The answer is kept in this process's memory, not in Redis: it costs no round trip, cannot fail, and is at most
MEMORY_SECONDS old, which is the longest that a revoked key can go on working. In a web process a thread looks at all
keys that are in use together, before their time is up, so that no request waits for it.

While the database is away nobody can say whether a key still holds. What was known of it last is good for
AWAY_SECONDS then, unless Redis holds a note that the key has ended (`revoked`). Without Redis, a key that was revoked
in the last seconds before an outage may work that much longer: the price for not turning every consumer away.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import connection
from django.dispatch import receiver

from apiauth import revoked
from apiauth.models import ApiKey
from apiauth.signals import consumer_changed, key_revoked, key_rotated
from victoryline.lib import pg_wait, presence
from victoryline.lib.problems import StoreAway
from victoryline.lib.store import STORE_AWAY

logger = logging.getLogger(__name__)

MEMORY_SECONDS = 3.0
RENEWED_SECONDS = 1.5
AWAY_SECONDS = 600.0
MEMORY_ENTRIES = 10_000
AT_ONCE = 500


@dataclass(frozen=True)
class Principal:
    """The consumer behind a request, as the database knows it now. Django REST framework's `request.user`."""

    consumer_pk: int
    consumer_id: str
    name: str
    tier: str
    scopes: frozenset[str]
    key_prefix: str
    is_active: bool
    expires_at: datetime | None
    requests_per_minute: int | None = None  # of the tier custom
    is_authenticated: bool = True

    def may_enter(self, now: datetime) -> bool:
        return self.is_active and (self.expires_at is None or now < self.expires_at)


_memory: OrderedDict[str, tuple[float, Principal | None]] = OrderedDict()  # when it was read, and what
_asked: set[str] = set()  # since the last look at all of them together
_lock = threading.Lock()


def find(prefix: str) -> Principal | None:
    """The owner of the key with this prefix; None when there is no such key."""
    remembered = _memory.get(prefix)
    age = time.monotonic() - remembered[0] if remembered else float("inf")
    if remembered and age < MEMORY_SECONDS:
        _asked.add(prefix)
        return remembered[1]
    if not presence.database.is_away():
        try:
            return _look_up(prefix)
        except STORE_AWAY as error:
            presence.database.report(error)
    if remembered and age < AWAY_SECONDS:
        return _unless_noted(remembered[1])
    raise StoreAway.now("Your token can't be checked without it. ")


def _unless_noted(principal: Principal | None) -> Principal | None:
    """What is remembered of it, with what Redis knows of its end."""
    if principal is None or not principal.is_active or not revoked.is_noted(principal.key_prefix):
        return principal
    return replace(principal, is_active=False)


def _look_up(prefix: str) -> Principal | None:
    asked_at = time.monotonic()
    with pg_wait.within(presence.READ_SECONDS):
        principal = _load([prefix]).get(prefix)
    with _lock:
        _remember(prefix, asked_at, principal)
    _asked.add(prefix)
    return principal


def _remember(prefix: str, asked_at: float, principal: Principal | None) -> None:
    _memory[prefix] = (asked_at, principal)
    _memory.move_to_end(prefix)
    if len(_memory) > MEMORY_ENTRIES:
        _memory.popitem(last=False)


def renew() -> int:
    """Look up all keys that were used since the last time, with one question; how many that were.

    What was forgotten meanwhile, for it was revoked, or looked up since, is left alone: this look may be from before.
    """
    wanted, asked_at = sorted(_asked), time.monotonic()
    _asked.clear()
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        with pg_wait.within(presence.READ_SECONDS):
            found = _load(some)
        with _lock:
            for prefix in some:
                held = _memory.get(prefix)
                if held is not None and held[0] < asked_at:
                    _remember(prefix, asked_at, found.get(prefix))
    return len(wanted)


def keep_renewed() -> None:
    """In a process that answers requests, for its life."""
    threading.Thread(target=_renew_on, name="principals", daemon=True).start()


def _renew_on() -> None:
    while True:
        time.sleep(RENEWED_SECONDS)
        if not _asked or presence.database.is_away():
            continue
        try:
            renew()
        except STORE_AWAY as error:
            presence.database.report(error)
        except Exception:  # requests look for themselves then
            logger.exception("The keys in use could not be looked up", extra={"action": "principals_failed"})
        finally:
            connection.close()


@receiver((key_revoked, key_rotated))
def forget(prefix: str = "", **_: object) -> None:
    """Look again at the next request: one key, or with no prefix all of them."""
    with _lock:
        if prefix:
            _memory.pop(prefix, None)
        else:
            _memory.clear()
            _asked.clear()


@receiver(consumer_changed)
def forget_all_of(prefixes: Iterable[str] = (), **_: object) -> None:
    """The consumer's tier is another, or it may no longer enter."""
    with _lock:
        for prefix in prefixes:
            _memory.pop(prefix, None)


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
