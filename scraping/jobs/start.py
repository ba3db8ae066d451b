"""Starts jobs: the request is validated as a whole, then written in one transaction.

The same request sent twice is one job: by its idempotency key, or while the first one is open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from django.db import IntegrityError, transaction

from scraping import journal
from scraping.jobs.lifecycle import KeyReused, Refused, expect
from scraping.matches import watches
from scraping.models import JobKind, MatchRef, Priority, ScrapeJob, Source
from scraping.payloads import DiscoveredMatch, Resource
from scraping.sources import ADAPTERS, adapter_for
from victoryline.lib.crash import crash_point

MAX_URLS = 500
MAX_NUMBER = 10**12
MAX_URL_LENGTH = MatchRef._meta.get_field("url").max_length or 500  # noqa: SLF001 - Django's documented way to a field
SHOWN_LENGTH = 200
MAX_REASONS = 50

Begin = Callable[[ScrapeJob], None]
Found = dict[Source, list[DiscoveredMatch]]


@dataclass(frozen=True)
class Started:
    job: ScrapeJob
    is_new: bool
    shortage: str = ""  # of memory: why a new job waits; it begins by itself when there is room


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
    name = f"{source.name}: {', '.join(f'{field} {number}' for field, number in numbers.items())}"[:200]
    job = ScrapeJob(kind=JobKind.ROUND, name=name, parameters=parameters, requested_by=requested_by, created_at=now)

    def begin(job: ScrapeJob) -> None:
        new = journal.NewTask(source.pk, None, Resource.ROUND, Priority.IMMINENT, run_at=now, job_id=job.pk)
        journal.open_tasks([new], now=now)

    return _start(job, [source], idempotency_key, begin)


def start_urls(*, urls: Iterable[str], requested_by: str, now: datetime, idempotency_key: str = "") -> Started:
    """Starts a list of matches by their addresses. The expected matches are written at once."""
    given = [url for url in urls if url.strip()]
    if not 1 <= len(given) <= MAX_URLS:
        raise Refused("urls", f"give from 1 to {MAX_URLS} addresses; these are {len(given)}")
    found = _matches_at(given)
    parameters = {"urls": sorted(match.url for matches in found.values() for match in matches)}
    number = len(parameters["urls"])
    name = f"{number} {'match' if number == 1 else 'matches'} by address"
    job = ScrapeJob(kind=JobKind.URLS, name=name, parameters=parameters, requested_by=requested_by, created_at=now)

    def begin(job: ScrapeJob) -> None:
        expect(job.pk, found, now=now)
        job.refresh_from_db()

    return _start(job, list(found), idempotency_key, begin)


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
    if not url.isprintable() or not 1 <= len(url) <= MAX_URL_LENGTH:
        raise ValueError(f"an address has from 1 to {MAX_URL_LENGTH} characters, all of them printable")
    if _climbs(url):
        raise ValueError("its path has '.' or '..' in it; give the address as the site itself links it")
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


def _climbs(url: str) -> bool:
    """Returns whether a path segment is "." or "..", also percent-encoded: such an address leads elsewhere."""
    path = unquote(url.partition("?")[0].partition("#")[0]).replace("\\", "/")
    return not {".", ".."}.isdisjoint(path.split("/"))


def _source(key: str) -> Source:
    readable = {source.key: source for source in Source.objects.all() if source.adapter_key in ADAPTERS}
    if key not in readable:
        known = ", ".join(readable)
        raise Refused("source", f"there is no source {key[:40]!r}; there are: {known or 'none, run sync_sources'}")
    if not readable[key].is_enabled:
        raise Refused("source", f"{readable[key].name} is switched off; switch it on in the admin first")
    return readable[key]


def _round(source: Source, asked: Mapping[str, Any]) -> dict[str, int]:
    fields = adapter_for(source.adapter_key).round_fields
    if not fields:
        raise Refused("round", f"{source.name} has no rounds; start its matches by their addresses instead")
    wrong = [f"{name} is missing" for name in fields if name not in asked]
    wrong += [f"{str(name)[:40]} is not part of it" for name in asked if name not in fields]
    numbers = {name: asked[name] for name in fields if name in asked}
    wrong += [
        f"{name} must be a whole number from 1 up"
        for name, value in numbers.items()
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_NUMBER
    ]
    if wrong:
        raise Refused("round", *wrong, f"a round of {source.name} is named by {', '.join(fields)}")
    return numbers


def _start(job: ScrapeJob, sources: Sequence[Source], key: str, begin: Begin) -> Started:
    """Writes the job, unless there is one with its key, or an open one for the same."""
    job.source = sources[0] if len(sources) == 1 else None
    if key:  # keys belong to their sender: two senders may use the same one
        job.idempotency_key = hashlib.sha256(f"{job.requested_by}\n{key}".encode()).hexdigest()
    job.requested_by = job.requested_by[:150]
    try:
        with transaction.atomic():
            # One request at a source at a time, so that two equal requests find each other's job.
            rows = Source.objects.select_for_update(no_key=True).filter(pk__in=[source.pk for source in sources])
            list(rows.order_by("pk").values_list("pk"))
            found = _with_key(job) or _still_open(job)
            if found is not None:
                return Started(found, is_new=False)
            job.save()
            crash_point("job.created")
            begin(job)
            crash_point("job.begun")
    except IntegrityError:  # the same key, sent at the same moment for another source: its job exists now
        found = _with_key(job)
        if found is None:
            raise
        return Started(found, is_new=False)
    return Started(
        job, is_new=True, shortage=watches.memory_shortage(job.created_at) if job.finished_at is None else ""
    )


def _with_key(job: ScrapeJob) -> ScrapeJob | None:
    found = ScrapeJob.objects.filter(idempotency_key=job.idempotency_key).first() if job.idempotency_key else None
    if found is not None and not _is_same(found, job):
        raise KeyReused(found.pk)
    return found


def _still_open(job: ScrapeJob) -> ScrapeJob | None:
    jobs = ScrapeJob.objects.filter(kind=job.kind, source=job.source, finished_at__isnull=True).order_by("-pk")
    return next((one for one in jobs if _is_same(one, job)), None)


def _is_same(one: ScrapeJob, other: ScrapeJob) -> bool:
    return (one.kind, one.source_id, one.parameters) == (other.kind, other.source_id, other.parameters)
