"""Who a token speaks for, looked up on every request and remembered for a few seconds.

A signed token is good for a day; its key may be revoked in a minute. So each request asks whether the key still holds.
The answer is kept in this process's memory, not in Redis: it costs no round trip, cannot fail, and is at most
MEMORY_SECONDS old, which is the longest that a revoked key can go on working.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import datetime

from django.dispatch import receiver

from apiauth.models import ApiKey
from apiauth.signals import key_revoked

MEMORY_SECONDS = 3.0
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


_memory: dict[str, tuple[float, Principal | None]] = {}
_lock = threading.Lock()


def find(prefix: str) -> Principal | None:
    """The owner of the key with this prefix; None when there is no such key."""
    remembered = _memory.get(prefix)
    if remembered and remembered[0] > time.monotonic():
        return remembered[1]
    principal = _load(prefix)
    with _lock:
        if len(_memory) >= MEMORY_ENTRIES:
            _memory.clear()
        _memory[prefix] = (time.monotonic() + MEMORY_SECONDS, principal)
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
