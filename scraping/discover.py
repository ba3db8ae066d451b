"""A source's list of matches becomes rows: one match and one reference each, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from scraping import errors_log
from scraping.errors import PayloadRejected
from scraping.lifecycle import priority_of
from scraping.models import Match, MatchRef, Source
from scraping.payloads import DiscoveredMatch
from victoryline.lib.crash import crash_point


def register(source: Source, found: Sequence[DiscoveredMatch], *, now: datetime) -> int:
    """Write the matches that are new. Runs inside the transaction that finishes the discovery task."""
    # A list may link anywhere; only the source's own pages are ever visited.
    new = _write_new(source, (match for match in found if _is_own(source, match)), first_poll_at=now, now=now)
    Source.objects.filter(pk=source.pk).update(last_discovery_at=now)
    errors_log.resolve_listing(source.pk, now=now)
    return new


def refs_of(source: Source, found: Sequence[DiscoveredMatch], *, now: datetime) -> list[MatchRef]:
    """The references of these matches, made where there are none. What a job expects, so none may be left out.

    A new one is first read by the job's task; the watch follows from there.
    """
    strange = [match.url for match in found if not _is_own(source, match)]
    if strange:
        raise PayloadRejected(f"{len(strange)} of {len(found)} matches are not at {source.base_url}: {strange[0]}")
    _write_new(source, found, first_poll_at=None, now=now)
    keys = [match.source_event_id for match in found]
    refs = MatchRef.objects.filter(source=source, source_event_id__in=keys)
    return list(refs.select_related("match", "source").order_by("pk"))


def _is_own(source: Source, match: DiscoveredMatch) -> bool:
    return urlsplit(match.url).netloc == urlsplit(source.base_url).netloc


def _write_new(
    source: Source, found: Iterable[DiscoveredMatch], *, first_poll_at: datetime | None, now: datetime
) -> int:
    unique = {match.source_event_id: match for match in found}
    refs = MatchRef.objects.filter(source=source, source_event_id__in=list(unique))
    known = set(refs.values_list("source_event_id", flat=True))
    return sum(
        _write(source, match, first_poll_at=first_poll_at, now=now)
        for key, match in sorted(unique.items())
        if key not in known
    )


def _write(source: Source, found: DiscoveredMatch, *, first_poll_at: datetime | None, now: datetime) -> bool:
    """False where another list or job has just written it."""
    try:
        with transaction.atomic():
            match = Match.objects.create(
                sport=found.sport.value,
                title=found.title,
                status=found.status.value,
                start_time=found.start_time,
                priority=priority_of(found.status, found.start_time, now),
                created_at=now,
            )
            crash_point("discover.match")
            MatchRef.objects.create(
                source=source,
                match=match,
                source_event_id=found.source_event_id,
                url=found.url,
                next_poll_at=first_poll_at,
                created_at=now,
            )
    except IntegrityError:
        return False
    return True
