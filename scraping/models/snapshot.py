"""The reconciled state of a match each time it changed. Append only; sole writer: ingest."""

from __future__ import annotations

from django.db import models

KEPT_HOURS = 24  # the newest of a match stays


class Snapshot(models.Model):
    match = models.ForeignKey("scraping.Match", on_delete=models.CASCADE, related_name="snapshots")
    sequence = models.PositiveIntegerField()
    checksum = models.CharField(max_length=64)
    payload = models.JSONField()
    delta = models.JSONField(default=dict)
    provenance = models.JSONField(default=dict)
    captured_at = models.DateTimeField()
    created_at = models.DateTimeField()
    task_finished_at = models.DateTimeField(
        null=True, help_text="The end of the task that wrote it; null before it was kept."
    )
    scraper_id = models.UUIDField(null=True, blank=True)
    update_latency_ms = models.PositiveIntegerField(default=0)
    data_source = models.CharField(
        max_length=10, default="scraper", choices=[(w, w) for w in ("scraper", "cache", "manual")]
    )

    class Meta:
        db_table = "live_match_data"
        constraints = (models.UniqueConstraint(fields=("match", "sequence"), name="snapshot_once_per_sequence"),)
        indexes = (
            models.Index(fields=("created_at",), name="snapshot_created"),
            models.Index(fields=("scraper_id",), name="snapshot_scraper"),
        )

    def __str__(self) -> str:
        return f"match {self.match_id} #{self.sequence}"
