"""Alerts and their messages. One open alert per key; it closes when its cause is gone."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Severity(models.TextChoices):
    WARNING = "warning"
    CRITICAL = "critical"


class Alert(models.Model):
    key = models.CharField(max_length=200, help_text="Its kind and subject; one alert per key is open.")
    severity = models.CharField(max_length=10, choices=Severity)
    summary = models.CharField(max_length=300)
    detail = models.JSONField(default=dict, blank=True)
    count = models.PositiveIntegerField(default=1)
    opened_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    notified_at = models.DateTimeField(null=True, blank=True, help_text="When its last message was queued.")
    notification_count = models.PositiveIntegerField(default=0)
    end_notified_at = models.DateTimeField(
        null=True, blank=True, help_text="When the message about its end was queued."
    )
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


class Channel(models.TextChoices):
    WEBHOOK = "webhook"
    SENTRY = "sentry"


class AlertMessage(models.Model):
    """One message about alerts to one channel, written before it is sent. Sole writer: `alerts.message_queue`."""

    channel = models.CharField(max_length=10, choices=Channel)
    severity = models.CharField(max_length=10, choices=Severity)
    subject = models.CharField(max_length=300)
    document = models.JSONField(default=dict, help_text="The message as the webhook sends it; other channels use it.")
    alerts = models.ManyToManyField(Alert, related_name="messages", blank=True)
    created_at = models.DateTimeField()
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)
    given_up_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=300, blank=True, help_text="Why the last attempt failed.")

    class Meta:
        indexes = (
            models.Index(fields=("-created_at",), name="message_created"),
            models.Index(
                fields=("next_attempt_at",),
                name="message_waiting",
                condition=Q(sent_at__isnull=True, given_up_at__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return self.subject
