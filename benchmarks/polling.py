"""Polling under a bench: source and matches, warm-up, pauses, and the polls of a time span. Needs Django set up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count
from django.utils import timezone

from benchmarks.environment import BenchEnvironment
from benchmarks.progress import wait_until
from scraping.matches import discovery
from scraping.models import OPEN_STATES, MatchRef, ScrapeError, ScrapeTask, Source, TaskState
from scraping.payloads import DiscoveredMatch, Resource, Sport, Status

SITE = "crex"


def set_up_source(*, max_open_tasks: int) -> None:
    """Enables only the site of the programme, without a limit on concurrent reads."""
    Source.objects.exclude(key=SITE).update(is_enabled=False)
    Source.objects.filter(key=SITE).update(
        max_concurrency=max_open_tasks, burst_allowance=max_open_tasks, min_interval_seconds=0
    )


def add_matches(environment: BenchEnvironment, *, site: str = SITE, up_to: int) -> None:
    """Registers live matches of a site, as if its match list had only these; used where discovery is off."""
    source = Source.objects.get(key=site)
    listed = [one for one in environment.stadium.matches() if one["site"] == site and one["status"] == Status.LIVE]
    found = [
        DiscoveredMatch(source_event_id=one["key"], url=one["url"], sport=Sport(source.sport), status=Status.LIVE)
        for one in listed[:up_to]
    ]
    discovery.register(source, found, now=timezone.now())


def wait_for_first_readings(environment: BenchEnvironment, *, matches: int, seconds: float) -> None:
    """Waits until every match was read once and the gaps in its events are filled."""

    def is_done() -> bool:
        environment.check()
        return _read_once() >= matches and not _open().filter(resource=Resource.COMMENTARY).exists()

    wait_until(
        is_done,
        seconds=seconds,
        what="first visits:",
        progress=lambda: f"{_read_once()} of {matches} matches",
        every_seconds=0.5,
    )


def _read_once() -> int:
    return MatchRef.objects.exclude(captured_at=None).count()


def _open() -> Any:
    return ScrapeTask.objects.filter(state__in=OPEN_STATES)


def pause(environment: BenchEnvironment) -> None:
    """Stops new work, waits for running tasks, and stops the processes. Pending tasks stay in the journal."""
    Source.objects.filter(key=SITE).update(is_enabled=False)
    wait_until(_is_idle_for_a_second, seconds=30, what="waiting for running tasks")
    environment.freeze()


def _is_idle_for_a_second() -> bool:
    """Checks for a second, because hints that were sent before may still be taken."""
    executing = ScrapeTask.objects.filter(state=TaskState.EXECUTING)
    for _ in range(5):
        if executing.exists():
            return False
        time.sleep(0.2)
    return True


def resume(environment: BenchEnvironment) -> None:
    environment.thaw()
    Source.objects.filter(key=SITE).update(is_enabled=True)


def polls_since(moment: datetime) -> int:
    return ScrapeTask.objects.filter(
        resource=Resource.SCORECARD, state=TaskState.SUCCESS, finished_at__gte=moment
    ).count()


@dataclass(frozen=True)
class PollWindow:
    """The polls of a time span, from the journal."""

    polls: int
    milliseconds: list[float]  # of each poll, from its claim to its commit
    errors: list[str]
    matches: int  # that were read at least once


def between(start: datetime, end: datetime) -> PollWindow:
    """Counts commits by the time they were made; errors up to the present."""
    done = ScrapeTask.objects.filter(
        resource=Resource.SCORECARD, state=TaskState.SUCCESS, finished_at__gte=start, finished_at__lt=end
    )
    rows = list(done.values_list("started_at", "finished_at"))
    taken = [(finished - started).total_seconds() * 1000 for started, finished in rows if started and finished]
    return PollWindow(len(rows), taken, _errors(start), done.aggregate(matches=Count("ref", distinct=True))["matches"])


def _errors(start: datetime) -> list[str]:
    failed = ScrapeTask.objects.filter(created_at__gte=start, state__in=(TaskState.FAILED, TaskState.DEAD))
    found = [f"task {task.pk} {task.state}: {task.reason}" for task in failed[:20]]
    noted = ScrapeError.objects.filter(timestamp__gte=start)
    return found + [f"{error.error_code}: {error.error_message[:200]}" for error in noted[:20]]
