"""The canonical game, and its references at the sources."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import models
from django.db.models import Q

from scraping.payloads import Status


class MatchLifecycle(models.TextChoices):
    DISCOVERED = "DISCOVERED"
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    ARCHIVED = "ARCHIVED"


class Priority(models.IntegerChoices):
    LIVE = 0
    IMMINENT = 1
    COMPLETED = 2


class Importance(models.IntegerChoices):
    """The importance of a match: decides its interval, and which matches wait under overload."""

    HIGH = 0
    NORMAL = 1
    LOW = 2


POLLED_LIFECYCLES = (MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE, MatchLifecycle.COMPLETED)


class ScraperStatus(models.TextChoices):
    """The state of a match's scraper as consumers see it."""

    UNKNOWN = "unknown"
    ACTIVE = "active"
    STALE = "stale"
    STOPPED = "stopped"
    ERROR = "error"


class MatchQuerySet(models.QuerySet["Match"]):
    def watched(self) -> MatchQuerySet:
        """Matches that may still change."""
        return self.exclude(lifecycle=MatchLifecycle.ARCHIVED)

    def public(self) -> MatchQuerySet:
        """Matches that were read or listed. One that is known by an address only, without teams, may not exist."""
        return self.exclude(sequence=0, team_a="", title="")

    def live(self) -> MatchQuerySet:
        return self.filter(status=Status.LIVE, merged_into=None)

    def paused(self) -> MatchQuerySet:
        return self.filter(lifecycle=MatchLifecycle.PAUSED)

    def stalest_first(self) -> MatchQuerySet:
        return self.order_by(models.F("last_scraper_update").asc(nulls_first=True))


