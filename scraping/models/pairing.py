"""Pairing of one match at two sources: team aliases, reviews, conflicts between sources; and match archives."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from scraping.names import Aliases, squeezed


class TeamAliasQuerySet(models.QuerySet["TeamAlias"]):
    def names(self, sport: str) -> Aliases:
        """Returns the team name of each squeezed alias. One query; the table is small."""
        return dict(self.filter(sport=sport).values_list("squeezed", "name"))


class TeamAlias(models.Model):
    sport = models.CharField(max_length=20)
    alias = models.CharField(max_length=120, help_text="As a source writes it; blanks, dots and capitals do not count.")
    name = models.CharField(max_length=120, help_text="The name of the team here.")
    squeezed = models.CharField(max_length=60, editable=False, help_text="The normalized alias, for comparison.")

    objects = TeamAliasQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "team aliases"
        ordering = ("sport", "name", "alias")
        constraints = (models.UniqueConstraint(fields=("sport", "squeezed"), name="alias_once_per_sport"),)

    def __str__(self) -> str:
        return f"{self.alias} is {self.name}"

    def clean(self) -> None:
        """Refuses an alias that means another team already, in whatever spelling."""
        self.squeezed = squeezed(self.alias)
        same = TeamAlias.objects.filter(sport=self.sport, squeezed=self.squeezed).exclude(pk=self.pk).first()
        if not self.squeezed:
            raise ValidationError({"alias": "It needs letters or figures."})
        if same is not None:
            raise ValidationError({"alias": f"There is this one already: {same}."})


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
    file = models.CharField(max_length=200, help_text="Below MATCH_LOG_DIR.")
    size_bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.file
