"""A consumer of the API and its keys. Only a hash of a key is stored. Only writers: keys, consumers."""

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q


class Tier(models.TextChoices):
    STANDARD = "standard"
    PREMIUM = "premium"
    CUSTOM = "custom"


class Consumer(models.Model):
    consumer_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=120, unique=True)
    contact = models.EmailField(blank=True)
    tier = models.CharField(max_length=10, choices=Tier, default=Tier.STANDARD)
    requests_per_minute = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of the tier custom: how many requests a minute it may make."
    )
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.CheckConstraint(condition=Q(tier__in=Tier.values), name="consumer_tier_known"),
            models.CheckConstraint(
                condition=~Q(tier=Tier.CUSTOM) | Q(requests_per_minute__gte=1), name="consumer_custom_has_a_limit"
            ),
        )

    def __str__(self) -> str:
        return self.name


class ApiKey(models.Model):
    consumer = models.ForeignKey(Consumer, on_delete=models.CASCADE, related_name="keys")
    prefix = models.CharField(max_length=16, unique=True, help_text="The readable part, unique.")
    secret_hash = models.CharField(max_length=64, unique=True)
    label = models.CharField(max_length=80, blank=True, default="", db_default="", help_text="What it is for.")
    scopes = models.JSONField(default=list, help_text='Among "read", "ingest", "operate".')
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoke_reason = models.CharField(max_length=200, blank=True, default="", db_default="")
    replaced_by = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The key it was rotated to.",
    )
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "key"

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.consumer}"

    def is_usable(self, now: datetime) -> bool:
        """Neither revoked nor expired, and its consumer is active."""
        is_current = self.expires_at is None or now < self.expires_at
        return self.revoked_at is None and is_current and self.consumer.is_active
