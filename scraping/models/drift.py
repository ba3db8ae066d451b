"""Counts of the payloads in which each field of a source was filled: the baseline for drift."""

from __future__ import annotations

from django.db import models


class FieldFill(models.Model):
    """One field of one payload schema in one period, added up by the workers' heartbeats."""

    source = models.ForeignKey("scraping.Source", on_delete=models.CASCADE, related_name="field_fills")
    payload_schema = models.CharField(max_length=60)
    field = models.CharField(max_length=80)
    starts_at = models.DateTimeField()
    seen = models.PositiveIntegerField(default=0)
    filled = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name = "fill rate"
        constraints = (
            models.UniqueConstraint(
                fields=("source", "payload_schema", "field", "starts_at"), name="field_fill_once_per_bucket"
            ),
            models.CheckConstraint(condition=models.Q(filled__lte=models.F("seen")), name="field_fill_at_most_seen"),
        )
        indexes = (models.Index(fields=("starts_at",), name="field_fill_age"),)

    def __str__(self) -> str:
        return f"{self.payload_schema} {self.field}"
