"""A batch of work: a round, a list of addresses, or the watch over a source's live matches.

Each expected match is a JobItem, written in the same transaction as the tasks and before the first of them runs. The
state of an item is that of its task; nothing is counted twice.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class JobKind(models.TextChoices):
    WATCH = "watch"
    ROUND = "round"
    URLS = "urls"


class ScrapeJob(models.Model):
    kind = models.CharField(max_length=10, choices=JobKind)
    name = models.CharField(max_length=200)
    source = models.ForeignKey("scraping.Source", on_delete=models.PROTECT, null=True, blank=True, related_name="jobs")
    requested_by = models.CharField(max_length=150, default="scheduler")
    idempotency_key = models.CharField(max_length=100, null=True, blank=True, unique=True)
    parameters = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    discovered_at = models.DateTimeField(
        null=True, blank=True, help_text="When its expected matches were written; empty while their list is being read."
    )
    finished_at = models.DateTimeField(null=True, blank=True, help_text="When its last item ended; a retry reopens it.")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("source",), condition=Q(kind=JobKind.WATCH), name="job_one_watch_per_source"
            ),
            models.CheckConstraint(condition=Q(kind__in=JobKind.values), name="job_kind_known"),
        )
        indexes = (models.Index(fields=("-created_at",), name="job_newest"),)

    def __str__(self) -> str:
        return self.name


class JobItem(models.Model):
    """One expected match of a job. Two jobs with the same match at the same time share its task."""

    job = models.ForeignKey(ScrapeJob, on_delete=models.CASCADE, related_name="items")
    ref = models.ForeignKey("scraping.MatchRef", on_delete=models.CASCADE, related_name="job_items")
    task = models.ForeignKey(
        "scraping.ScrapeTask", on_delete=models.SET_NULL, null=True, blank=True, related_name="job_items"
    )
    skipped_because = models.CharField(max_length=200, blank=True, help_text="Nothing to do: the match is complete.")
    outcome = models.CharField(
        max_length=10, blank=True, help_text="The final state of the task, kept when retention deletes the task."
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=("job", "ref"), name="item_once_per_job"),)

    def __str__(self) -> str:
        return f"{self.job_id}: {self.ref_id}"
