"""Who is at work: worker processes, and the lease that makes one scheduler the leader."""

from __future__ import annotations

from django.db import models


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
    free_memory_bytes = models.PositiveBigIntegerField(default=0, help_text="What its machine has left; 0: not told.")
    cpu_percent = models.FloatField(default=0.0)
    process_count = models.PositiveIntegerField(default=0)
    context_count = models.PositiveIntegerField(default=0)
    page_count = models.PositiveIntegerField(default=0)
    active_tasks = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = (models.Index(fields=("heartbeat_at",), name="worker_heartbeat"),)

    def __str__(self) -> str:
        return self.worker_id


class Lease(models.Model):
    """A right that one process holds until a time, and loses by silence."""

    name = models.CharField(max_length=60, primary_key=True)
    holder = models.CharField(max_length=80, blank=True)
    fence = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} held by {self.holder}"
