"""A batch of work that somebody asked for: a round, a watch list."""

from __future__ import annotations

from django.db import models


class JobKind(models.TextChoices):
    WATCH = "watch"
    ROUND = "round"
    URLS = "urls"


class ScrapeJob(models.Model):
    kind = models.CharField(max_length=10, choices=JobKind)
    name = models.CharField(max_length=200)
    source = models.ForeignKey("scraping.Source", on_delete=models.PROTECT, null=True, blank=True, related_name="jobs")
    requested_by = models.CharField(max_length=150, default="scheduler")
    parameters = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("source",), condition=models.Q(kind=JobKind.WATCH), name="job_one_watch_per_source"
            ),
        )

    def __str__(self) -> str:
        return self.name
