"""Network traffic of each source, and the sessions through which it was read."""

from __future__ import annotations

from django.db import models


class SourceDay(models.Model):
    """One source's traffic of one day (UTC), added up by the workers' heartbeats."""

    source = models.ForeignKey("scraping.Source", on_delete=models.CASCADE, related_name="days")
    day = models.DateField()
    bytes_in = models.PositiveBigIntegerField(default=0)
    requests = models.PositiveBigIntegerField(default=0)
    requests_blocked = models.PositiveBigIntegerField(default=0)
    visits = models.PositiveBigIntegerField(default=0)
    direct_reads = models.PositiveBigIntegerField(default=0)
    attached_reads = models.PositiveBigIntegerField(default=0)
    in_page_reads = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ("-day", "source")
        constraints = (models.UniqueConstraint(fields=("source", "day"), name="source_day_once"),)

    def __str__(self) -> str:
        return f"{self.source_id} on {self.day}"


class ProxySession(models.Model):
    """A session at a source through a proxy, as its worker reports it. The proxy is stored as a hash only."""

    session_id = models.CharField(max_length=40, primary_key=True)
    source = models.ForeignKey("scraping.Source", on_delete=models.CASCADE, related_name="proxy_sessions")
    worker_id = models.CharField(max_length=80)
    proxy_hash = models.CharField(max_length=16, blank=True, help_text="Empty: without a proxy.")
    geo = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=200, blank=True)
    successes = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    bytes_in = models.PositiveBigIntegerField(default=0)
    quarantined_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (models.Index(fields=("-last_used_at",), name="proxy_session_used"),)

    def __str__(self) -> str:
        return self.session_id
