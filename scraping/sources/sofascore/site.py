"""What Sofascore's football and its cricket have in common: one site, the same envelopes."""

from __future__ import annotations

import re

from scraping.payloads import DiscoveredMatch, Lineups, Sport
from scraping.sources import parsing
from scraping.sources.base import Endpoint, Reading, RefInfo, Request
from scraping.sources.layout import Layout
from scraping.sources.sofascore import addresses, lineups, listing, schemas


class SofascoreSite:
    key: str
    sport: Sport
    payload_schema = schemas.EVENT
    lineup_schema = schemas.LINEUPS
    events_endpoint = "incidents"
    layout: Layout | None = None
    list_layout: Layout | None = None
    prefers_attached = False

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        event = rf"/api/v1/event/{re.escape(ref.source_event_id)}"
        return (
            Endpoint("event", re.compile(rf"{event}(?:\?|$)")),
            Endpoint("incidents", re.compile(rf"{event}/incidents(?:\?|$)"), is_required=False),
        )

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        return None  # the incidents answer always has all of them

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.matches_of(reading, base_url, self.sport)

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return lineups.requests(ref, base_url)

    def parse_lineups(self, reading: Reading) -> Lineups:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return lineups.parse(reading, self.key)

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        return addresses.match_at(url, base_url, self.sport)