class Match(models.Model):
    """Sole writer of the payload, sequence and freshness columns: ingest. Of the pause columns: lifecycle. Of the known
    teams: teams."""

    sport = models.CharField(max_length=20)
    title = models.CharField(max_length=500, blank=True)
    status = models.CharField(max_length=12, choices=[(s.value, s.value) for s in Status], default=Status.UPCOMING)
    phase = models.CharField(max_length=20, default="scheduled")
    lifecycle = models.CharField(max_length=12, choices=MatchLifecycle, default=MatchLifecycle.DISCOVERED)
    priority = models.SmallIntegerField(choices=Priority, default=Priority.IMMINENT)
    importance = models.SmallIntegerField(
        choices=Importance, default=Importance.NORMAL, help_text="High: a final, or a match that many people follow."
    )
    is_importance_fixed = models.BooleanField(
        default=False, help_text="A person has set the importance: the rules do not change it."
    )
    start_time = models.DateTimeField(null=True, blank=True)
    team_a = models.CharField(max_length=120, blank=True)
    team_b = models.CharField(max_length=120, blank=True)
    known_team_a = models.ForeignKey(
        "scraping.Team", on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    known_team_b = models.ForeignKey(
        "scraping.Team", on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    series = models.CharField(max_length=200, blank=True)

    sequence = models.PositiveIntegerField(default=0)
    checksum = models.CharField(max_length=64, blank=True)
    payload = models.JSONField(default=dict, blank=True)
    provenance = models.JSONField(default=dict, blank=True)

    last_scraper_update = models.DateTimeField(null=True, blank=True)
    last_changed_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    scraper_status = models.CharField(max_length=10, choices=ScraperStatus, default=ScraperStatus.UNKNOWN)
    data_freshness_seconds = models.PositiveIntegerField(
        default=0, help_text="Age of the data, written every few seconds by the scheduler. For lists and reports."
    )
    silence_rung = models.PositiveSmallIntegerField(
        default=0, help_text="Step of the recovery ladder for silent matches; 0: none."
    )
    silence_rung_at = models.DateTimeField(null=True, blank=True, help_text="When that step was taken.")
    silent_since = models.DateTimeField(
        null=True, blank=True, help_text="Time of the last data, while the match is silent."
    )
    frozen_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when no recovery step has helped: the served data is known to be old."
    )

    consecutive_failure_count = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    pause_until = models.DateTimeField(null=True, blank=True)
    pause_reason = models.CharField(max_length=200, blank=True)
    total_scrapes = models.PositiveBigIntegerField(default=0)
    total_failures = models.PositiveBigIntegerField(default=0)
    provisional = models.JSONField(
        default=dict, blank=True, help_text="A score that went down and is not confirmed yet: source, score, time."
    )
    final_checks = models.JSONField(
        default=dict, blank=True, help_text="Parts that were complete when the match had ended: result, score, figures."
    )
    final_sync_at = models.DateTimeField(null=True, blank=True, help_text="When it was read as a whole after its end.")
    merged_into = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, help_text="The match that this one was merged into."
    )
    created_at = models.DateTimeField()

    objects = MatchQuerySet.as_manager()

    class Meta:
        db_table = "matches"
        verbose_name_plural = "matches"
        indexes = (
            models.Index(fields=("last_scraper_update",), name="match_freshness"),
            models.Index(fields=("scraper_status",), name="match_scraper_status"),
            models.Index(fields=("status", "-start_time", "id"), name="match_status_start"),
            models.Index(fields=("lifecycle", "pause_until"), name="match_lifecycle"),
            models.Index(fields=("data_freshness_seconds",), name="match_data_freshness"),
            models.Index(fields=("silence_rung",), name="match_silent", condition=Q(silence_rung__gt=0)),
        )
        constraints = (
            models.CheckConstraint(condition=Q(lifecycle__in=MatchLifecycle.values), name="match_lifecycle_known"),
            models.CheckConstraint(condition=Q(status__in=[s.value for s in Status]), name="match_status_known"),
            models.CheckConstraint(
                condition=~Q(lifecycle=MatchLifecycle.PAUSED) | Q(pause_until__isnull=False),
                name="match_pause_has_an_end",
            ),
        )

    def __str__(self) -> str:
        return self.title or self.key

    @property
    def key(self) -> str:
        """The public name of the match: its key at the source of the highest precedence; one query."""
        return match_key(self.pk)

    def age_seconds(self, now: datetime) -> float | None:
        """Returns the age of the data; None before the first reading."""
        if self.last_scraper_update is None:
            return None
        return max(0.0, (now - self.last_scraper_update).total_seconds())


