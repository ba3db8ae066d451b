"""Pairing of one match at two sources: reviews, conflicts between sources; and match archives."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class PairingState(models.TextChoices):
    OPEN = "open"
    JOINED = "joined"
    APART = "apart"


class PairingReview(models.Model):
    """Two matches at two sources that may be one. They are joined by a person only."""

    match = models.ForeignKey("scraping.Match", on_delete=models.CASCADE, related_name="pairings")
    candidate = models.ForeignKey("scraping.Match", on_delete=models.CASCADE, related_name="pairings_as_candidate")
    score = models.FloatField(help_text="0 to 1: likelihood that they are one match.")
    reasons = models.JSONField(default=list, help_text="Reasons for and against, for people.")
    state = models.CharField(max_length=8, choices=PairingState, default=PairingState.OPEN)
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = "pair to review"
        verbose_name_plural = "pairs to review"
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(fields=("match", "candidate"), name="pairing_once"),
            models.CheckConstraint(condition=Q(state__in=PairingState.values), name="pairing_state_known"),
        )

    def __str__(self) -> str:
        return f"match {self.match_id} and match {self.candidate_id}"


class Conflict(models.Model):
    """Two sources disagree about a field of a match by more than a delay would explain."""

    match = models.ForeignKey("scraping.Match", on_delete=models.CASCADE, related_name="conflicts")
    field = models.CharField(max_length=60)
    chosen_source = models.CharField(max_length=40)
    chosen_value = models.JSONField(null=True)
    other_source = models.CharField(max_length=40)
    other_value = models.JSONField(null=True)
    difference_percent = models.FloatField(null=True, blank=True, help_text="Empty where the value is not a number.")
    times_seen = models.PositiveIntegerField(default=1)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True, blank=True, help_text="When they agreed again.")

    class Meta:
        ordering = ("-last_seen_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("match", "field", "other_source"),
                condition=Q(resolved_at__isnull=True),
                name="conflict_one_open",
            ),
        )
        indexes = (models.Index(fields=("match", "resolved_at"), name="conflict_of_match"),)

    def __str__(self) -> str:
        return f"{self.field} of match {self.match_id}: {self.chosen_source} and {self.other_source}"


class UnknownValue(models.Model):
    """A value in a source's response that its schema does not know, and how often it occurred."""

    source = models.ForeignKey("scraping.Source", on_delete=models.CASCADE, related_name="unknown_values")
    payload_schema = models.CharField(max_length=40)
    path = models.CharField(max_length=120)
    value = models.CharField(max_length=120)
    times_seen = models.PositiveBigIntegerField(default=0)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        ordering = ("-last_seen_at",)
        constraints = (
            models.UniqueConstraint(fields=("source", "payload_schema", "path", "value"), name="unknown_value_once"),
        )

    def __str__(self) -> str:
        return f"{self.path} = {self.value}"


class MatchArchive(models.Model):
    """The log file of a match that has ended, and which parts were complete."""

    match = models.OneToOneField("scraping.Match", on_delete=models.CASCADE, related_name="archive")
    file = models.CharField(max_length=200, help_text="Below STORAGE_DIR/match_logs.")
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = "record"

    def __str__(self) -> str:
        return self.file
