"""The adapter of Sofascore's football, and the base of both Sofascore adapters: one site with the same responses."""

import re
from collections.abc import Mapping
from datetime import date
from urllib.parse import urlsplit

from scraping.payloads import DiscoveredMatch, Event, Figures, Lineups, Payload, Sport
from scraping.sources import parsing
from scraping.sources.base import Adapter, Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.broken_parts import is_broken
from scraping.sources.sofascore import incidents, listing, players, schemas, site
from scraping.sources.sofascore.event import goals_of, state_of

_PATH = re.compile(
    r"(?:/[a-z]{2}(?:-[a-z]{2})?)?/(football|cricket)/match/([\w%-]{1,200})/([A-Za-z0-9]{1,40})/?", re.ASCII
)
_FRAGMENT = re.compile(r"id:([1-9]\d{0,14})(?:,.*)?", re.ASCII)


class SofascoreSite(Adapter):
    payload_schema = schemas.EVENT
    lineup_schema = schemas.LINEUPS
    events_endpoint = "incidents"  # it always has all events

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        event = rf"/api/v1/event/{re.escape(ref.source_event_id)}"
        return (
            Endpoint("event", re.compile(rf"{event}(?:\?|$)")),
            Endpoint("incidents", re.compile(rf"{event}/incidents(?:\?|$)"), is_required=False),
        )

    def list_plan(self, base_url: str) -> ListPlan:
        return listing.plan(base_url, self.sport)

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        return listing.matches_of(reading, base_url, self.sport)

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return site.event_requests(ref, base_url, "lineups")

    def parse_lineups(self, reading: Reading) -> Lineups:
        event = players.listed_event_in(reading)
        lineups = players.lineups_of(reading, event)
        kickoff = parsing.moment(event.startTimestamp)
        return Lineups(**self.envelope(reading, schemas.LINEUPS), kickoff=kickoff, lineups=lineups)

    def ref_at(self, url: str, base_url: str) -> RefInfo | None:
        """Requires the match's number in the address: all meetings of two teams share a code such as GOsuO."""
        base, parts = base_url.rstrip("/"), urlsplit(url)
        path = _PATH.fullmatch(parts.path.removeprefix(urlsplit(base).path))
        number = _FRAGMENT.fullmatch(parts.fragment)
        if path is None or number is None or path[1] != self.sport.value:
            return None
        return RefInfo(number[1], site.match_url(base, self.sport, path[2], path[3], number[1]))


class SofascoreAdapter(SofascoreSite):
    """Sofascore football, as its API was in 2026."""

    key = "sofascore"
    sport = Sport.FOOTBALL
    figure_schema = schemas.LINEUPS
    round_fields = listing.ROUND_FIELDS
    address_example = ".../football/match/flamengo-santos/GOsuO#id:15052834, with the part after #"

    def parse(self, reading: Reading) -> Payload:
        event, missing = site.event_in(reading, schemas.FootballEvent, self.sport)
        goals = goals_of(event)
        listed = site.optional(reading, "incidents", list[schemas.Incident], schemas.INCIDENTS)
        # an item with `isLive` is the headline of the running period ("First half") and no event
        rows = [row for row in listed if not row.isLive] if listed is not None else None
        if rows is not None and goals is not None and incidents.is_of_another_match(rows, event, goals):
            site.note_other_match("incidents")
            listed = rows = None
        is_whole = listed is not None and goals is not None and not is_broken("incidents")
        events = incidents.events_of(rows or [])
        return self.payload(
            reading,
            state_of(event, events, reading.captured_at),
            events=events,
            events_are_complete=is_whole and incidents.are_complete(listed or [], event, goals or (0, 0)),
            has_events=rows is not None,
            also_missing=missing,
        )

    def parse_events(self, reading: Reading) -> tuple[Event, ...]:
        rows = site.required(reading, "incidents", list[schemas.Incident], schemas.INCIDENTS)
        return incidents.events_of([row for row in rows if not row.isLive])

    def round_plan(self, base_url: str, asked: Mapping[str, int]) -> ListPlan:
        return listing.plan(base_url, self.sport, ("round", listing.round_path(asked)))

    def parse_round(self, reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
        return listing.round_matches(reading, base_url, asked)

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        path = listing.day_path(listing.FOLLOWED_TOURNAMENT, day)  # the page shows only today's
        return listing.plan(base_url, self.sport, ("fixtures", path))

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        """Returns the day's matches, each once. A postponed match stays on the list of its old day too."""
        return listing.listed_matches([reading.document("fixtures")], base_url, self.sport)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return self.lineup_requests(ref, base_url)

    def parse_figures(self, reading: Reading) -> Figures:
        return Figures(**self.envelope(reading, schemas.LINEUPS), figures=tuple(players.ratings_of(reading)))