class MatchRef(models.Model):
    """A match at a source: the unit that is polled. Sole writer of `next_poll_at` and `is_watched`: poll_times."""

    source = models.ForeignKey("scraping.Source", on_delete=models.PROTECT, related_name="refs")
    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="refs")
    source_event_id = models.CharField(max_length=100)
    url = models.URLField(max_length=500)
    is_watched = models.BooleanField(default=True)
    watch_at = models.DateTimeField(null=True, blank=True, help_text="When a watch starts that had to wait for memory.")

    next_poll_at = models.DateTimeField(null=True, blank=True)
    polling_interval_seconds = models.FloatField(default=2.5)
    unchanged_polls = models.PositiveIntegerField(default=0)
    recent_changes = models.CharField(max_length=20, blank=True, help_text="Last polls, newest last: 1 changed, 0 not.")
    pace_reason = models.CharField(max_length=80, blank=True, help_text="Why it is polled at this interval.")
    error_level = models.FloatField(default=0.0, help_text="Leaky bucket of errors; drains with time.")
    error_level_at = models.DateTimeField(null=True, blank=True)
    slowed_seconds = models.FloatField(default=0.0, help_text="Interval forced by errors; 0: none.")
    slowed_until = models.DateTimeField(null=True, blank=True, help_text="When it is polled as before the errors.")
    called_in_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when it is watched only because another source gives no data."
    )

    read_mode = models.CharField(
        max_length=10, blank=True, help_text="How it was read last: direct, in_page, attached or visit."
    )
    read_mode_reason = models.CharField(max_length=200, blank=True)
    read_mode_since = models.DateTimeField(null=True, blank=True)

    payload = models.JSONField(default=dict, blank=True, help_text="The latest state of this source.")
    captured_at = models.DateTimeField(null=True, blank=True)
    payload_schema = models.CharField(max_length=60, blank=True, help_text="Version of the data that was read.")
    integrity = models.JSONField(default=dict, blank=True, help_text="Wanted fields that the latest reading lacked.")
    suspect_checksum = models.CharField(
        max_length=64,
        blank=True,
        help_text="Number of readings below the known score and checksum of the last; accepted at the third.",
    )
    is_crossed = models.BooleanField(
        default=False, help_text="This source names the teams in the opposite order to the match."
    )
    gone_at = models.DateTimeField(null=True, blank=True, help_text="Since when the source no longer has the match.")
    lineups_at = models.DateTimeField(null=True, blank=True, help_text="When the line-ups are read next.")
    lineups_read_at = models.DateTimeField(null=True, blank=True)
    events_checksum = models.CharField(max_length=64, blank=True)
    lacks_events = models.BooleanField(
        default=False, help_text="The last reading had no list of events: the match is as old as the reading before."
    )
    events_through = models.PositiveIntegerField(default=0, help_text="Every event with a number up to this is stored.")
    events_seen = models.PositiveIntegerField(default=0, help_text="The highest event number seen.")
    events_doubted_from = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Since this number the source's lists omit known events; read again when a list omits none.",
    )
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = "reference"
        db_table = "match_external_refs"
        constraints = (
            models.UniqueConstraint(fields=("source", "source_event_id"), name="ref_once_per_source"),
            models.CheckConstraint(
                condition=Q(events_through__lte=models.F("events_seen")), name="ref_through_at_most_seen"
            ),
        )
        indexes = (
            models.Index(fields=("next_poll_at",), name="ref_due", condition=Q(is_watched=True)),
            models.Index(fields=("match",), name="ref_match"),
            models.Index(fields=("lineups_at",), name="ref_lineups_due", condition=Q(lineups_at__isnull=False)),
        )

    def __str__(self) -> str:
        return self.key

    @property
    def key(self) -> str:
        """The public name of the match at this source: crex_13KM."""
        return f"{self.source.key}_{self.source_event_id}"

    @property
    def left_out(self) -> tuple[str, ...]:
        """The parts that the latest reading lacks: those that could not be read, and the events if it has none."""
        broken = [part["path"] for part in self.integrity.get("broken_parts", ())]
        has_events = not self.lacks_events and "events" not in self.integrity.get("missing_fields", ())
        return tuple(broken if has_events else ["events", *broken])

    @property
    def planned_at(self) -> datetime | None:
        """Returns the next poll time; None where the ref is not watched or its source is disabled."""
        return self.next_poll_at if self.is_watched and self.source.is_enabled else None

    @property
    def has_gap(self) -> bool:
        return self.events_through < self.events_seen

    def has_overtaken(self, captured_at: datetime) -> bool:
        """Returns whether the stored reading is newer than one of this time: they are written in any order."""
        return self.captured_at is not None and captured_at < self.captured_at


def match_key(match_id: int) -> str:
    """Returns the public name of a match, as logs, errors and health rows have it; its number without any source."""
    return match_keys([match_id])[match_id]


def match_keys(match_ids: Iterable[int]) -> dict[int, str]:
    """Returns the public names of matches: their keys at the sources of the highest precedence; one query."""
    names = {pk: str(pk) for pk in match_ids}
    refs = MatchRef.objects.filter(match__in=names).order_by("source__precedence_weight", "-pk")
    found = refs.values_list("match_id", "source__key", "source_event_id")
    return names | {pk: f"{source}_{event_id}" for pk, source, event_id in found}
