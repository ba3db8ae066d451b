"""The adapter of ESPN's football: reads a match from the scoreboard of its days, which has everything."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Payload, Sport
from scraping.sources import parsing
from scraping.sources.base import Adapter, Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.espn import listing, site
from scraping.sources.espn.soccer_match import GOALS, events_of, goals_of, sides_of, state_of
from scraping.sources.espn.soccer_schemas import SOCCER, Scoreboard, SoccerEvent, SoccerSummary, SoccerVenue
from scraping.sources.parsing import collecting_unrecognized, validated

_HEADERS = {"accept": "application/json"}


class EspnSoccerAdapter(Adapter):
    """ESPN's football, as site.api.espn.com was in 2026."""

    key = "espnsoccer"
    sport = Sport.FOOTBALL
    payload_schema = SOCCER
    events_endpoint = "board"  # it always has all events
    address_example = site.SOCCER_EXAMPLE

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        event = re.escape(ref.source_event_id)
        pattern = rf"/soccer/[\w.-]+/(?:scoreboard\?(?:.*&)?dates=|summary\?(?:.*&)?event={event}(?:&|$))"
        return (Endpoint("board", re.compile(pattern)),)

    def requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return (Request("board", site.soccer_request_url(ref.url, base_url), headers=_HEADERS),)

    def follow_up(self, reading: Reading, base_url: str) -> tuple[Request, ...]:
        """Requests the summary where the scoreboard lacks the match: a postponed match is listed under its new day."""
        board = reading.document("board")
        if board is None or board.status >= 400:
            return ()
        try:
            listed = parsing.mapping(site.checked_json(board)).get("events")
        except SchemaBreak:
            return ()
        wanted = reading.ref.source_event_id
        if not isinstance(listed, list) or any(row.get("id") == wanted for row in parsing.rows(listed)):
            return ()
        return (Request("board", site.soccer_summary_url(reading.ref.url, base_url, wanted), headers=_HEADERS),)

    def parse(self, reading: Reading) -> Payload:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return _payload(reading)

    def list_plan(self, base_url: str) -> ListPlan:
        """Requests the list without dates: the source chooses the current days."""
        return ListPlan(
            url="", endpoints=(), requests=(Request("list", site.soccer_list_url(base_url), headers=_HEADERS),)
        )

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.soccer_matches(reading, base_url)

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        url = site.soccer_list_url(base_url, dates=site.dates_of(day))
        return ListPlan(url="", endpoints=(), requests=(Request("list", url, headers=_HEADERS),))

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.soccer_matches(reading, base_url, day)

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        return site.soccer_match_at(url, base_url)


def _payload(reading: Reading) -> Payload:
    with collecting_unrecognized() as unknown:
        data, url = site.body_of(reading, "board")
        event, series, venue = _event_in(data, reading.ref.source_event_id, url)
        details = event.competitions[0].details
        sides = {one.team.id: side for side, one in sides_of(event).items()}
        goals = goals_of(event)
        events = events_of(details or [], sides, goals)
        state = state_of(event, events, series=series, venue=venue)
    scoring_sides = [one.detail.get("team") for one in events if one.kind in GOALS]
    return Payload(
        source=EspnSoccerAdapter.key,
        payload_schema=SOCCER,
        captured_at=reading.captured_at,
        source_event_id=reading.ref.source_event_id,
        state=state,
        events=events,
        events_are_complete=details is not None
        and (scoring_sides.count("team_a"), scoring_sides.count("team_b")) == goals,
        integrity=parsing.integrity_of(state, has_events=details is not None),
        unknown=tuple(unknown),
    )


def _event_in(data: Any, wanted: str, url: str) -> tuple[SoccerEvent, str, SoccerVenue | None]:
    """Returns the match, the name of its series and the venue; other matches of the scoreboard are not validated."""
    response = parsing.mapping(data)
    if "header" in response:
        summary = validated(SoccerSummary, data, schema=SOCCER, url=url)
        league = summary.header.league
        event: SoccerEvent = summary.header
        venue = summary.game_info.venue if summary.game_info else None
    else:
        listed = response.get("events")
        if not isinstance(listed, list):
            raise SchemaBreak(f"{SOCCER}: events (field required)", url=url, evidence=str(data)[:2000])
        own = [one for one in parsing.rows(listed) if one.get("id") == wanted]
        if not own:
            raise PayloadRejected(f"the scoreboard of its days does not have the match {wanted}", url=url)
        board = validated(Scoreboard, {**response, "events": own[:1]}, schema=SOCCER, url=url)
        event, league, venue = board.events[0], board.leagues[0] if board.leagues else None, None
    if event.id != wanted:
        raise PayloadRejected(f"the response is about another match: {event.id[:40]} instead of {wanted}", url=url)
    return event, parsing.plain(league.name, 200) if league else "", venue
