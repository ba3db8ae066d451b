"""Actions of operators and of the system, with their outcome. Append only; sole writer: `audit`."""

from __future__ import annotations

import uuid

from django.db import models


class AuditOutcome(models.TextChoices):
    PENDING = "pending"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"


class AuditEntry(models.Model):
    entry_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    timestamp = models.DateTimeField()
    actor = models.CharField(max_length=150, help_text="The operator's name, or the component that acted.")
    action_type = models.CharField(max_length=40)
    trigger_condition = models.CharField(max_length=500)
    target = models.CharField(max_length=200, blank=True)
    outcome = models.CharField(max_length=10, choices=AuditOutcome, default=AuditOutcome.SUCCESS)
    duration_seconds = models.FloatField(default=0.0)
    match = models.ForeignKey("scraping.Match", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    before = models.JSONField(default=dict, blank=True, help_text="The state when the action was taken.")
    after = models.JSONField(default=dict, blank=True, help_text="The state when the outcome was decided.")
    judged_at = models.DateTimeField(null=True, blank=True)
    metadata = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = "audit entry"
        verbose_name_plural = "audit"
        indexes = (
            models.Index(fields=("-timestamp",), name="audit_time"),
            models.Index(fields=("match", "-timestamp"), name="audit_match_time"),
            models.Index(fields=("action_type", "-timestamp"), name="audit_action_time"),
            models.Index(fields=("timestamp",), name="audit_pending", condition=models.Q(outcome="pending")),
        )

    def __str__(self) -> str:
        return f"{self.action_type} by {self.actor}"
