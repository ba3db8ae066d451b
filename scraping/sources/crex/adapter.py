"""How a Crex match is read: the live answer first, then the copy of it in the page, then the page as it is drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from urllib.parse import quote

import orjson

from scraping.errors import LayoutChanged
from scraping.payloads import DiscoveredMatch, Figures, Lineups, Payload, Sport
from scraping.readings import JSON_TYPES
from scraping.sources import parsing
from scraping.sources.base import Endpoint, ListPlan, Reading, ReadMode, RefInfo, Request
from scraping.sources.crex import addresses, feed, fixtures, listing, people, schemas, ways
from scraping.sources.crex.compose import SOURCE
from scraping.sources.layout import Layout

# The old PHP endpoints call their JSON HTML, or plain text; a challenge in its place is told apart when it is read.
_TYPES = (*sorted(JSON_TYPES), "text/html", "text/plain")
_LIST = Endpoint("list", re.compile(r"/(?:getLiveMatches|liveMatches2(?:\.php)?)(?:\?|$)"), content_types=_TYPES)


class CrexAdapter:
    """Crex, as crex.com was in 2024 to 2026."""

    key = SOURCE
    sport = Sport.CRICKET
    payload_schema = schemas.LIVE
    lineup_schema = schemas.SQUADS
    figure_schema = schemas.SCORECARD
    events_endpoint = "feed"
    round_fields: tuple[str, ...] = ()  # a series here is a list of matches without rounds
    address_example = addresses.EXAMPLE
    layout: Layout | None = None
    list_layout: Layout | None = None
    prefers_attached = False

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        key = rf"\?(?:.*&)?key={re.escape(ref.source_event_id)}(?:&|$)"
        return (
            Endpoint("live", re.compile(rf"/(?:getSV3|sV3\.php){key}"), content_types=_TYPES),
            Endpoint("feed", re.compile(r"/getBallFeeds(?:\?|$)"), is_required=False, method="POST"),
            Endpoint("mapping", re.compile(r"/getHomeMapData\w*(?:\?|$)"), is_required=False, method="POST"),
            Endpoint("scorecard", re.compile(rf"/(?:getSC4|sC4\.php){key}"), is_required=False, content_types=_TYPES),
        )

    def parse(self, reading: Reading) -> Payload:
        with parsing.rejecting_invalid_values(reading.ref.url), parsing.collecting_unrecognized() as words:
            payload = _parsed(reading)
            return payload.model_copy(update={"unknown": tuple(words)}) if words else payload

    def public_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        """Score and standing; its members' site asks a token for the rest."""
        key = quote(ref.source_event_id, safe="")
        return (Request(ways.PUBLIC, f"{base_url.rstrip('/')}/api/v3/public/getSV3?key={key}"),)

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        items = ways.items_of(reading)
        if not items or feed.reaches_the_first_ball(items):
            return None
        asked = _asked(request)
        body = {"matchKey": reading.ref.source_event_id, "filters": [], "lang": "en", **asked}
        body["lastDocId"] = feed.oldest_id(items)
        if asked.get("lastDocId") == body["lastDocId"]:
            return None  # the source answers with the same page again
        return replace(request, body=orjson.dumps(body))

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(url=f"{base_url.rstrip('/')}/cricket-live-score", endpoints=(_LIST,))

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.matches_of(reading, base_url)

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return people.requests(ref, base_url, people.SQUADS)

    def parse_lineups(self, reading: Reading) -> Lineups:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return people.lineups(reading)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return people.requests(ref, base_url, people.SCORECARD)

    def parse_figures(self, reading: Reading) -> Figures:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return people.figures(reading)

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        return fixtures.plan(base_url)

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return fixtures.matches_of(reading, base_url, day)

    def round_plan(self, base_url: str, asked: Mapping[str, int]) -> ListPlan:
        raise LayoutChanged("Crex has no rounds")

    def parse_round(self, reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
        raise LayoutChanged("Crex has no rounds")

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        return addresses.match_at(url, base_url)


def _parsed(reading: Reading) -> Payload:
    if reading.mode is not ReadMode.DIRECT:
        return ways.visited(reading)
    return ways.from_public(reading) if reading.document(ways.PUBLIC) else ways.from_live(reading)


def _asked(request: Request) -> dict[str, object]:
    try:
        body = orjson.loads(request.body or b"")
    except orjson.JSONDecodeError:
        return {}
    return body if isinstance(body, dict) else {}
