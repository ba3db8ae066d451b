"""Starts jobs: the request is validated as a whole, then written in one transaction.

The same request sent twice is one job: by its idempotency key, or while the first one is open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from scraping import journal
from scraping.jobs.lifecycle import KeyReused, Refused, expect
from scraping.models import JobKind, MatchRef, Priority, ScrapeJob, Source
from scraping.payloads import DiscoveredMatch, Resource
from scraping.sources import ADAPTERS, adapter_for
from victoryline.lib.crash import crash_point

MAX_URLS = 500
MAX_NUMBER = 10**12
REQUESTER_LENGTH = 150
MAX_URL_LENGTH = MatchRef._meta.get_field("url").max_length or 500  # noqa: SLF001 - Django's documented way to a field
SHOWN_LENGTH = 200
MAX_REASONS = 50

Begin = Callable[[ScrapeJob], None]
Found = dict[Source, list[DiscoveredMatch]]


@dataclass(frozen=True)
class Started:
    """The job, and whether it is new or was there already."""

    job: ScrapeJob
    is_new: bool


@dataclass(frozen=True)
class _Request:
    """A job as it was requested."""

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
    """Starts a round. A task reads the list of its matches; with `matches`, exactly so many must be found.

    While the same round is open, that job is returned instead.
    """
    source = _source(source_key)
    numbers = _round(source, asked)
    parameters = {"round": numbers, **({"matches": matches} if matches is not None else {})}
    name = f"{source.name}: {', '.join(f'{field} {number}' for field, number in numbers.items())}"
    request = _Request(
        JobKind.ROUND, name[:200], parameters, [source], requested_by, _unique_key(requested_by, idempotency_key)
    )

    def begin(job: ScrapeJob) -> None:
        journal.open_tasks(
            [journal.NewTask(source.pk, None, Resource.ROUND, Priority.IMMINENT, run_at=now, job_id=job.pk)], now=now
        )

    return _start(request, begin, now=now)


def start_urls(*, urls: Iterable[str], requested_by: str, now: datetime, idempotency_key: str = "") -> Started:
    """Starts a list of matches by their addresses. The expected matches are written at once."""
    given = [url for url in urls if url.strip()]
    if not 1 <= len(given) <= MAX_URLS:
        raise Refused("urls", f"give from 1 to {MAX_URLS} addresses; these are {len(given)}")
    found = _matches_at(given)
    listed = sorted(match.url for matches in found.values() for match in matches)
    name = f"{len(listed)} {'match' if len(listed) == 1 else 'matches'} by address"
    request = _Request(
        JobKind.URLS, name, {"urls": listed}, list(found), requested_by, _unique_key(requested_by, idempotency_key)
    )
    return _start(request, lambda job: _now_expects(job, found, now), now=now)


def _matches_at(urls: Iterable[str]) -> Found:
    """Returns the matches at the addresses, each once, by source. Refused names every address that is invalid."""
    sources = [source for source in Source.objects.all() if source.adapter_key in ADAPTERS]
    found: Found = {}
    bad: list[str] = []
    for url in dict.fromkeys(url.strip() for url in urls):
        try:
            source, match = _match_at(url, sources)
        except ValueError as reason:
            bad.append(f"{url[:SHOWN_LENGTH]}: {reason}")
            continue
        listed = found.setdefault(source, [])
        if match.source_event_id not in {one.source_event_id for one in listed}:
            listed.append(match)
    if bad:
        more = [f"and {len(bad) - MAX_REASONS} more"] if len(bad) > MAX_REASONS else []
        raise Refused("urls", *bad[:MAX_REASONS], *more)
    return dict(sorted(found.items(), key=lambda item: item[0].pk))


def _match_at(url: str, sources: Sequence[Source]) -> tuple[Source, DiscoveredMatch]:
    """Returns the match and its source; ValueError with the reason."""
    if not url.isprintable() or not 1 <= len(url) <= MAX_URL_LENGTH:
        raise ValueError(f"an address has from 1 to {MAX_URL_LENGTH} characters, all of them printable")
    source = next((one for one in sources if _is_at(url, one.base_url)), None)
    if source is None:
        known = ", ".join(sorted(one.base_url for one in sources)) or "none yet: run manage.py sync_sources"
        raise ValueError(f"it is at none of our sources ({known})")
    if not source.is_enabled:
        raise ValueError(f"{source.name} is switched off; switch it on in the admin first")
    adapter = adapter_for(source.adapter_key)
    match = adapter.match_at(url, source.base_url)
    if match is None or len(match.url) > MAX_URL_LENGTH:
        raise ValueError(f"it is not the address of a match; those look like {adapter.address_example}")
    return source, match


def _is_at(url: str, base_url: str) -> bool:
    """Scheme, host, port and folder must be the source's own: nothing else is ever visited."""
    try:
        given, base = urlsplit(url), urlsplit(base_url.rstrip("/"))
    except ValueError:  # such as http://[
        return False
    return (given.scheme, given.netloc) == (base.scheme, base.netloc) and given.path.startswith(f"{base.path}/")


def _now_expects(job: ScrapeJob, found: Found, now: datetime) -> None:
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
    """Keys belong to their sender: two senders may use the same one."""
    return hashlib.sha256(f"{requested_by}\n{key}".encode()).hexdigest() if key else None


def _start(request: _Request, begin: Begin, *, now: datetime) -> Started:
    try:
        with transaction.atomic():
            return _start_once(request, begin, now)
    except IntegrityError:  # the same key, sent at the same moment for another source: its job exists now
        job = _with_key(request)
        if job is None:
            raise
        return Started(job, is_new=False)


def _start_once(request: _Request, begin: Begin, now: datetime) -> Started:
    # One request at a source at a time, so that two equal requests find each other's job.
    ids = [source.pk for source in request.sources]
    list(Source.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").values_list("pk"))
    job = _with_key(request) or _still_open(request)
    if job is not None:
        return Started(job, is_new=False)
    job = ScrapeJob.objects.create(
        kind=request.kind,
        name=request.name,
        source=request.source,
        requested_by=request.requested_by[:REQUESTER_LENGTH],
        idempotency_key=request.key,
        parameters=request.parameters,
        created_at=now,
    )
    crash_point("job.created")
    begin(job)
    crash_point("job.begun")
    return Started(job, is_new=True)


def _with_key(request: _Request) -> ScrapeJob | None:
    job = ScrapeJob.objects.filter(idempotency_key=request.key).first() if request.key else None
    if job is not None and not request.is_for(job):
        raise KeyReused(job.pk)
    return job


def _still_open(request: _Request) -> ScrapeJob | None:
    jobs = ScrapeJob.objects.filter(kind=request.kind, source=request.source, finished_at__isnull=True).order_by("-pk")
    return next((job for job in jobs if request.is_for(job)), None)
