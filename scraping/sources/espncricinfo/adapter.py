"""The ESPNcricinfo adapter: reads a match from its live page, which contains everything.

The site's own API needs a signed token and is not used. Where the page is refused without a browser, the reader opens
it in one and finds the same script in it.
"""

from __future__ import annotations

import re
from datetime import date

from scraping.payloads import DiscoveredMatch, Figures, Lineups, Payload, Sport
from scraping.sources import parsing
from scraping.sources.base import Adapter, Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.espncricinfo import listing, match_state, players, schemas, site
from scraping.sources.espncricinfo.site import data_of, match_of
from scraping.sources.parsing import collecting_unrecognized

_ASKED = re.compile(r"[?&]innings=(\d{1,2})(?:&|$)", re.ASCII)


class EspncricinfoAdapter(Adapter):
    """ESPNcricinfo, as its pages were in 2026."""

    key = players.SOURCE
    sport = Sport.CRICKET
    payload_schema = schemas.MATCH
    lineup_schema = schemas.SCORECARD
    figure_schema = schemas.SCORECARD
    events_endpoint = ""  # the balls are on the page, older ones on another
    address_example = site.EXAMPLE

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        return ()  # nothing that its script asks for is wanted

    def requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return (listing.page_request(site.tab_url(ref.url, site.LIVE)),)

    def parse(self, reading: Reading) -> Payload:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return _payload(reading)

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        """Requests the commentary page of the innings of the page's oldest ball, or of the one before that."""
        asked = _ASKED.search(request.url)
        number = int(asked[1]) - 1 if asked else _oldest_innings(self.parse(reading))
        if number < 1:
            return None
        return listing.page_request(f"{site.tab_url(reading.ref.url, site.COMMENTARY)}?innings={number}")

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return (listing.page_request(site.tab_url(ref.url, site.SCORECARD), players.DOCUMENT),)

    def parse_lineups(self, reading: Reading) -> Lineups:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return players.lineups_of(reading)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return self.lineup_requests(ref, base_url)

    def parse_figures(self, reading: Reading) -> Figures:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return players.figures_of(reading)

    def list_plan(self, base_url: str) -> ListPlan:
        return listing.plan(base_url)

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.matches_of(reading, base_url)

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        return listing.day_plan(base_url, day)

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        """Returns the matches that start on that day (UTC)."""
        found = self.parse_list(reading, base_url)
        return [match for match in found if match.start_time is not None and match.start_time.date() == day]

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        return site.match_at(url, base_url)


def _payload(reading: Reading) -> Payload:
    url = reading.ref.url
    with collecting_unrecognized() as unrecognized:
        data = data_of(reading.document("page"), url)
        match = match_of(data, reading)
        numbers = match_state.innings_of(data, schema=schemas.MATCH, url=url)
        names = match_state.names_in(data, numbers, url=url)
        events, has_events = match_state.events_in(data, numbers, names, url=url)
        state, is_partial = match_state.state_of(match, numbers, events)
    return Payload(
        source=EspncricinfoAdapter.key,
        payload_schema=EspncricinfoAdapter.payload_schema,
        captured_at=reading.captured_at,
        source_event_id=reading.ref.source_event_id,
        state=state,
        events=events,
        is_partial_state=is_partial,
        integrity=parsing.integrity_of(state, has_events=has_events),
        unknown=tuple(unrecognized),
    )


def _oldest_innings(payload: Payload) -> int:
    """Returns the innings to request next; 0 where the page has everything."""
    counted = [event for event in payload.events if event.ordinal is not None and event.innings is not None]
    if not counted:
        return len(payload.state.innings)
    oldest = min(counted, key=lambda event: event.ordinal or 0)
    is_first = oldest.slot.endswith(":0:1")
    return (oldest.innings or 0) - is_first
