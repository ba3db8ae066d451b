"""Writes a source's list of matches: a ref each, once, to a match that is known from other sources or a new one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from scraping.errors import PayloadRejected
from scraping.journal import error_log
from scraping.matches import importance, pairing, poll_times, watches
from scraping.matches.lifecycle import priority_of
from scraping.models import Match, MatchRef, Source
from scraping.payloads import DiscoveredMatch
from victoryline.lib.crash import crash_point

logger = logging.getLogger(__name__)


def register(
    source: Source, found: Sequence[DiscoveredMatch], *, now: datetime, fixtures_at: datetime | None = None
) -> int:
    """Writes the matches that are new. Runs inside the transaction that finishes the discovery task.

    Of a match that is listed twice the later row counts. `fixtures_at`: when its fixtures count as read.
    """
    # A list may link anywhere; only the source's own pages are ever visited.
    new = _write_new(source, (match for match in found if _is_own(source, match)), first_poll_at=now, now=now)
    times = {"last_discovery_at": now} | ({"last_fixtures_at": fixtures_at} if fixtures_at else {})
    Source.objects.filter(pk=source.pk).update(**times)
    error_log.resolve_listing(source.pk, now=now)
    return new


def refs_of(source: Source, found: Sequence[DiscoveredMatch], *, now: datetime) -> list[MatchRef]:
    """Returns the refs of the matches that a job expects, all of them; makes those that are missing."""
    foreign = [match.url for match in found if not _is_own(source, match)]
    if foreign:
        raise PayloadRejected(f"{len(foreign)} of {len(found)} matches are not at {source.base_url}: {foreign[0]}")
    _write_new(source, found, first_poll_at=None, now=now)
    keys = [match.source_event_id for match in found]
    refs = MatchRef.objects.filter(source=source, source_event_id__in=keys)
    never_read = refs.filter(captured_at=None, is_watched=False, watch_at=None, gone_at__isnull=False)
    never_read.update(**poll_times.first_poll(source, None))  # see `late_updates.close_removed`
    return list(refs.select_related("match", "source").order_by("pk"))


def _is_own(source: Source, match: DiscoveredMatch) -> bool:
    return urlsplit(match.url).netloc == urlsplit(source.base_url).netloc


def _write_new(
    source: Source, found: Iterable[DiscoveredMatch], *, first_poll_at: datetime | None, now: datetime
) -> int:
    unique = {match.source_event_id: match for match in found}
    refs = MatchRef.objects.filter(source=source, source_event_id__in=list(unique))
    known = set(refs.values_list("source_event_id", flat=True))
    new = [match for key, match in sorted(unique.items()) if key not in known]
    finders = {sport: pairing.Finder(source, sport.value, now=now) for sport in {match.sport for match in new}}
    placed = [(match, finders[match.sport].find(match)) for match in new]
    # Known matches first, in one order: their rows are locked while a ref is added.
    placed.sort(key=lambda pair: (pair[1][0] is None, pair[1][0] or 0))
    shortage = watches.memory_shortage(now) if placed else ""
    first_poll = poll_times.first_poll(source, first_poll_at, waits_from=now if shortage else None)
    written = sum(_write(source, match, place, first_poll, now) for match, place in placed)
    if shortage and written:
        logger.warning(
            "%d new matches of %s wait until there is memory to watch them: %s",
            *(written, source.key, shortage),
            extra={"action": "watches_put_off", "source": source.key, "waiting": written},
        )
    return written


def _write(
    source: Source, found: DiscoveredMatch, place: pairing.Place, first_poll: Mapping[str, Any], now: datetime
) -> bool:
    """Returns False where another list or job has just written it."""
    known_id, is_crossed = place
    try:
        with transaction.atomic():
            match_id = _still_free(known_id, source) or _new_match(found, now)
            crash_point("discover.match")
            MatchRef.objects.create(
                source=source,
                match_id=match_id,
                source_event_id=found.source_event_id,
                url=found.url,
                is_crossed=is_crossed and match_id == known_id,
                created_at=now,
                **first_poll,
            )
    except IntegrityError:
        return False
    return True


def _still_free(match_id: int | None, source: Source) -> int | None:
    """Returns the match, locked, if it has not been merged meanwhile and has no ref of this source."""
    if match_id is None:
        return None
    free = Match.objects.select_for_update().filter(pk=match_id, merged_into=None).values_list("pk", flat=True)
    if not list(free) or MatchRef.objects.filter(match=match_id, source=source).exists():
        return None  # it becomes a new match; the sweep that follows compares it again
    return match_id


def _new_match(found: DiscoveredMatch, now: datetime) -> int:
    names = [team.name for team in found.teams] if len(found.teams) == 2 else ["", ""]
    match = Match(
        sport=found.sport.value,
        title=found.title or " vs ".join(filter(None, names)),
        status=found.status.value,
        start_time=found.start_time,
        team_a=names[0],
        team_b=names[1],
        series=found.series[:200],
        priority=priority_of(found.status, found.start_time, now),
        created_at=now,
    )
    importance.apply_rules(match)
    match.save()
    return match.pk
