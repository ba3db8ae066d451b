"""The list of matches: those being played and the day's schedule, as the home page asks for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scraping.errors import LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport
from scraping.sources import challenge, loose
from scraping.sources.base import Document, Endpoint, Reading
from scraping.sources.sofascore import status
from scraping.sources.sofascore.event import sport_of, title_of

ENDPOINTS = (
    Endpoint("live_list", re.compile(r"/api/v1/sport/football/events/live(?:\?|$)")),
    Endpoint("scheduled", re.compile(r"/api/v1/\S*/scheduled-events/\d{4}-\d{2}-\d{2}(?:\?|$)"), is_required=False),
)


def answer_of(document: Document) -> Mapping[str, Any]:
    """The body, with challenges and errors told apart from drift."""
    try:
        data = document.json()
    except SchemaBreak:
        challenge.raise_if_challenge(document.text(), document.url)
        raise
    challenge.raise_if_error_body(data, document.url)
    return loose.mapping(data)


def matches_of(reading: Reading, base_url: str) -> list[DiscoveredMatch]:
    """Both lists, each match once. LayoutChanged where neither can be found."""
    found: dict[str, DiscoveredMatch] = {}
    lists = [listed for name in ("live_list", "scheduled") if (listed := _events(reading.document(name))) is not None]
    for event in (event for listed in lists for event in listed):
        match = match_of(event, base_url)
        if match is not None:
            found.setdefault(match.source_event_id, match)
    if not lists:
        page = reading.document("page")
        html = page.text() if page else ""
        challenge.raise_if_challenge(html, base_url)
        raise LayoutChanged(
            "no list of matches found; tried live_list, scheduled", url=base_url, evidence=html[:20_000]
        )
    return list(found.values())


def match_url(event: Mapping[str, Any], base_url: str) -> str:
    slug, custom = loose.text(event.get("slug"), 200), loose.text(event.get("customId"), 40)
    return f"{base_url.rstrip('/')}/en/football/match/{slug}/{custom}#id:{loose.text(event.get('id'), 40)}"


def _events(document: Document | None) -> list[Mapping[str, Any]] | None:
    """A list's events; None where it is absent. The schedule's address has moved before, so its absence is no break."""
    if document is None or document.status >= 400:
        return None
    listed = answer_of(document).get("events")
    if not isinstance(listed, list):
        raise SchemaBreak(f"{document.name} has no list of events", url=document.url, evidence=document.text()[:2000])
    return loose.rows(listed)


def match_of(event: Mapping[str, Any], base_url: str) -> DiscoveredMatch | None:
    """A row of the list; None for another sport and for one that cannot be watched."""
    match_id = loose.integer(event.get("id"))
    if match_id is None or sport_of(event) not in ("football", ""):
        return None
    try:
        judged, _ = status.judge(loose.mapping(event.get("status")))
    except (PayloadRejected, SchemaBreak):
        return None  # one odd row must not hide the others
    return DiscoveredMatch(
        source_event_id=str(match_id),
        url=match_url(event, base_url),
        title=title_of(event),
        sport=Sport.FOOTBALL,
        status=judged,
        start_time=loose.moment(event.get("startTimestamp")),
    )
