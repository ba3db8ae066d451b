"""The adapter of Sofascore's cricket: reads a match from the event, its innings and its balls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from scraping.payloads import DiscoveredMatch, Figures, Payload, Sport
from scraping.sources import parsing
from scraping.sources.base import Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.parsing import collecting_unrecognized
from scraping.sources.sofascore import cricket_state, deliveries, listing, schemas, scorecards, site
from scraping.sources.sofascore.adapter import SofascoreSite
from scraping.sources.sofascore.batting_order import innings_of, side_of
from scraping.sources.sofascore.schemas import CricketEvent, Delivery, InningsRow


class SofascoreCricketAdapter(SofascoreSite):
    """Sofascore cricket: the same site and responses as its football, with other contents."""

    key = "sofascorecricket"
    sport = Sport.CRICKET
    figure_schema = schemas.INNINGS
    address_example = site.CRICKET_EXAMPLE

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        innings = rf"/api/v1/event/{re.escape(ref.source_event_id)}/innings(?:\?|$)"
        return (*super().endpoints(ref), Endpoint("innings", re.compile(innings), is_required=False))

    def parse(self, reading: Reading) -> Payload:
        with parsing.rejecting_invalid_values(reading.ref.url), collecting_unrecognized() as unknown:
            return _payload(reading).model_copy(update={"unknown": tuple(unknown)})

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(url=f"{base_url.rstrip('/')}/cricket", endpoints=listing.endpoints(self.sport))

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        return listing.tournament_plan(base_url, day, self.sport)

    def more_fixtures(self, readings: Sequence[Reading], base_url: str, day: date) -> tuple[Request, ...]:
        return listing.tournament_requests(readings, base_url, day, self.sport)

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.tournament_matches(reading, base_url, self.sport)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return scorecards.requests(ref, base_url)

    def parse_figures(self, reading: Reading) -> Figures:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return scorecards.parse(reading, self.key)


def _payload(reading: Reading) -> Payload:
    raw, missing = site.event_in(reading, "cricket", cricket_state.check_shape)
    event = cricket_state.checked(raw)
    rows = _deliveries(reading, event)
    innings, knows_order = innings_of(event, _innings(reading, event), rows or [])
    balls = deliveries.balls_of(rows or [])
    events = deliveries.events_of(balls)
    state = cricket_state.state_of(raw, event, innings, events)
    missing += () if knows_order else ("innings_order",)
    return Payload(
        source=SofascoreCricketAdapter.key,
        payload_schema=schemas.EVENT,
        captured_at=reading.captured_at,
        source_event_id=reading.ref.source_event_id,
        state=state,
        events=events,
        events_are_complete=rows is not None and deliveries.are_all(balls, innings),
        integrity=parsing.integrity_of(state, has_events=rows is not None, also_missing=missing, also_expected=1),
    )


def _deliveries(reading: Reading, event: CricketEvent) -> list[Delivery] | None:
    """Returns the balls, or None where they are missing, invalid, or of other teams."""
    rows = site.optional(reading.document("incidents"), deliveries.checked)
    if rows is None or not any(row.battingTeamId and side_of(event, row.battingTeamId) is None for row in rows):
        return rows
    site.note_other_match("incidents")
    return None


def _innings(reading: Reading, event: CricketEvent) -> list[InningsRow]:
    rows = site.optional(reading.document("innings"), scorecards.rows_of) or []
    if any(side_of(event, row.battingTeam.id) is None for row in rows):
        site.note_other_match("innings")
        return []
    return rows
