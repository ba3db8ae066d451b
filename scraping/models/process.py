"""Processes: workers, commands to them, and the lease that makes one scheduler the leader."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models

SILENT_AFTER = timedelta(seconds=15)  # a worker without a heartbeat for so long counts as gone


class WorkerQuerySet(models.QuerySet["Worker"]):
    def at_work(self, now: datetime) -> WorkerQuerySet:
        return self.filter(stopped_at__isnull=True, heartbeat_at__gte=now - SILENT_AFTER)


class Worker(models.Model):
    """A process that runs tasks and owns one browser; it writes its own row every few seconds."""

    worker_id = models.CharField(max_length=80, primary_key=True)
    host = models.CharField(max_length=120)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True)
    browser_pid = models.PositiveIntegerField(null=True, blank=True)
    browser_started_at = models.DateTimeField(null=True, blank=True)
    browser_launches = models.PositiveIntegerField(default=0)
    memory_bytes = models.PositiveBigIntegerField(default=0, help_text="The whole process tree, browser included.")
    peak_memory_bytes = models.PositiveBigIntegerField(default=0)
    free_memory_bytes = models.PositiveBigIntegerField(default=0, help_text="Free memory of its machine; 0: unknown.")
    cpu_percent = models.FloatField(default=0.0)
    renderers = models.JSONField(
        default=dict, blank=True, help_text="Memory in bytes and CPU in percent of each page that stays open, by match."
    )
    process_count = models.PositiveIntegerField(default=0)
    context_count = models.PositiveIntegerField(default=0)
    page_count = models.PositiveIntegerField(default=0)
    active_tasks = models.PositiveIntegerField(default=0)

    objects = WorkerQuerySet.as_manager()

    class Meta:
        indexes = (models.Index(fields=("heartbeat_at",), name="worker_heartbeat"),)

    def __str__(self) -> str:
        return self.worker_id

    def is_at_work(self, now: datetime) -> bool:
        return self.stopped_at is None and now - self.heartbeat_at <= SILENT_AFTER


class CommandKind(models.TextChoices):
    FRESH_SESSION = "fresh_session"
    RECYCLE_BROWSER = "recycle_browser"


class WorkerCommand(models.Model):
    """A command to a worker, taken by its heartbeat. Sole writer: recovery.worker_commands."""

    worker_id = models.CharField(max_length=80)
    kind = models.CharField(max_length=20, choices=CommandKind)
    source_key = models.CharField(max_length=40, blank=True, help_text="The source whose session is meant, if any.")
    reason = models.CharField(max_length=300)
    actor = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=200, blank=True, help_text="The result, for people.")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("worker_id", "kind", "source_key"),
                condition=models.Q(done_at__isnull=True),
                name="command_one_open_of_a_kind",
            ),
        )
        indexes = (models.Index(fields=("-asked_at",), name="command_asked"),)

    def __str__(self) -> str:
        return f"{self.kind} for {self.worker_id}"


class Lease(models.Model):
    """A right that one process holds until a time; it expires without renewal."""

    name = models.CharField(max_length=60, primary_key=True)
    holder = models.CharField(max_length=80, blank=True)
    fence = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} held by {self.holder}"
