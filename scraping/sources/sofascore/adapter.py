"""How a Sofascore match is read: from the two answers that its page asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scraping.errors import LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Integrity, Payload, Sport
from scraping.sources import challenge, loose
from scraping.sources.base import Document, Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.layout import Layout
from scraping.sources.sofascore import addresses, listing, rounds
from scraping.sources.sofascore.event import check_shape, goals_of, missing_in, sport_of, state_of
from scraping.sources.sofascore.incidents import events_of, goals_in, happenings, is_beyond
from scraping.sources.sofascore.page import event_in_page

_EVIDENCE_CHARACTERS = 20_000


class SofascoreAdapter:
    """Sofascore football, as its API was in 2026."""

    key = "sofascore"
    sport = Sport.FOOTBALL
    payload_schema = "sofascore.match.v1"
    events_endpoint = "incidents"
    round_fields = rounds.FIELDS
    address_example = addresses.EXAMPLE
    layout: Layout | None = None
    list_layout: Layout | None = None
    prefers_attached = False

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        event = rf"/api/v1/event/{re.escape(ref.source_event_id)}"
        return (
            Endpoint("event", re.compile(rf"{event}(?:\?|$)")),
            Endpoint("incidents", re.compile(rf"{event}/incidents(?:\?|$)"), is_required=False),
        )

    def parse(self, reading: Reading) -> Payload:
        with loose.rejecting_absurd_values(reading.ref.url):
            return _payload(reading)

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        return None  # the incidents answer always has all of them

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(url=f"{base_url.rstrip('/')}/", endpoints=listing.ENDPOINTS)

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        with loose.rejecting_absurd_values(base_url):
            return listing.matches_of(reading, base_url)

    def round_plan(self, base_url: str, asked: Mapping[str, int]) -> ListPlan:
        return rounds.plan(base_url, asked)

    def parse_round(self, reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
        with loose.rejecting_absurd_values(base_url):
            return rounds.matches_of(reading, base_url, asked)

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        return addresses.match_at(url, base_url)


def _payload(reading: Reading) -> Payload:
    event, went_without = _event(reading)
    incidents = happenings(_optional(reading.document("incidents")))
    goals = goals_of(event)
    if incidents is not None and is_beyond(incidents, goals):
        incidents = None  # more goals than the match has: the list is another match's
    events = events_of(incidents or [])
    state = state_of(event, events, reading.captured_at)
    missing = went_without + missing_in(state, has_events=incidents is not None)
    return Payload(
        source=SofascoreAdapter.key,
        captured_at=reading.captured_at,
        source_event_id=reading.ref.source_event_id,
        state=state,
        events=events,
        events_are_complete=incidents is not None and goals_in(incidents) == goals,
        integrity=Integrity(missing_fields=missing, null_field_rate=round(min(1.0, len(missing) / 7), 4)),
    )


def _event(reading: Reading) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The event, checked to be the one asked for, and which way to it did not work."""
    document, page = reading.document("event"), reading.document("page")
    try:
        return _checked(_answered(document), reading), ()
    except SchemaBreak as broken:
        if page is None:
            raise
        rendered = event_in_page(page.text())
        if rendered is not None:
            return _checked(rendered, reading), ("event_answer",)
        challenge.raise_if_challenge(page.text(), page.url)
        message = f"{broken}; the page has no event in __NEXT_DATA__"
        raise LayoutChanged(message, url=page.url, evidence=page.text()[:_EVIDENCE_CHARACTERS]) from broken


def _answered(document: Document | None) -> Mapping[str, Any]:
    if document is None or document.status >= 400:
        raise SchemaBreak("the event endpoint gave no answer")
    return loose.mapping(listing.answer_of(document).get("event"))


def _checked(event: Mapping[str, Any], reading: Reading) -> Mapping[str, Any]:
    check_shape(event)
    stated, wanted = loose.text(event["id"], 40), reading.ref.source_event_id
    if stated != wanted:
        raise PayloadRejected(f"the event is about another match: {stated} instead of {wanted}", url=reading.ref.url)
    if sport_of(event) not in ("football", ""):
        raise PayloadRejected(f"the event is about another sport: {sport_of(event)}", url=reading.ref.url)
    return event


def _optional(document: Document | None) -> Any:
    """The answer, or nothing where there is none or it is broken: a match lives without its incidents."""
    if document is None or document.status >= 400:
        return None
    try:
        return document.json()
    except SchemaBreak:
        return None
