"""Rows that monitoring reads, in addition to those of tests.factories."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from scraping.models import Match, MatchRef, ScrapeError, Scraper, ScrapeTask, TaskState, Worker
from scraping.payloads import Resource
from tests.factories import make_match, make_ref, make_scraper, make_source

_numbers = itertools.count(1)
MEGABYTE = 1024 * 1024


def make_worker(worker_id: str = "engine", *, now: datetime | None = None, **fields: Any) -> Worker:
    now = now or timezone.now()
    values: dict[str, Any] = {
        "host": "here",
        "pid": 1,
        "started_at": now - timedelta(hours=1),
        "heartbeat_at": now,
        "memory_bytes": 400 * MEGABYTE,
        "peak_memory_bytes": 500 * MEGABYTE,
        "cpu_percent": 20.0,
    }
    return Worker.objects.create(worker_id=worker_id, **values | fields)


def make_watched(
    *, now: datetime | None = None, age: float = 1.0, worker_id: str = "engine", **fields: Any
) -> tuple[Match, MatchRef, Scraper]:
    """A live match with its reference and its scraper, last read `age` seconds ago."""
    now = now or timezone.now()
    read = now - timedelta(seconds=age)
    match = make_match(now=now, **{"last_scraper_update": read} | fields)
    ref = make_ref(match, now=now)
    return match, ref, make_scraper(ref, now=now, last_update_time=read, worker_id=worker_id)


def make_error(
    match: Match | None = None, *, now: datetime | None = None, age: float = 1.0, **fields: Any
) -> ScrapeError:
    now = now or timezone.now()
    values: dict[str, Any] = {"error_class": "transient", "error_type": "network", "error_message": "timeout"}
    if match is not None:  # of its scraper's poll, as the worker writes it
        values["scraper_id"] = (
            Scraper.objects.filter(ref__match=match, stopped_at=None).values_list("pk", flat=True).first()
        )
    return ScrapeError.objects.create(match=match, timestamp=now - timedelta(seconds=age), **values | fields)


def make_task(ref: MatchRef | None = None, *, now: datetime | None = None, **fields: Any) -> ScrapeTask:
    now = now or timezone.now()
    state = fields.get("state", TaskState.PENDING)
    values: dict[str, Any] = {
        "source": ref.source if ref else make_source(),
        "ref": ref,
        "resource": Resource.SCORECARD.value,
        "run_at": now,
        "created_at": now,
    }
    if state not in (TaskState.PENDING, TaskState.EXECUTING):
        values["finished_at"] = now
    if state == TaskState.DEAD:
        values["reason"] = "5 attempts failed"
    return ScrapeTask.objects.create(**values | fields)
