"""Something that a person should know. One open alert per key; it closes when its cause is gone."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Severity(models.TextChoices):
    WARNING = "warning"
    CRITICAL = "critical"


class Alert(models.Model):
    key = models.CharField(max_length=200, help_text="What it is about; equal causes share one open alert.")
    severity = models.CharField(max_length=10, choices=Severity)
    summary = models.CharField(max_length=300)
    detail = models.JSONField(default=dict, blank=True)
    count = models.PositiveIntegerField(default=1)
    opened_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("key",), condition=Q(closed_at__isnull=True), name="alert_one_open_per_key"
            ),
        )
        indexes = (models.Index(fields=("-opened_at",), name="alert_opened"),)

    def __str__(self) -> str:
        return self.summary
