"""The adapter of Sofascore's cricket: reads a match from the event, its innings and its balls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from itertools import chain

from scraping.payloads import DiscoveredMatch, Figures, Payload, Sport
from scraping.sources import parsing
from scraping.sources.base import Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.parsing import validated
from scraping.sources.sofascore import cricket_state, deliveries, listing, players, schemas, site
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
        event, missing = site.event_in(reading, CricketEvent, self.sport)
        rows = _deliveries(reading, event)
        innings, knows_order = innings_of(event, _innings(reading, event), rows or [])
        balls = deliveries.balls_of(rows or [])
        events = deliveries.events_of(balls)
        return self.payload(
            reading,
            cricket_state.state_of(event, innings, events),
            events=events,
            events_are_complete=rows is not None and deliveries.are_all(balls, innings),
            has_events=rows is not None,
            also_missing=missing if knows_order else (*missing, "innings_order"),
            also_expected=1,
        )

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        first = listing.tournaments_path(self.sport, day, 1)
        return listing.plan(base_url, self.sport, (listing.TOURNAMENTS, first))

    def more_fixtures(self, readings: Sequence[Reading], base_url: str, day: date) -> tuple[Request, ...]:
        return listing.tournament_requests(readings, base_url, day, self.sport)

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        return listing.tournament_matches(reading, base_url, self.sport)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return site.event_requests(ref, base_url, "innings")

    def parse_figures(self, reading: Reading) -> Figures:
        """Returns no figures where the source has no list of innings; the event names the teams of the sides."""
        envelope = self.envelope(reading, schemas.INNINGS)
        document = site.usable(reading.document("innings"))
        if document is None:
            return Figures(**envelope)
        listed = parsing.json_object(document).get("innings")
        rows = validated(list[InningsRow], listed, schema=schemas.INNINGS, url=document.url, path="innings")
        if not rows:
            return Figures(**envelope)
        event = site.event_in(reading, CricketEvent, self.sport)[0]
        figures = [players.innings_figures(row, side_of(event, row.battingTeam.id)) for row in rows]
        return Figures(**envelope, figures=tuple(chain.from_iterable(figures)))


def _deliveries(reading: Reading, event: CricketEvent) -> list[Delivery] | None:
    """Returns the balls, or None where they are missing, invalid, or of other teams."""
    listed = site.optional(reading, "incidents", list[Delivery], schemas.INCIDENTS)
    if listed is None:
        return None
    rows = deliveries.balls_in(listed)
    if any(row.battingTeamId and side_of(event, row.battingTeamId) is None for row in rows):
        site.note_other_match("incidents")
        return None
    return rows


def _innings(reading: Reading, event: CricketEvent) -> list[InningsRow]:
    rows = site.optional(reading, "innings", list[InningsRow], schemas.INNINGS) or []
    if any(side_of(event, row.battingTeam.id) is None for row in rows):
        site.note_other_match("innings")
        return []
    return rows
