"""Circuit breakers as rows, shared by all processes and visible to operators. Sole writer: recovery.breakers.

Guards against hammering a source that is failing, and against a broken match eating the retries of the healthy ones.
A breaker is either a ref's (so many failures in a row) or a whole source's (a share of bad calls in a window).
"""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from victoryline.lib.times import as_utc_iso


class BreakerState(models.TextChoices):
    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class Forced(models.TextChoices):
    """An operator's override until a time; `none`: the breaker works by itself."""

    NONE = "", "by itself"
    OPEN = "OPEN", "forced open"
    CLOSED = "CLOSED", "forced closed"


class Breaker(models.Model):
    name = models.CharField(max_length=160, unique=True)
    ref = models.OneToOneField(
        "scraping.MatchRef", on_delete=models.CASCADE, null=True, blank=True, related_name="breaker"
    )
    source = models.OneToOneField(
        "scraping.Source", on_delete=models.CASCADE, null=True, blank=True, related_name="breaker"
    )
    state = models.CharField(max_length=10, choices=BreakerState, default=BreakerState.CLOSED)
    version = models.PositiveIntegerField(default=0, help_text="Compare-and-swap: every change adds one.")
    failure_count = models.PositiveIntegerField(default=0)
    success_count = models.PositiveIntegerField(default=0)
    last_failure_time = models.DateTimeField(null=True, blank=True)
    last_state_change = models.DateTimeField()
    open_until = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=300, blank=True, help_text="The reason of its state.")
    probes = models.JSONField(
        default=dict, blank=True, help_text="Permits of a half-open breaker: task id to the time the permit expires."
    )
    forced = models.CharField(max_length=6, choices=Forced, default=Forced.NONE, blank=True)
    forced_until = models.DateTimeField(null=True, blank=True)
    forced_reason = models.CharField(max_length=200, blank=True)
    forced_by = models.CharField(max_length=150, blank=True)
    total_opens = models.PositiveIntegerField(default=0)
    total_calls = models.PositiveBigIntegerField(default=0)
    total_successes = models.PositiveBigIntegerField(default=0)
    total_failures = models.PositiveBigIntegerField(default=0)
    total_rejections = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=Q(state__in=BreakerState.values), name="breaker_state_known"),
            models.CheckConstraint(
                condition=~Q(state=BreakerState.OPEN) | Q(open_until__isnull=False), name="breaker_open_has_an_end"
            ),
            models.CheckConstraint(
                condition=Q(ref__isnull=True) | Q(source__isnull=True), name="breaker_of_a_ref_or_of_a_source"
            ),
            models.CheckConstraint(
                condition=Q(forced="") | (Q(forced_until__isnull=False) & ~Q(forced_reason="")),
                name="breaker_forced_has_an_end_and_a_reason",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def shown_state(self, now: datetime) -> str:
        """Returns the state for people: an operator's override until its end, else the breaker's own."""
        is_forced = self.forced and self.forced_until and self.forced_until > now
        return Forced(self.forced).label if is_forced else self.state.lower().replace("_", " ")

    def as_document(self) -> dict[str, object]:
        return {
            "name": self.name,
            "state": self.state,
            "failure_count": self.failure_count,
            "success_count": self.success_count,
            "total_calls": self.total_calls,
            "total_successes": self.total_successes,
            "total_failures": self.total_failures,
            "total_rejections": self.total_rejections,
            "last_state_change": as_utc_iso(self.last_state_change),
        }


class OutcomeBucket(models.Model):
    """Outcomes of a source's attempts in a few seconds: workers add to it in batches, its breaker sums it up."""

    source = models.ForeignKey("scraping.Source", on_delete=models.CASCADE, related_name="outcomes")
    starts_at = models.DateTimeField()
    calls = models.PositiveIntegerField(default=0)
    bad = models.PositiveIntegerField(default=0, help_text="Failures that were the source's fault.")
    retries = models.PositiveIntegerField(default=0, help_text="Calls that were not the first attempt of their task.")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("source", "starts_at"), name="outcomes_once_per_time"),)
        indexes = (models.Index(fields=("starts_at",), name="outcomes_time"),)

    def __str__(self) -> str:
        return f"{self.calls} calls, {self.bad} bad from {self.starts_at:%H:%M:%S}"
