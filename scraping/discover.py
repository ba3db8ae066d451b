"""A source's list of matches becomes rows: one match and one reference each, once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

from scraping.lifecycle import priority_of
from scraping.models import Match, MatchRef, Source
from scraping.payloads import DiscoveredMatch


def register(source: Source, found: Sequence[DiscoveredMatch], *, now: datetime) -> int:
    """Write the matches that are new. Runs inside the transaction that finishes the discovery task."""
    home = urlsplit(source.base_url).netloc
    # A list may link anywhere; only the source's own pages are ever visited.
    unique = {match.source_event_id: match for match in found if urlsplit(match.url).netloc == home}
    known = set(
        MatchRef.objects.filter(source=source, source_event_id__in=list(unique)).values_list(
            "source_event_id", flat=True
        )
    )
    new = [match for key, match in unique.items() if key not in known]
    for one in new:
        match = Match.objects.create(
            sport=one.sport.value,
            title=one.title,
            status=one.status.value,
            start_time=one.start_time,
            priority=priority_of(one.status, one.start_time, now),
            created_at=now,
        )
        MatchRef.objects.create(
            source=source,
            match=match,
            source_event_id=one.source_event_id,
            url=one.url,
            next_poll_at=now,
            created_at=now,
        )
    Source.objects.filter(pk=source.pk).update(last_discovery_at=now)
    return len(new)
