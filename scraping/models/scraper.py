"""The watch over one live match at one source, from its start to its stop, with its counters."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q

from victoryline.lib.times import as_utc_iso


class HealthStatus(models.TextChoices):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    FAILING = "failing"


class Scraper(models.Model):
    scraper_id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    ref = models.ForeignKey("scraping.MatchRef", on_delete=models.CASCADE, related_name="scrapers")
    start_time = models.DateTimeField()
    last_update_time = models.DateTimeField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    stop_reason = models.CharField(max_length=200, blank=True)
    error_count = models.PositiveIntegerField(default=0, help_text="Consecutive errors.")
    total_errors = models.PositiveIntegerField(default=0)
    total_updates = models.PositiveIntegerField(default=0)
    latency_total_ms = models.PositiveBigIntegerField(default=0)
    last_latency_ms = models.PositiveIntegerField(default=0)
    polling_interval = models.FloatField(default=2.5)
    worker_id = models.CharField(max_length=80, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("ref",), condition=Q(stopped_at__isnull=True), name="scraper_one_active"),
        )
        indexes = (models.Index(fields=("stopped_at", "start_time"), name="scraper_active"),)

    def __str__(self) -> str:
        return str(self.scraper_id)

    def staleness_seconds(self, now: datetime) -> float:
        return (now - (self.last_update_time or self.start_time)).total_seconds()

    def health_status(self, now: datetime, staleness_threshold: float = 300) -> HealthStatus:
        """DM-1: failing past 5 errors in a row or 5 minutes of silence, degraded past 2 or 2 minutes."""
        staleness = self.staleness_seconds(now)
        if self.error_count > 5 or staleness > staleness_threshold:
            return HealthStatus.FAILING
        if self.error_count > 2 or staleness > min(120, staleness_threshold):
            return HealthStatus.DEGRADED
        return HealthStatus.HEALTHY

    def as_document(self, now: datetime, *, match_id: str, url: str, memory_mb: float, cpu: float) -> dict[str, object]:
        return {
            "scraper_id": str(self.scraper_id),
            "match_id": match_id,
            "url": url,
            "start_time": as_utc_iso(self.start_time),
            "last_update": as_utc_iso(self.last_update_time) if self.last_update_time else None,
            "uptime_seconds": round((now - self.start_time).total_seconds(), 1),
            "error_count": self.error_count,
            "total_errors": self.total_errors,
            "total_updates": self.total_updates,
            "health_status": self.health_status(now).value,
            "memory_mb": round(memory_mb, 1),
            "cpu_percent": round(cpu, 1),
            "polling_interval": self.polling_interval,
        }
