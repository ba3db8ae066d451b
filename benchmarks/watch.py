"""The journal as a bench sees it: warm-up, what was done in a stretch of time, and how well. Needs a ready Django."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count
from django.utils import timezone

from benchmarks.arena import Arena
from benchmarks.progress import wait_until
from scraping.matches import discovery
from scraping.models import OPEN_STATES, MatchRef, ScrapeError, ScrapeTask, Source, TaskState
from scraping.payloads import DiscoveredMatch, Resource, Sport, Status

SITE = "crex"


def set_up_source(*, max_open_tasks: int) -> None:
    """Only the site that the programme fills, and no limit on how many of its matches may be read at once."""
    Source.objects.exclude(key=SITE).update(is_enabled=False)
    Source.objects.filter(key=SITE).update(max_concurrency=max_open_tasks, burst_allowance=max_open_tasks)


def add_matches(place: Arena, *, site: str = SITE, up_to: int) -> None:
    """Let the site have so many live matches, as if its list had named no more. For arenas where nobody reads it."""
    source = Source.objects.get(key=site)
    shown = [one for one in place.stadium.matches() if one["site"] == site and one["status"] == Status.LIVE]
    found = [
        DiscoveredMatch(source_event_id=one["key"], url=one["url"], sport=Sport(source.sport), status=Status.LIVE)
        for one in shown[:up_to]
    ]
    discovery.register(source, found, now=timezone.now())


def wait_for_first_readings(place: Arena, *, matches: int, seconds: float) -> None:
    """Every match has been found, visited once, and the holes in its events filled."""

    def is_done() -> bool:
        place.check()
        return _read_once() >= matches and not _open().filter(resource=Resource.COMMENTARY).exists()

    wait_until(
        is_done,
        seconds=seconds,
        what="first visits:",
        how_far=lambda: f"{_read_once()} of {matches} matches",
        every_seconds=0.5,
    )


def _read_once() -> int:
    return MatchRef.objects.exclude(captured_at=None).count()


def _open() -> Any:
    return ScrapeTask.objects.filter(state__in=OPEN_STATES)


def pause(place: Arena) -> None:
    """No new work; what is under way is finished. Tasks that nobody has taken wait in the journal."""
    Source.objects.filter(key=SITE).update(is_enabled=False)
    wait_until(_is_idle_for_a_second, seconds=30, what="finishing what is under way")
    place.freeze()


def _is_idle_for_a_second() -> bool:
    """Hints that were sent before may still be taken, so one look is not enough."""
    executing = ScrapeTask.objects.filter(state=TaskState.EXECUTING)
    for _ in range(5):
        if executing.exists():
            return False
        time.sleep(0.2)
    return True


def go_on(place: Arena) -> None:
    place.thaw()
    Source.objects.filter(key=SITE).update(is_enabled=True)


def polls_since(moment: datetime) -> int:
    return ScrapeTask.objects.filter(
        resource=Resource.SCORECARD, state=TaskState.SUCCESS, finished_at__gte=moment
    ).count()


@dataclass(frozen=True)
class Window:
    """What the journal says of a stretch of time."""

    polls: int
    milliseconds: list[float]  # of each poll, from its claim to its commit
    errors: list[str]
    matches: int  # that were read at least once


def between(start: datetime, end: datetime) -> Window:
    """Counts commits by the time they were made; errors up to the present."""
    done = ScrapeTask.objects.filter(
        resource=Resource.SCORECARD, state=TaskState.SUCCESS, finished_at__gte=start, finished_at__lt=end
    )
    rows = list(done.values_list("started_at", "finished_at"))
    taken = [(finished - started).total_seconds() * 1000 for started, finished in rows if started and finished]
    return Window(len(rows), taken, _errors(start), done.aggregate(matches=Count("ref", distinct=True))["matches"])


def _errors(start: datetime) -> list[str]:
    failed = ScrapeTask.objects.filter(created_at__gte=start, state__in=(TaskState.FAILED, TaskState.DEAD))
    found = [f"task {task.pk} {task.state}: {task.reason}" for task in failed[:20]]
    noted = ScrapeError.objects.filter(timestamp__gte=start)
    return found + [f"{error.error_type}: {error.error_message[:200]}" for error in noted[:20]]
