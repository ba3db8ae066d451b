"""A ball, wicket or goal with a stable id, and each correction of it as a row of its own.

Rows are never edited but for `is_current`; the newest revision of an event is the current one. Sole writer: ingest.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class EventAction(models.TextChoices):
    ADD = "add"
    UPDATE = "update"
    RETRACT = "retract"


class MatchEvent(models.Model):
    match = models.ForeignKey("scraping.Match", on_delete=models.CASCADE, related_name="events")
    source = models.ForeignKey("scraping.Source", on_delete=models.PROTECT, related_name="+")
    event_id = models.CharField(max_length=160, help_text="The source's own id: stable.")
    revision = models.PositiveSmallIntegerField(default=1)
    action = models.CharField(max_length=8, choices=EventAction, default=EventAction.ADD)
    is_current = models.BooleanField(default=True)
    sequence = models.PositiveIntegerField(help_text="The match's sequence when this row was written.")
    slot = models.CharField(max_length=80, blank=True, help_text="Identifies the event across sources; empty: unknown.")
    is_served = models.BooleanField(
        default=True, help_text="False: consumers get another source's version of the same event."
    )
    public_id = models.CharField(
        max_length=160, blank=True, help_text="The id that consumers know, where another source had the event first."
    )
    public_revision = models.PositiveSmallIntegerField(default=0, help_text="0: the same as `revision`.")
    reason = models.CharField(max_length=200, blank=True, help_text="Why it was corrected or retracted.")
    kind = models.CharField(max_length=40)
    ordinal = models.PositiveIntegerField(null=True, blank=True)
    innings = models.PositiveSmallIntegerField(null=True, blank=True)
    over = models.CharField(max_length=10, blank=True)
    minute = models.CharField(max_length=10, blank=True)
    runs = models.SmallIntegerField(null=True, blank=True)
    is_critical = models.BooleanField(default=True)
    description = models.CharField(max_length=500, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    fingerprint = models.CharField(max_length=64, help_text="Hash of the event as read: a change is a correction.")
    happened_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = "event"
        constraints = (
            models.UniqueConstraint(fields=("match", "source", "event_id", "revision"), name="event_once_per_revision"),
            models.UniqueConstraint(
                fields=("match", "source", "event_id"), condition=Q(is_current=True), name="event_one_current"
            ),
            models.CheckConstraint(condition=Q(action__in=EventAction.values), name="event_action_known"),
        )
        indexes = (
            models.Index(fields=("match", "id"), name="event_feed"),
            models.Index(fields=("match", "slot"), name="event_slot", condition=~Q(slot="")),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.over or self.minute} ({self.event_id})"

    @property
    def known_as(self) -> str:
        """Returns the id that consumers know."""
        return self.public_id or self.event_id

    @property
    def shown_revision(self) -> int:
        return self.public_revision or self.revision
