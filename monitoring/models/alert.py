"""Alerts. One open alert per key; it closes when its cause is gone."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Severity(models.TextChoices):
    WARNING = "warning"
    CRITICAL = "critical"


class Channel(models.TextChoices):
    WEBHOOK = "webhook"
    SENTRY = "sentry"

    @property
    def sent_column(self) -> str:
        """Returns the column of Alert with the state that the channel got last."""
        return f"{self.value}_sent"


class Alert(models.Model):
    key = models.CharField(max_length=200, help_text="Its kind and subject; one alert per key is open.")
    severity = models.CharField(max_length=10, choices=Severity)
    summary = models.CharField(max_length=300)
    detail = models.JSONField(default=dict, blank=True)
    count = models.PositiveIntegerField(default=1)
    opened_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    notified_at = models.DateTimeField(null=True, blank=True, help_text="When a channel accepted its last message.")
    webhook_sent = models.CharField(max_length=10, blank=True, help_text="Its severity as posted last, or over.")
    sentry_sent = models.CharField(max_length=10, blank=True, help_text="Its severity as sent last, or over.")
    muted_until = models.DateTimeField(null=True, blank=True, help_text="No message is sent before then.")
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, help_text="The operator who acknowledged it.")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("key",), condition=Q(closed_at__isnull=True), name="alert_one_open_per_key"
            ),
        )
        indexes = (models.Index(fields=("-opened_at",), name="alert_opened"),)

    def __str__(self) -> str:
        return self.summary
