"""Creates and changes consumers: tier, limit, contact, access. With `keys` the only writer of their table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from apiauth import revoked
from apiauth.errors import NotFoundError, RefusedError
from apiauth.models import ApiKey, Consumer, Tier
from apiauth.signals import consumer_changed

MAX_PER_MINUTE = 1_000_000
LONGEST_NAME = 120


@dataclass(frozen=True)
class Change:
    """The wanted values; None leaves a field as it is."""

    tier: Tier | None = None
    requests_per_minute: int | None = None
    is_active: bool | None = None
    contact: str | None = None


def check_limit(tier: str, requests_per_minute: int | None) -> None:
    """Requires a number for the tier custom, and none for the others: the configuration sets theirs."""
    if tier != Tier.CUSTOM:
        if requests_per_minute is not None:
            raise RefusedError(
                f"Requests a minute are for the tier custom only; the tier {tier} has the limit of the configuration. "
                "Leave the number out, or choose the tier custom.",
                field="requests_per_minute",
            )
        return
    if requests_per_minute is None or not 1 <= requests_per_minute <= MAX_PER_MINUTE:
        raise RefusedError(
            f"The tier custom needs its requests a minute: a whole number from 1 to {MAX_PER_MINUTE}.",
            field="requests_per_minute",
        )


def check_name(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise RefusedError(
            f"The consumer's name must have from 1 to {LONGEST_NAME} characters that can be printed, "
            "without spaces around it.",
            field="name",
        )


def find(name: str) -> Consumer:
    consumer = _named(name).first()
    if consumer is None:
        raise NotFoundError.of("consumer", name, Consumer.objects.values_list("name", flat=True))
    return consumer


def ensure(name: str, wanted: Change, *, now: datetime, actor: str) -> Consumer:
    """Returns the consumer of this name, created if there is none, changed where other values are wanted."""
    with transaction.atomic():
        tier = wanted.tier or Tier.STANDARD
        if not _named(name).exists():
            check_name(name)
            check_limit(tier, wanted.requests_per_minute)
        consumer, is_new = Consumer.objects.get_or_create(
            name=name,
            defaults={"tier": tier, "requests_per_minute": wanted.requests_per_minute, "created_at": now},
        )
        return consumer if is_new else change(consumer, wanted, now=now, actor=actor)


def change(consumer: Consumer, wanted: Change, *, now: datetime, actor: str) -> Consumer:
    """Changes the consumer, everywhere within seconds. Raises RefusedError, and changes nothing then."""
    tier = wanted.tier or Tier(consumer.tier)
    per_minute = wanted.requests_per_minute
    if per_minute is None and tier == consumer.tier:
        per_minute = consumer.requests_per_minute
    check_limit(tier, per_minute)
    fields: dict[str, object] = {"tier": tier, "requests_per_minute": per_minute}
    if wanted.is_active is not None:
        fields["is_active"] = wanted.is_active
    if wanted.contact is not None:
        fields["contact"] = wanted.contact
    changes = {name: value for name, value in fields.items() if getattr(consumer, name) != value}
    if changes:
        for name, value in changes.items():
            setattr(consumer, name, value)
        consumer.save(update_fields=list(changes))
        announce(consumer, changes, now=now, actor=actor)
    return consumer


def announce(consumer: Consumer, changes: dict[str, object], *, now: datetime, actor: str) -> None:
    """Announces a change: caches evict the consumer's keys, and the audit records it."""
    prefixes = list(ApiKey.objects.filter(consumer=consumer).values_list("prefix", flat=True))
    if changes.get("is_active") is False:
        revoked.note(prefixes)
    elif changes.get("is_active"):
        usable = ApiKey.objects.filter(consumer=consumer, revoked_at__isnull=True)
        revoked.take_back(usable.values_list("prefix", flat=True))
    consumer_changed.send(
        sender=Consumer, consumer=consumer.name, changes=changes, prefixes=prefixes, actor=actor, now=now
    )


def _named(name: str) -> QuerySet[Consumer]:
    """PostgreSQL raises an error for a text with NUL in it."""
    return Consumer.objects.none() if "\x00" in name else Consumer.objects.filter(name=name)
