"""Who a token speaks for, looked up on every request and remembered for a few seconds.

A signed token is good for a day; its key may be revoked in a minute. So each request asks whether the key still holds.
The answer is kept in this process's memory, not in Redis: it costs no round trip, cannot fail, and is at most
MEMORY_SECONDS old, which is the longest that a revoked key can go on working.

While the database is away nobody can say whether a key still holds. What was known of it last is good for
AWAY_SECONDS then: a key that was revoked in the last seconds before an outage may work that much longer, which is the
price for not turning every consumer away.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from django.dispatch import receiver

from apiauth.models import ApiKey
from apiauth.signals import key_revoked
from victoryline.lib import pg_wait, presence
from victoryline.lib.problems import StoreAway
from victoryline.lib.store import STORE_AWAY

MEMORY_SECONDS = 3.0
AWAY_SECONDS = 600.0
MEMORY_ENTRIES = 10_000


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
    is_authenticated: bool = True

    def may_enter(self, now: datetime) -> bool:
        return self.is_active and (self.expires_at is None or now < self.expires_at)


_memory: OrderedDict[str, tuple[float, Principal | None]] = OrderedDict()  # when it was read, and what
_lock = threading.Lock()


def find(prefix: str) -> Principal | None:
    """The owner of the key with this prefix; None when there is no such key."""
    remembered = _memory.get(prefix)
    age = time.monotonic() - remembered[0] if remembered else float("inf")
    if remembered and age < MEMORY_SECONDS:
        return remembered[1]
    if not presence.database.is_away():
        try:
            return _look_up(prefix)
        except STORE_AWAY as error:
            presence.database.report(error)
    if remembered and age < AWAY_SECONDS:
        return remembered[1]
    raise StoreAway.now("Your token can't be checked without it. ")


def _look_up(prefix: str) -> Principal | None:
    asked_at = time.monotonic()
    with pg_wait.within(presence.READ_SECONDS):
        principal = _load(prefix)
    with _lock:
        _memory[prefix] = (asked_at, principal)
        _memory.move_to_end(prefix)
        if len(_memory) > MEMORY_ENTRIES:
            _memory.popitem(last=False)
    return principal


@receiver(key_revoked)
def forget(prefix: str = "", **_: object) -> None:
    """Look again at the next request: one key, or with no prefix all of them."""
    with _lock:
        if prefix:
            _memory.pop(prefix, None)
        else:
            _memory.clear()


def _load(prefix: str) -> Principal | None:
    key = ApiKey.objects.select_related("consumer").filter(prefix=prefix).first()
    if key is None:
        return None
    return Principal(
        consumer_pk=key.consumer_id,
        consumer_id=str(key.consumer.consumer_id),
        name=key.consumer.name,
        tier=key.consumer.tier,
        scopes=frozenset(key.scopes),
        key_prefix=key.prefix,
        is_active=key.revoked_at is None and key.consumer.is_active,
        expires_at=key.expires_at,
    )
