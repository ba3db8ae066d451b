"""Issues, verifies, rotates and revokes API keys. The only writer of keys.

A key has the form `vl_<prefix>.<secret>` (older ones have an underscore for the dot, and still work). The secret is 256
random bits, which can't be guessed, so a plain SHA-256 is enough: slow hashes are for passwords that people choose, and
would cost each token 100 ms.

The scopes of a key never change: other scopes need another key.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import transaction
from django.utils import timezone

from apiauth import consumers, revoked
from apiauth.errors import NotFoundError, RefusedError
from apiauth.models import ApiKey, Consumer, Tier
from apiauth.signals import key_issued, key_revoked, key_rotated
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.operators import UNNAMED_OPERATOR

SCOPES = ("read", "ingest", "operate")
DEMO_CONSUMER = "demo"
KEY_FORMAT = re.compile(r"vl_(?P<prefix>[0-9a-f]{12})[._](?P<secret>[A-Za-z0-9_-]{43})", re.ASCII)
UNKNOWN_KEY_HASH = hashlib.sha256(b"unknown key").hexdigest()
EXPIRES_SOON = timedelta(days=7)
OVERLAP_HOURS = 24  # that a key goes on working after its rotation
LONGEST_LIFE = timedelta(days=3650)
USUAL_DAYS = 365  # until a key expires, unless its issuer says otherwise
LONGEST_LABEL = 80
LONGEST_REASON = 200
# The time of last use is exact to the minute: a busy consumer must not cost a write with each token.
TOUCH_EVERY = timedelta(minutes=1)


class KeyState(StrEnum):
    IN_USE = "in use"
    EXPIRES_SOON = "expires soon"
    ROTATED = "rotated"  # still works, until it expires
    EXPIRED = "expired"
    REVOKED = "revoked"
    INACTIVE = "consumer inactive"


@dataclass(frozen=True)
class IssuedKey:
    """The only place where the whole key is known."""

    text: str = field(repr=False)  # not in a traceback
    key: ApiKey


def issue(
    *,
    consumer_name: str,
    tier: Tier | None = None,
    scopes: Iterable[str],
    now: datetime,
    expires_at: datetime | None = None,
    label: str = "",
    requests_per_minute: int | None = None,
    actor: str = UNNAMED_OPERATOR,
) -> IssuedKey:
    """Issues a key for the consumer, which is created or moved to this tier as needed. Raises RefusedError."""
    wanted = sorted(set(scopes))
    if not wanted:
        raise RefusedError(f"A key needs at least one scope of {', '.join(SCOPES)}.", field="scopes")
    if unknown := [scope for scope in wanted if scope not in SCOPES]:
        raise RefusedError(f"There is no scope {', '.join(unknown)}; there are {', '.join(SCOPES)}.", field="scopes")
    if expires_at is not None and not now < expires_at <= now + LONGEST_LIFE:
        raise RefusedError("A key must expire in the future, at most ten years from now.", field="expires_at")
    _check_text("label", label, LONGEST_LABEL)
    with transaction.atomic():
        change = consumers.Change(tier=tier, requests_per_minute=requests_per_minute)
        consumer = consumers.ensure(consumer_name, change, now=now, actor=actor)
        _check_active(consumer)
        issued = _make(consumer, wanted, label=label, now=now, expires_at=expires_at)
    key_issued.send(sender=ApiKey, prefix=issued.key.prefix, consumer=consumer.name, actor=actor, now=now)
    return issued


def verify(text: str, now: datetime) -> ApiKey | None:
    """Returns the key if it may be used now. Takes the same time whether the prefix or the secret is wrong."""
    parts = KEY_FORMAT.fullmatch(text)
    if parts is None:
        return None
    key = ApiKey.objects.select_related("consumer").filter(prefix=parts["prefix"]).first()
    expected = key.secret_hash if key else UNKNOWN_KEY_HASH
    is_right = hmac.compare_digest(_hash(parts["secret"]), expected)
    return key if key and is_right and key.is_usable(now) else None


def prefix_in(text: str) -> str:
    """Returns the prefix, from a whole key or from a part of it as people type it; empty where there is none."""
    found = re.match(r"(?:vl_)?([0-9a-f]{1,16})(?:[._]|$)", text.strip(), re.ASCII)
    return found[1] if found else ""


def find(text: str) -> ApiKey:
    """Returns the key with this prefix, in any state. Accepts a whole key as well."""
    prefix = prefix_in(text)
    if not prefix:
        # The text may be a whole key, sent by mistake: it must not appear in the message, and then in a log.
        raise NotFoundError(
            "That is not the prefix of a key, which is the 12 letters and digits between `vl_` and the dot. "
            "manage.py api_keys list --all lists all of them."
        )
    key = ApiKey.objects.select_related("consumer").filter(prefix=prefix).first()
    if key is None:
        raise NotFoundError.of("key", prefix, ApiKey.objects.values_list("prefix", flat=True))
    return key


def state_of(key: ApiKey, now: datetime) -> KeyState:
    if key.revoked_at is not None:
        return KeyState.REVOKED
    if key.expires_at is not None and key.expires_at <= now:
        return KeyState.EXPIRED
    if not key.consumer.is_active:
        return KeyState.INACTIVE
    if key.replaced_by_id is not None:
        return KeyState.ROTATED
    is_soon = key.expires_at is not None and key.expires_at - now <= EXPIRES_SOON
    return KeyState.EXPIRES_SOON if is_soon else KeyState.IN_USE


def usable(consumer: Consumer, now: datetime, *, without: Iterable[ApiKey] = ()) -> int:
    others = consumer.keys.select_related("consumer").exclude(pk__in=[key.pk for key in without])
    return sum(key.is_usable(now) for key in others)


def touch(key: ApiKey, now: datetime) -> None:
    """Writes the time of last use, unless the database is busy or away."""
    if key.last_used_at is not None and now - key.last_used_at < TOUCH_EVERY:
        return
    with suppress(*DATABASE_AWAY):
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def rotate(*, prefix: str, overlap: timedelta, now: datetime, actor: str = UNNAMED_OPERATOR) -> IssuedKey:
    """Issues a new key in the place of this one, which works on for `overlap`, never longer than it would have.

    The new one has the same consumer, scopes, label and lifetime. Raises RefusedError.
    """
    if not timedelta(0) <= overlap <= timedelta(days=365):
        raise RefusedError("The overlap must be from 0 hours to a year.", field="overlap_hours")
    with transaction.atomic():
        old = find(prefix)
        if old.revoked_at is not None:
            raise RefusedError(f"The key {old.prefix} is revoked, which is final. Issue a new one.")
        if old.replaced_by is not None:
            successor = old.replaced_by.prefix
            raise RefusedError(f"The key {old.prefix} was rotated already: rotate its successor {successor}.")
        if old.expires_at is not None and old.expires_at <= now:
            raise RefusedError(f"The key {old.prefix} has expired. Issue a new one.")
        _check_active(old.consumer)
        life = old.expires_at - old.created_at if old.expires_at else None
        issued = _make(
            old.consumer, old.scopes, label=old.label, now=now, expires_at=now + life if life is not None else None
        )
        until = min(now + overlap, old.expires_at) if old.expires_at else now + overlap
        still_there = ApiKey.objects.filter(pk=old.pk, revoked_at__isnull=True, replaced_by__isnull=True)
        if not still_there.update(replaced_by=issued.key, expires_at=until):
            raise RefusedError(f"The key {old.prefix} was rotated or revoked at the same time by another operator.")
    if until <= now:
        revoked.note([old.prefix])
    key_rotated.send(
        sender=ApiKey,
        prefix=old.prefix,
        new_prefix=issued.key.prefix,
        consumer=old.consumer.name,
        until=until,
        actor=actor,
        now=now,
    )
    return issued


def revoke(*, prefix: str, now: datetime, reason: str = "", actor: str = UNNAMED_OPERATOR) -> bool:
    """Revokes a key and, within seconds, every token made from it. Returns False when no such key is in use."""
    _check_text("reason", reason, LONGEST_REASON)
    in_use = ApiKey.objects.filter(prefix=prefix, revoked_at__isnull=True)
    ended = in_use.update(revoked_at=now, revoke_reason=reason)
    if ended:
        revoked.note([prefix])
        owner = ApiKey.objects.filter(prefix=prefix).values_list("consumer__name", flat=True).first()
        key_revoked.send(sender=ApiKey, prefix=prefix, consumer=owner or "", reason=reason, actor=actor, now=now)
    return bool(ended)


def revoke_all(consumer: Consumer, *, now: datetime, reason: str = "", actor: str = UNNAMED_OPERATOR) -> list[str]:
    with transaction.atomic():
        prefixes = list(consumer.keys.filter(revoked_at__isnull=True).values_list("prefix", flat=True))
        return [prefix for prefix in prefixes if revoke(prefix=prefix, now=now, reason=reason, actor=actor)]


def issue_demo_key() -> str:
    """Issues a key for the demo on this machine and revokes the demo's earlier ones."""
    now = timezone.now()
    with transaction.atomic():
        for demo in Consumer.objects.filter(name=DEMO_CONSUMER):
            revoke_all(demo, now=now)
        Consumer.objects.filter(name=DEMO_CONSUMER).update(is_active=True)
        issued = issue(consumer_name=DEMO_CONSUMER, scopes=SCOPES, now=now)
    return issued.text


def _make(
    consumer: Consumer, scopes: list[str], *, label: str, now: datetime, expires_at: datetime | None
) -> IssuedKey:
    prefix, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    key = ApiKey.objects.create(
        consumer=consumer,
        prefix=prefix,
        secret_hash=_hash(secret),
        label=label,
        scopes=scopes,
        created_at=now,
        expires_at=expires_at,
    )
    return IssuedKey(text=f"vl_{prefix}.{secret}", key=key)


def _check_text(field: str, text: str, longest: int) -> None:
    if len(text) > longest or (text and not text.isprintable()):
        raise RefusedError(f"The {field} must be one line of at most {longest} characters.", field=field)


def _check_active(consumer: Consumer) -> None:
    if not consumer.is_active:
        raise RefusedError(
            f"{consumer.name} is inactive, so a key would be refused. Make it active first: "
            f"manage.py api_keys consumer {consumer.name!r} --active."
        )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
