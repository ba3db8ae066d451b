"""The journal: one row per unit of work, written before the work is done. Sole writer: journal.

The row's own times are the history of a task that succeeds at once (created, started, finished). Every other change
(a failed attempt, a rescue, a retry by a person, a death) is a TaskTransition as well.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from scraping.errors import ErrorClass
from scraping.models.match import Priority
from scraping.payloads import Resource


class TaskState(models.TextChoices):
    PENDING = "PENDING"
    EXECUTING = "EXECUTING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    DEAD = "DEAD"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"
    DISCARDED = "DISCARDED"  # a dead letter that was ended, by a person or because its work was done since


OPEN_STATES = (TaskState.PENDING, TaskState.EXECUTING)


class Stage(models.TextChoices):
    """The stage that an attempt has reached."""

    INIT = "INIT"
    BROWSER_READY = "BROWSER_READY"
    NAVIGATING = "NAVIGATING"
    INTERCEPTING = "INTERCEPTING"
    CAPTURED = "CAPTURED"
    VALIDATED = "VALIDATED"
    PERSISTED = "PERSISTED"
    DONE = "DONE"


class ScrapeTask(models.Model):
    request_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    job = models.ForeignKey("scraping.ScrapeJob", on_delete=models.CASCADE, null=True, blank=True, related_name="tasks")
    source = models.ForeignKey("scraping.Source", on_delete=models.PROTECT, related_name="tasks")
    ref = models.ForeignKey("scraping.MatchRef", on_delete=models.CASCADE, null=True, blank=True, related_name="tasks")
    resource = models.CharField(max_length=20, choices=[(r.value, r.value) for r in Resource])
    priority = models.SmallIntegerField(choices=Priority, default=Priority.LIVE)

    state = models.CharField(max_length=10, choices=TaskState, default=TaskState.PENDING)
    stage = models.CharField(max_length=14, choices=Stage, default=Stage.INIT)
    attempt = models.PositiveSmallIntegerField(default=0)
    charged_attempts = models.PositiveSmallIntegerField(
        default=0, help_text="Failed attempts that were the source's fault; these use up the retries."
    )
    rescues = models.PositiveSmallIntegerField(default=0)
    run_at = models.DateTimeField()
    hinted_at = models.DateTimeField(null=True, blank=True)

    worker_id = models.CharField(max_length=80, blank=True)
    fence = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)

    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error_class = models.CharField(max_length=12, blank=True, choices=[(c.value, c.value) for c in ErrorClass])
    reason = models.CharField(max_length=500, blank=True, help_text="Why it failed, died or was skipped.")
    error = models.JSONField(null=True, blank=True)

    class Meta:
        verbose_name = "task"
        db_table = "scrape_tasks"
        constraints = (
            models.UniqueConstraint(
                fields=("ref", "resource"),
                condition=Q(state__in=OPEN_STATES, ref__isnull=False),
                name="task_one_open_per_ref_and_resource",
            ),
            models.UniqueConstraint(
                fields=("source", "resource"),
                condition=Q(state__in=OPEN_STATES, ref__isnull=True, job__isnull=True),
                name="task_one_open_per_source_and_resource",
            ),
            models.UniqueConstraint(
                fields=("job", "resource"),
                condition=Q(state__in=OPEN_STATES, ref__isnull=True, job__isnull=False),
                name="task_one_open_per_job_and_resource",
            ),
            models.CheckConstraint(condition=Q(state__in=TaskState.values), name="task_state_known"),
            models.CheckConstraint(
                condition=~Q(state=TaskState.EXECUTING) | (Q(lease_until__isnull=False) & ~Q(worker_id="")),
                name="task_executing_is_leased",
            ),
            models.CheckConstraint(condition=~Q(state=TaskState.DEAD) | ~Q(reason=""), name="task_dead_has_a_reason"),
            models.CheckConstraint(
                condition=Q(state__in=OPEN_STATES) | Q(finished_at__isnull=False), name="task_ended_has_a_time"
            ),
        )
        indexes = (
            models.Index(fields=("priority", "run_at"), name="task_pending_due", condition=Q(state=TaskState.PENDING)),
            models.Index(fields=("lease_until",), name="task_leases", condition=Q(state=TaskState.EXECUTING)),
            models.Index(fields=("worker_id",), name="task_held", condition=Q(state=TaskState.EXECUTING)),
            models.Index(fields=("state", "finished_at"), name="task_ended"),
            models.Index(fields=("ref", "-id"), name="task_of_ref"),
            # For lists of the console; polls, which are most rows, are in neither.
            models.Index(fields=("resource", "-id"), name="task_rare", condition=~Q(resource=Resource.SCORECARD)),
            models.Index(fields=("error_class", "-id"), name="task_by_error", condition=~Q(error_class="")),
        )

    def __str__(self) -> str:
        return f"task {self.pk} {self.resource} {self.state}"


class TaskTransition(models.Model):
    """A transition other than claim and success. Append only."""

    task = models.ForeignKey(ScrapeTask, on_delete=models.CASCADE, related_name="transitions")
    from_state = models.CharField(max_length=10, choices=TaskState)
    to_state = models.CharField(max_length=10, choices=TaskState)
    at = models.DateTimeField()
    attempt = models.PositiveSmallIntegerField(default=0)
    stage = models.CharField(max_length=14, choices=Stage, default=Stage.INIT)
    actor = models.CharField(max_length=150, help_text="A worker, the scheduler, or a person's name.")
    reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=("at",), name="transition_time"),)

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state}"
