"""Creates and changes consumers: tier, limit, access. With `keys` the only writer of their table."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

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


def check_limit(tier: str, requests_per_minute: int | None) -> None:
    """Requires a number for the tier custom, and none for the others: the configuration sets theirs."""
    reason = ""
    if tier != Tier.CUSTOM and requests_per_minute is not None:
        reason = (
            f"Requests a minute are for the tier custom only; the tier {tier} has the limit of the configuration. "
            "Leave the number out, or choose the tier custom."
        )
    if tier == Tier.CUSTOM and not 1 <= (requests_per_minute or 0) <= MAX_PER_MINUTE:
        reason = f"The tier custom needs its requests a minute: a whole number from 1 to {MAX_PER_MINUTE}."
    if reason:
        raise RefusedError(reason, field="requests_per_minute")


def check_name(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise RefusedError(
            f"The consumer's name must have from 1 to {LONGEST_NAME} characters that can be printed, "
            "without spaces around it.",
            field="name",
        )


def find(name: str) -> Consumer:
    consumer = Consumer.objects.filter(name=name).first()
    if consumer is None:
        raise NotFoundError.of("consumer", name, Consumer.objects.values_list("name", flat=True))
    return consumer


def ensure(name: str, wanted: Change, *, now: datetime, actor: str) -> Consumer:
    """Returns the consumer of this name, created if there is none, changed where other values are wanted."""
    check_name(name)
    with transaction.atomic():
        tier, per_minute = wanted.tier or Tier.STANDARD, wanted.requests_per_minute
        if not Consumer.objects.filter(name=name).exists():
            check_limit(tier, per_minute)
        defaults = {"tier": tier, "requests_per_minute": per_minute, "created_at": now}
        consumer, is_new = Consumer.objects.get_or_create(name=name, defaults=defaults)
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
