"""Operations of operators on many rows, worked off in batches. Sole writer: jobs.operations."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class OperationState(models.TextChoices):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    ABORTED = "ABORTED"
    FAILED = "FAILED"


OPEN_OPERATIONS = (OperationState.PENDING, OperationState.RUNNING)


class BulkOperation(models.Model):
    """One action on the rows that matched a filter when it was started."""

    table = models.CharField(max_length=60, help_text="scraping.scrapetask")
    action = models.CharField(max_length=40)
    label = models.CharField(max_length=100)
    filter = models.CharField(max_length=500, blank=True, help_text="The filter that selected the rows, as text.")
    values = models.JSONField(default=dict, blank=True, help_text="The fields of the form.")
    reason = models.CharField(max_length=200, blank=True)
    actor = models.CharField(max_length=150)
    state = models.CharField(max_length=10, choices=OperationState, default=OperationState.PENDING)
    total = models.PositiveIntegerField()
    position = models.PositiveIntegerField(default=0, help_text="Rows that were tried.")
    applied = models.PositiveIntegerField(default=0, help_text="A group of rows may count more than one.")
    refused = models.PositiveIntegerField(default=0)
    refusals = models.JSONField(default=list, blank=True, help_text="The first refusals.")
    error = models.CharField(max_length=500, blank=True, help_text="Why it failed, or the operator who aborted it.")
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=Q(state__in=OperationState.values), name="operation_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=OPEN_OPERATIONS) | Q(finished_at__isnull=False), name="operation_ended_has_a_time"
            ),
        )
        indexes = (models.Index(fields=("id",), name="operation_open", condition=Q(state__in=OPEN_OPERATIONS)),)

    def __str__(self) -> str:
        return f"{self.label}, {self.total:,} rows"

    @property
    def percent(self) -> float:
        return 100 * self.position / self.total if self.total else 100.0


class OperationIds(models.Model):
    """A part of the frozen ids of an operation. In rows of their own, so that a batch rewrites few bytes."""

    operation = models.ForeignKey(BulkOperation, on_delete=models.CASCADE, related_name="parts")
    first = models.PositiveIntegerField(help_text="The place of its first id.")
    ids = models.JSONField()
    applied = models.JSONField(default=list, help_text="The ids that the action was applied to: what an undo reverses.")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("operation", "first"), name="operation_part_once"),)

    def __str__(self) -> str:
        return f"{self.operation_id}: {len(self.ids)} rows from {self.first}"
