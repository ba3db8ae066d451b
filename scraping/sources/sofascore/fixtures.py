"""The matches of a day. The list of a sport's whole day is gone; each tournament's own is there, under its number."""

from __future__ import annotations

from datetime import date

from scraping.errors import SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport
from scraping.sources.base import ListPlan, Reading, Request
from scraping.sources.sofascore import listing, schemas
from scraping.sources.sofascore.answers import body_of

TOURNAMENT = 325  # Brasileirão Série A


def plan(base_url: str, day: date) -> ListPlan:
    """The home page earns the session; the day's list is asked for directly, since the page shows only today's."""
    home = f"{base_url.rstrip('/')}/"
    url = f"{home}api/v1/unique-tournament/{TOURNAMENT}/scheduled-events/{day.isoformat()}"
    request = Request("fixtures", url, headers={"accept": "*/*", "referer": home})
    return ListPlan(url=home, endpoints=listing.endpoints(Sport.FOOTBALL), requests=(request,))


def matches_of(reading: Reading, base_url: str) -> list[DiscoveredMatch]:
    """The day's matches, each once. A postponed match stays on the list of its old day, too."""
    document = reading.document("fixtures")
    if document is None:
        raise SchemaBreak(f"{schemas.LIST}: the day's list gave no answer", url=reading.ref.url)
    found: dict[str, DiscoveredMatch] = {}
    for row in schemas.listed(body_of(document), url=document.url):
        match = listing.match_of(row, base_url, Sport.FOOTBALL)
        if match is not None:
            found.setdefault(match.source_event_id, match)
    return list(found.values())
