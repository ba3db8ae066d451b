"""A batch of work that somebody asked for: a round, a list of addresses, or the watch over a source's live matches.

What a job expects is written as one JobItem a match, in the same transaction as the tasks that do it and before the
first of them runs. What became of an item is its task's state; nothing is counted twice.
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
        null=True, blank=True, help_text="When what it expects was written down; empty while that is looked for."
    )
    finished_at = models.DateTimeField(null=True, blank=True, help_text="When its last item ended; retries reopen it.")

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
    """One match that a job expects. Two jobs that want the same match at the same time share its task."""

    job = models.ForeignKey(ScrapeJob, on_delete=models.CASCADE, related_name="items")
    ref = models.ForeignKey("scraping.MatchRef", on_delete=models.CASCADE, related_name="job_items")
    task = models.ForeignKey(
        "scraping.ScrapeTask", on_delete=models.SET_NULL, null=True, blank=True, related_name="job_items"
    )
    skipped_because = models.CharField(max_length=200, blank=True, help_text="Nothing to do: the match is complete.")
    outcome = models.CharField(
        max_length=10, blank=True, help_text="The task's end state, kept when retention takes the task away."
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=("job", "ref"), name="item_once_per_job"),)

    def __str__(self) -> str:
        return f"{self.job_id}: {self.ref_id}"
