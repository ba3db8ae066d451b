"""Starting a job: checked whole, then written in one transaction. The same job asked for twice is one job."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from scraping import journal
from scraping.jobs import addresses
from scraping.jobs.expecting import expect
from scraping.jobs.refusal import KeyReused, Refused
from scraping.models import JobKind, Priority, ScrapeJob, Source
from scraping.payloads import Resource
from scraping.sources import ADAPTERS, adapter_for
from victoryline.lib.crash import crash_point

MAX_URLS = 500
MAX_NUMBER = 10**12
REQUESTER_LENGTH = 150

Begin = Callable[[ScrapeJob], None]


@dataclass(frozen=True)
class Started:
    """The job, and whether it was started now or is one that was there already."""

    job: ScrapeJob
    is_new: bool


@dataclass(frozen=True)
class _Order:
    """A job as it was asked for."""

    kind: JobKind
    name: str
    parameters: dict[str, Any]
    sources: Sequence[Source]
    requested_by: str
    key: str | None

    @property
    def source(self) -> Source | None:
        return self.sources[0] if len(self.sources) == 1 else None

    def is_for(self, job: ScrapeJob) -> bool:
        return (job.kind, job.source_id, job.parameters) == (
            self.kind, self.source.pk if self.source else None, self.parameters
        )  # fmt: skip


def start_round(
    *,
    source_key: str,
    asked: Mapping[str, Any],
    requested_by: str,
    now: datetime,
    matches: int | None = None,
    idempotency_key: str = "",
) -> Started:
    """Start a round. Its matches are looked up by a task; with `matches`, exactly so many must be found.

    While the same round is open it is given back instead of being started again.
    """
    source = _source(source_key)
    numbers = _round(source, asked)
    parameters = {"round": numbers, **({"matches": matches} if matches is not None else {})}
    name = f"{source.name}: {', '.join(f'{field} {number}' for field, number in numbers.items())}"
    order = _Order(
        JobKind.ROUND, name[:200], parameters, [source], requested_by, _unique_key(requested_by, idempotency_key)
    )

    def begin(job: ScrapeJob) -> None:
        journal.open_tasks(
            [journal.NewTask(source.pk, None, Resource.ROUND, Priority.IMMINENT, run_at=now, job_id=job.pk)], now=now
        )

    return _start(order, begin, now=now)


def start_urls(*, urls: Iterable[str], requested_by: str, now: datetime, idempotency_key: str = "") -> Started:
    """Start a list of matches, by their addresses. What is expected is written down at once."""
    given = [url for url in urls if url.strip()]
    if not 1 <= len(given) <= MAX_URLS:
        raise Refused("urls", f"give from 1 to {MAX_URLS} addresses; these are {len(given)}")
    found = addresses.recognise(given)
    listed = sorted(match.url for matches in found.values() for match in matches)
    name = f"{len(listed)} {'match' if len(listed) == 1 else 'matches'} by address"
    order = _Order(
        JobKind.URLS, name, {"urls": listed}, list(found), requested_by, _unique_key(requested_by, idempotency_key)
    )
    return _start(order, lambda job: _now_expects(job, found, now), now=now)


def _now_expects(job: ScrapeJob, found: addresses.Found, now: datetime) -> None:
    expect(job.pk, found, now=now)
    job.refresh_from_db()


def _source(key: str) -> Source:
    readable = {source.key: source for source in Source.objects.all() if source.adapter_key in ADAPTERS}
    source = readable.get(key)
    if source is None:
        known = ", ".join(readable)
        raise Refused("source", f"there is no source {key[:40]!r}; there are: {known or 'none, run sync_sources'}")
    if not source.is_enabled:
        raise Refused("source", f"{source.name} is switched off; switch it on in the admin first")
    return source


def _round(source: Source, asked: Mapping[str, Any]) -> dict[str, int]:
    fields = adapter_for(source.adapter_key).round_fields
    if not fields:
        raise Refused("round", f"{source.name} has no rounds; start its matches by their addresses instead")
    wrong = [f"{name} is missing" for name in fields if name not in asked]
    wrong += [f"{str(name)[:40]} is not part of it" for name in asked if name not in fields]
    wrong += [f"{name} must be a whole number from 1 up" for name in fields if not _is_number(asked.get(name, 1))]
    if wrong:
        raise Refused("round", *wrong, f"a round of {source.name} is named by {', '.join(fields)}")
    return {name: int(asked[name]) for name in fields}


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_NUMBER


def _unique_key(requested_by: str, key: str) -> str | None:
    """Keys are their sender's own: two senders may use the same one."""
    return hashlib.sha256(f"{requested_by}\n{key}".encode()).hexdigest() if key else None


def _start(order: _Order, begin: Begin, *, now: datetime) -> Started:
    try:
        with transaction.atomic():
            return _start_once(order, begin, now)
    except IntegrityError:  # the same key, sent at the same moment for another source: its job is there now
        job = _with_key(order)
        if job is None:
            raise
        return Started(job, is_new=False)


def _start_once(order: _Order, begin: Begin, now: datetime) -> Started:
    # Whoever starts jobs at a source waits here for one another, so that two equal requests find each other's job.
    ids = [source.pk for source in order.sources]
    list(Source.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").values_list("pk"))
    job = _with_key(order) or _still_open(order)
    if job is not None:
        return Started(job, is_new=False)
    job = ScrapeJob.objects.create(
        kind=order.kind,
        name=order.name,
        source=order.source,
        requested_by=order.requested_by[:REQUESTER_LENGTH],
        idempotency_key=order.key,
        parameters=order.parameters,
        created_at=now,
    )
    crash_point("job.created")
    begin(job)
    crash_point("job.begun")
    return Started(job, is_new=True)


def _with_key(order: _Order) -> ScrapeJob | None:
    job = ScrapeJob.objects.filter(idempotency_key=order.key).first() if order.key else None
    if job is not None and not order.is_for(job):
        raise KeyReused(job.pk)
    return job


def _still_open(order: _Order) -> ScrapeJob | None:
    jobs = ScrapeJob.objects.filter(kind=order.kind, source=order.source, finished_at__isnull=True).order_by("-pk")
    return next((job for job in jobs if order.is_for(job)), None)
