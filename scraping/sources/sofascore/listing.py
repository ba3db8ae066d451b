"""The list of matches: those being played and the day's schedule, as the home page asks for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scraping.errors import LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport, Team
from scraping.sources import parsing
from scraping.sources.base import Document, Endpoint, Reading
from scraping.sources.sofascore import schemas, status
from scraping.sources.sofascore.addresses import url_of
from scraping.sources.sofascore.answers import body_of
from scraping.sources.sofascore.event import series_of, sport_of, team_of, title_of


def endpoints(sport: Sport) -> tuple[Endpoint, ...]:
    return (
        Endpoint("live_list", re.compile(rf"/api/v1/sport/{sport.value}/events/live(?:\?|$)")),
        Endpoint("scheduled", re.compile(r"/api/v1/\S*/scheduled-events/\d{4}-\d{2}-\d{2}(?:\?|$)"), is_required=False),
    )


def matches_of(reading: Reading, base_url: str, sport: Sport) -> list[DiscoveredMatch]:
    """Both lists, each match once. LayoutChanged where neither can be found."""
    found: dict[str, DiscoveredMatch] = {}
    lists = [listed for name in ("live_list", "scheduled") if (listed := _events(reading.document(name))) is not None]
    for event in (event for listed in lists for event in listed):
        match = match_of(event, base_url, sport)
        if match is not None:
            found.setdefault(match.source_event_id, match)
    if not lists:
        page = reading.document("page")
        html = page.text() if page else ""
        parsing.raise_if_challenge(html, base_url)
        raise LayoutChanged(
            "no list of matches found; tried live_list, scheduled", url=base_url, evidence=html[:20_000]
        )
    return list(found.values())


def _events(document: Document | None) -> list[Mapping[str, Any]] | None:
    """A list's events; None where it is absent. The schedule's address has moved before, so its absence is no break."""
    if document is None or document.status >= 400:
        return None
    return schemas.listed(body_of(document), url=document.url)


def match_of(event: Mapping[str, Any], base_url: str, sport: Sport) -> DiscoveredMatch | None:
    """A row of the list; None for another sport and for one that cannot be watched."""
    match_id = parsing.integer(event.get("id"))
    if match_id is None or sport_of(event) not in (sport.value, ""):
        return None
    try:
        judged, _ = status.by_type(parsing.mapping(event.get("status")))
    except (PayloadRejected, SchemaBreak):
        return None  # one odd row must not hide the others
    return DiscoveredMatch(
        source_event_id=str(match_id),
        url=url_of(event, base_url, sport),
        title=title_of(event),
        sport=sport,
        status=judged,
        start_time=parsing.moment(event.get("startTimestamp")),
        teams=_teams(event),
        series=series_of(event, sport),
    )


def _teams(event: Mapping[str, Any]) -> tuple[Team, ...]:
    """Both, or none where one of them has no name."""
    try:
        return team_of(event, "homeTeam"), team_of(event, "awayTeam")
    except SchemaBreak:
        return ()
