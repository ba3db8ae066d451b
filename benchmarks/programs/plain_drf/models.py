from __future__ import annotations

from django.db import models


class PlainMatch(models.Model):
    """Our match table, with the columns that our response uses."""

    sport = models.CharField(max_length=20)
    title = models.CharField(max_length=500)
    status = models.CharField(max_length=12)
    phase = models.CharField(max_length=20)
    lifecycle = models.CharField(max_length=12)
    team_a = models.CharField(max_length=120)
    team_b = models.CharField(max_length=120)
    series = models.CharField(max_length=200)
    start_time = models.DateTimeField(null=True)
    sequence = models.PositiveIntegerField()
    last_scraper_update = models.DateTimeField(null=True)
    last_changed_at = models.DateTimeField(null=True)
    payload = models.JSONField()

    class Meta:
        managed = False
        db_table = "matches"

    def __str__(self) -> str:
        return self.title
