"""The adapter of Sofascore's football, and the base of both Sofascore adapters: one site with the same responses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from scraping.payloads import DiscoveredMatch, Figures, Lineups, Payload, Sport
from scraping.sources import parsing
from scraping.sources.base import Adapter, Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.parsing import collecting_unrecognized
from scraping.sources.sofascore import incidents, lineups, listing, schemas, site
from scraping.sources.sofascore.event import check_shape, goals_of, state_of
from scraping.sources.sofascore.incidents import Incident, checked, events_of, happened


class SofascoreSite(Adapter):
    key: str
    sport: Sport
    payload_schema = schemas.EVENT
    lineup_schema = schemas.LINEUPS
    events_endpoint = "incidents"  # it always has all events

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        event = rf"/api/v1/event/{re.escape(ref.source_event_id)}"
        return (
            Endpoint("event", re.compile(rf"{event}(?:\?|$)")),
            Endpoint("incidents", re.compile(rf"{event}/incidents(?:\?|$)"), is_required=False),
        )

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.matches_of(reading, base_url, self.sport)

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return lineups.requests(ref, base_url)

    def parse_lineups(self, reading: Reading) -> Lineups:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return lineups.parse_lineups(reading, self.key)

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        return site.match_at(url, base_url, self.sport)


class SofascoreAdapter(SofascoreSite):
    """Sofascore football, as its API was in 2026."""

    key = "sofascore"
    sport = Sport.FOOTBALL
    figure_schema = schemas.LINEUPS
    round_fields = listing.ROUND_FIELDS
    address_example = site.EXAMPLE

    def parse(self, reading: Reading) -> Payload:
        with parsing.rejecting_invalid_values(reading.ref.url), collecting_unrecognized() as unknown:
            return _payload(reading).model_copy(update={"unknown": tuple(unknown)})

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(url=f"{base_url.rstrip('/')}/", endpoints=listing.endpoints(self.sport))

    def round_plan(self, base_url: str, asked: Mapping[str, int]) -> ListPlan:
        return listing.round_plan(base_url, asked)

    def parse_round(self, reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.round_matches(reading, base_url, asked)

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        return listing.fixture_plan(base_url, day)

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.fixture_matches(reading, base_url)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return lineups.requests(ref, base_url)

    def parse_figures(self, reading: Reading) -> Figures:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return lineups.parse_ratings(reading, self.key)


def _payload(reading: Reading) -> Payload:
    event, missing = site.event_in(reading, "football", check_shape)
    goals = goals_of(event)
    rows = _incidents(reading, event, goals)
    events = events_of(happened(rows or []))
    state = state_of(event, events, reading.captured_at)
    return Payload(
        source=SofascoreAdapter.key,
        payload_schema=schemas.EVENT,
        captured_at=reading.captured_at,
        source_event_id=reading.ref.source_event_id,
        state=state,
        events=events,
        events_are_complete=rows is not None and incidents.are_complete(rows, event, goals),
        integrity=parsing.integrity_of(state, has_events=rows is not None, also_missing=missing),
    )


def _incidents(reading: Reading, event: Mapping[str, Any], goals: tuple[int, int]) -> list[Incident] | None:
    """Returns the rows of the list, or None where it is missing, invalid, or another match's."""
    rows = site.optional(reading.document("incidents"), checked)
    if rows is None or not incidents.is_of_another_match(happened(rows), event, goals):
        return rows
    site.note_other_match("incidents")
    return None
