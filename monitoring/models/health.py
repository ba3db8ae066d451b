"""Health over time: one row a scraper and interval, and one row a change of the system's grade."""

from __future__ import annotations

from django.db import models

from scraping.models import HealthStatus


class HealthLog(models.Model):
    scraper_id = models.UUIDField()
    match_id = models.CharField(max_length=160, blank=True, help_text="The match's name at its source: crex_13KM.")
    timestamp = models.DateTimeField()
    health_status = models.CharField(max_length=10, choices=HealthStatus)
    error_count = models.PositiveIntegerField(default=0)
    memory_mb = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    cpu_percent = models.DecimalField(max_digits=6, decimal_places=2, null=True)
    update_latency_ms = models.PositiveIntegerField(null=True)
    polling_interval_seconds = models.DecimalField(max_digits=6, decimal_places=2, null=True)
    uptime_seconds = models.PositiveIntegerField(null=True)
    last_update_age_seconds = models.PositiveIntegerField(null=True)

    class Meta:
        verbose_name = "health row"
        verbose_name_plural = "health log"
        db_table = "scraper_health_log"
        indexes = (
            models.Index(fields=("scraper_id", "timestamp"), name="health_scraper_time"),
            models.Index(fields=("match_id", "timestamp"), name="health_match_time"),
            models.Index(fields=("health_status", "timestamp"), name="health_status_time"),
        )

    def __str__(self) -> str:
        return f"{self.health_status} at {self.timestamp:%H:%M:%S}"


class Grade(models.TextChoices):
    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    FAILING = "FAILING"
    RECOVERING = "RECOVERING"


class GradeChange(models.Model):
    from_grade = models.CharField(max_length=10, choices=Grade)
    to_grade = models.CharField(max_length=10, choices=Grade)
    at = models.DateTimeField()
    reason = models.CharField(max_length=300)
    match = models.ForeignKey(
        "scraping.Match",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The match that caused it; of a recovery the one that has recovered.",
    )

    class Meta:
        verbose_name = "grade"
        indexes = (models.Index(fields=("-at",), name="grade_time"),)

    def __str__(self) -> str:
        return f"{self.from_grade} → {self.to_grade}"
