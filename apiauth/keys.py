"""API keys: issuing, checking, revoking. Sole writer of consumers and keys.

A key reads `vl_<prefix>_<secret>`. The secret is 256 random bits, so nobody can guess or enumerate it and storing a
plain SHA-256 is enough: slow hashes are for the passwords that people think up, and would cost each token 100 ms.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from apiauth.models import ApiKey, Consumer, Tier
from apiauth.signals import key_issued, key_revoked

SCOPES = ("read", "ingest", "operate")
DEMO_CONSUMER = "demo"
KEY_FORMAT = re.compile(r"vl_(?P<prefix>[0-9a-f]{12})_(?P<secret>[A-Za-z0-9_-]{43})", re.ASCII)
NOBODY_HASH = hashlib.sha256(b"nobody").hexdigest()


class UnknownScopeError(ValueError):
    """A key can't be given a scope that doesn't exist."""


@dataclass(frozen=True)
class IssuedKey:
    """The only moment at which the whole key is known."""

    text: str
    key: ApiKey


def issue(
    *, consumer_name: str, tier: Tier, scopes: Iterable[str], now: datetime, expires_at: datetime | None = None
) -> IssuedKey:
    """A new key for the consumer, who is made, or moved to this tier, as needed."""
    wanted = sorted(set(scopes))
    if unknown := [scope for scope in wanted if scope not in SCOPES]:
        raise UnknownScopeError(f"no such scope: {', '.join(unknown)}; there are {', '.join(SCOPES)}")
    prefix, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    with transaction.atomic():
        consumer, _ = Consumer.objects.update_or_create(
            name=consumer_name, defaults={"tier": tier}, create_defaults={"tier": tier, "created_at": now}
        )
        key = ApiKey.objects.create(
            consumer=consumer,
            prefix=prefix,
            secret_hash=_hash(secret),
            scopes=wanted,
            created_at=now,
            expires_at=expires_at,
        )
    key_issued.send(sender=ApiKey, prefix=prefix, consumer=consumer_name)
    return IssuedKey(text=f"vl_{prefix}_{secret}", key=key)


def verify(text: str, now: datetime) -> ApiKey | None:
    """The key that `text` is, if it may be used now. Takes the same time whether the prefix or the secret is wrong."""
    parts = KEY_FORMAT.fullmatch(text)
    if parts is None:
        return None
    key = ApiKey.objects.select_related("consumer").filter(prefix=parts["prefix"]).first()
    expected = key.secret_hash if key else NOBODY_HASH
    is_right = hmac.compare_digest(_hash(parts["secret"]), expected)
    return key if key and is_right and key.is_usable(now) else None


def others_in_use(key: ApiKey, now: datetime) -> int:
    """How many further keys its consumer can use now."""
    mates = ApiKey.objects.filter(consumer=key.consumer_id).exclude(pk=key.pk).select_related("consumer")
    return sum(mate.is_usable(now) for mate in mates)


def touch(key: ApiKey, now: datetime) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def revoke(*, prefix: str, now: datetime) -> bool:
    """Ends a key and, within seconds, every token made from it. False when no such key is in use."""
    ended = ApiKey.objects.filter(prefix=prefix, revoked_at__isnull=True).update(revoked_at=now)
    if ended:
        key_revoked.send(sender=ApiKey, prefix=prefix)
    return bool(ended)


def issue_demo_key() -> str:
    """A fresh key for the demo on this machine; the demo's earlier ones end."""
    now = timezone.now()
    with transaction.atomic():
        for old in ApiKey.objects.filter(consumer__name=DEMO_CONSUMER, revoked_at__isnull=True):
            revoke(prefix=old.prefix, now=now)
        issued = issue(consumer_name=DEMO_CONSUMER, tier=Tier.STANDARD, scopes=("read", "operate"), now=now)
    return issued.text


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
