"""How a Sofascore match is read: from the two answers that its page asks for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from scraping.payloads import DiscoveredMatch, Figures, Integrity, Payload, Sport
from scraping.sources import parsing
from scraping.sources.base import ListPlan, Reading, RefInfo, Request
from scraping.sources.parsing import collecting_unrecognized, missing_football_fields
from scraping.sources.sofascore import (
    addresses,
    answers,
    belonging,
    fixtures,
    lineups,
    listing,
    ratings,
    rounds,
    schemas,
)
from scraping.sources.sofascore.event import check_shape, goals_of, state_of
from scraping.sources.sofascore.incidents import Incident, checked, events_of, happened
from scraping.sources.sofascore.site import SofascoreSite


class SofascoreAdapter(SofascoreSite):
    """Sofascore football, as its API was in 2026."""

    key = "sofascore"
    sport = Sport.FOOTBALL
    figure_schema = schemas.LINEUPS
    round_fields = rounds.FIELDS
    address_example = addresses.EXAMPLE

    def parse(self, reading: Reading) -> Payload:
        with parsing.rejecting_invalid_values(reading.ref.url), collecting_unrecognized() as unknown:
            return _payload(reading).model_copy(update={"unknown": tuple(unknown)})

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(url=f"{base_url.rstrip('/')}/", endpoints=listing.endpoints(self.sport))

    def round_plan(self, base_url: str, asked: Mapping[str, int]) -> ListPlan:
        return rounds.plan(base_url, asked)

    def parse_round(self, reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return rounds.matches_of(reading, base_url, asked)

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        return fixtures.plan(base_url, day)

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return fixtures.matches_of(reading, base_url)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return lineups.requests(ref, base_url)

    def parse_figures(self, reading: Reading) -> Figures:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return ratings.parse(reading, self.key)


def _payload(reading: Reading) -> Payload:
    event, went_without = answers.event_in(reading, "football", check_shape)
    goals = goals_of(event)
    rows = _incidents(reading, event, goals)
    events = events_of(happened(rows or []))
    state = state_of(event, events, reading.captured_at)
    missing = went_without + missing_football_fields(state, has_events=rows is not None)
    return Payload(
        source=SofascoreAdapter.key,
        payload_schema=schemas.EVENT,
        captured_at=reading.captured_at,
        source_event_id=reading.ref.source_event_id,
        state=state,
        events=events,
        events_are_complete=rows is not None and belonging.are_all(rows, event, goals),
        integrity=Integrity(missing_fields=missing, null_field_rate=round(min(1.0, len(missing) / 7), 4)),
    )


def _incidents(reading: Reading, event: Mapping[str, Any], goals: tuple[int, int]) -> list[Incident] | None:
    """The rows of the list, or nothing where it is not there, broken, or another match's."""
    rows = answers.optional(reading.document("incidents"), checked)
    if rows is None or not belonging.is_foreign(happened(rows), event, goals):
        return rows
    answers.note_foreign("incidents")
    return None
