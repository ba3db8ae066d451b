"""Queries over the other apps' tables that health, metrics, grade, audit and watchdogs share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from django.db import Error
from django.db.models import Exists, OuterRef

from scraping.models import Match, MatchLifecycle, MatchRef, ScrapeTask, TaskState, Worker
from scraping.models.match import MatchQuerySet
from victoryline.lib import availability, pg_wait

MEGABYTE = 1024 * 1024


class DatabaseAway(Exception):  # noqa: N818 - reads as a state at every `except`
    """The database does not answer; the message is the class of the driver's error."""


@contextmanager
def database_read() -> Iterator[None]:
    """Bounds the reads of its body in time; raises DatabaseAway if they fail, or at once if that is known already.

    `__cause__` is the driver's error, and None where no query was made.
    """
    if availability.database.is_away():
        raise DatabaseAway(availability.database.reason())
    try:
        with pg_wait.within(availability.READ_SECONDS):
            yield
    except Error as error:
        availability.database.report(error)
        raise DatabaseAway(type(error).__name__) from error


def workers_at_work(now: datetime) -> list[Worker]:
    return list(Worker.objects.at_work(now).order_by("started_at"))


def matches_to_watch() -> MatchQuerySet:
    """Returns matches that must be fresh: live, not paused, watched at an enabled source."""
    watched = MatchRef.objects.filter(match=OuterRef("pk"), is_watched=True, source__is_enabled=True)
    return Match.objects.live().filter(
        Exists(watched), lifecycle__in=(MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE)
    )


def live_ages(now: datetime) -> list[float]:
    """Returns seconds since each match to watch was last read, or since its discovery if it never was."""
    moments = matches_to_watch().values_list("last_scraper_update", "created_at")
    return [max(0.0, (now - (updated or created)).total_seconds()) for updated, created in moments]


def last_success_at() -> datetime | None:
    newest = ScrapeTask.objects.filter(state=TaskState.SUCCESS).order_by("-finished_at")
    return newest.values_list("finished_at", flat=True).first()


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the nearest-rank percentile, a value that really occurred; 0 for no values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * share // 1))
    return float(ordered[int(rank) - 1])
