"""Circuit breakers as rows, so that every process sees the same one and an operator can read it. Sole writer: breakers.

Guards against hammering a source that is failing, and against a broken match eating the retries of the healthy ones.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from victoryline.lib.times import as_utc_iso


class BreakerState(models.TextChoices):
    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class Breaker(models.Model):
    name = models.CharField(max_length=160, unique=True)
    ref = models.OneToOneField(
        "scraping.MatchRef", on_delete=models.CASCADE, null=True, blank=True, related_name="breaker"
    )
    state = models.CharField(max_length=10, choices=BreakerState, default=BreakerState.CLOSED)
    version = models.PositiveIntegerField(default=0, help_text="Compare-and-swap: every change adds one.")
    failure_count = models.PositiveIntegerField(default=0)
    success_count = models.PositiveIntegerField(default=0)
    last_failure_time = models.DateTimeField(null=True, blank=True)
    last_state_change = models.DateTimeField()
    open_until = models.DateTimeField(null=True, blank=True)
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
        )

    def __str__(self) -> str:
        return self.name

    def as_document(self) -> dict[str, object]:
        """The breaker as /health shows it."""
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
