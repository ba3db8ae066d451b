"""Network traffic of each source, its rates over time, and the sessions through which it was read."""

from __future__ import annotations

from functools import partial

from django.db import models

RATE_SECONDS = MINUTE, QUARTER = 60, 900  # the periods of SourceRate

_Count = partial(models.PositiveIntegerField, default=0, db_default=0)  # an upsert names some columns only


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
        verbose_name = "traffic of a day"
        verbose_name_plural = "traffic"
        ordering = ("-day", "source")
        constraints = (models.UniqueConstraint(fields=("source", "day"), name="source_day_once"),)

    def __str__(self) -> str:
        return f"{self.source_id} on {self.day}"


class SourceRate(models.Model):
    """Calls, read latencies and ages of live data of one source in one minute, and in one quarter of an hour.

    Charts read a few hundred of these rows, whatever the size of the journal. Each process adds to the columns that it
    counts: `recovery.breakers` the calls, `stats.read_stats` the latencies, `stats.rates` the ages.
    """

    source = models.ForeignKey("scraping.Source", on_delete=models.CASCADE, related_name="rates")
    seconds = models.PositiveSmallIntegerField(help_text="The length of the period: 60 or 900.")
    starts_at = models.DateTimeField()
    calls = _Count()
    bad = _Count(help_text="Failures that were the source's fault.")
    within_50_ms = _Count(help_text="Readings by duration: up to 50 ms, from there to 100 ms, and so on.")
    within_100_ms = _Count()
    within_200_ms = _Count()
    within_400_ms = _Count()
    within_800_ms = _Count()
    within_1600_ms = _Count()
    within_3200_ms = _Count()
    within_6400_ms = _Count()
    within_12800_ms = _Count()
    slower = _Count()
    age_samples = _Count()
    median_age_ms_total = models.PositiveBigIntegerField(
        default=0, db_default=0, help_text="Sum of the sampled median ages."
    )
    oldest_age_ms = models.PositiveBigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("source", "seconds", "starts_at"), name="source_rate_once"),)
        indexes = (models.Index(fields=("seconds", "starts_at"), name="source_rate_time"),)

    def __str__(self) -> str:
        return f"{self.source_id} from {self.starts_at:%H:%M}, {self.seconds} s"


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
        verbose_name = "session"
        indexes = (models.Index(fields=("-last_used_at",), name="proxy_session_used"),)

    def __str__(self) -> str:
        return self.session_id
