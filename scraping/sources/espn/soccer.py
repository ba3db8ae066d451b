"""The adapter of ESPN's football: reads a match from the scoreboard of its days, which has everything."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from urllib.parse import parse_qs, urlsplit

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Payload, Sport, Status
from scraping.sources import football, parsing
from scraping.sources.base import Adapter, Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.broken_parts import is_broken
from scraping.sources.espn import site
from scraping.sources.espn.soccer_match import events_of, goals_of, state_of
from scraping.sources.espn.soccer_schemas import (
    EVENT_LISTS,
    SOCCER,
    SOCCER_NEEDS,
    Detail,
    SoccerEvent,
    SoccerLeague,
    SoccerSummary,
    SoccerVenue,
)
from scraping.sources.parsing import validated

_PATH = re.compile(rf"{site.SPORTS}/soccer/([a-z][\w.-]{{1,60}})/(scoreboard|summary)/?", re.ASCII)
_DATE_RANGE = re.compile(r"\d{8}(?:-\d{8})?", re.ASCII)


class EspnSoccerAdapter(Adapter):
    """ESPN's football, as site.api.espn.com was in 2026."""

    key = "espnsoccer"
    sport = Sport.FOOTBALL
    payload_schema = SOCCER
    events_endpoint = "board"  # it always has all events
    address_example = ".../apis/site/v2/sports/soccer/bra.1/scoreboard?dates=20260502#740898"

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        event = re.escape(ref.source_event_id)
        pattern = rf"/soccer/[\w.-]+/(?:scoreboard\?(?:.*&)?dates=|summary\?(?:.*&)?event={event}(?:&|$))"
        return (Endpoint("board", re.compile(pattern)),)

    def requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return (site.request("board", site.soccer_request_url(ref.url, base_url)),)

    def follow_up(self, reading: Reading, base_url: str) -> tuple[Request, ...]:
        """Requests the summary where the scoreboard lacks the match: a postponed match is listed under its new day."""
        listed = parsing.mapping(site.optional_body(reading.document("board"))).get("events")
        wanted = reading.ref.source_event_id
        if not isinstance(listed, list) or any(_is_match(row, wanted) for row in parsing.rows(listed)):
            return ()
        return (site.request("board", site.soccer_summary_url(reading.ref.url, base_url, wanted)),)

    def parse(self, reading: Reading) -> Payload:
        data, url = site.body_of(reading, "board")
        event, series, venue, key_events = _event_in(data, reading.ref.source_event_id, url)
        events = events_of(event, key_events or ())
        has_events = key_events is not None or event.competitions[0].details is not None
        state = state_of(event, events, series=series, venue=venue)
        # The details of a summary lack most kinds; before the start there are none.
        is_partial = "header" in parsing.mapping(data) and not key_events and state.status is not Status.UPCOMING
        is_whole = has_events and not is_partial and not any(map(is_broken, EVENT_LISTS))
        scoring = [one.detail.get("team") for one in events if one.kind in football.GOALS]
        return self.payload(
            reading,
            state,
            events=events,
            has_events=has_events,
            events_are_complete=is_whole and (scoring.count("team_a"), scoring.count("team_b")) == goals_of(event),
        )

    def list_plan(self, base_url: str) -> ListPlan:
        """Requests the list without dates: the source chooses the current days."""
        return site.plan(site.soccer_list_url(base_url))

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        return _listed_matches(reading, base_url)

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        return site.plan(site.soccer_list_url(base_url, dates=site.dates_of(day)))

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        return _listed_matches(reading, base_url, day)

    def ref_at(self, url: str, base_url: str) -> RefInfo | None:
        base, parts = base_url.rstrip("/"), urlsplit(url)
        path = _PATH.fullmatch(parts.path.removeprefix(urlsplit(base).path))
        if path is None:
            return None
        query = parse_qs(parts.query)
        if path[2] == "summary":
            event = query.get("event", [""])[0]
            return site.ref_of(event, site.soccer_summary_url(url, base, event))
        dates, event = query.get("dates", [""])[0], parts.fragment
        known = f"{site.soccer_list_url(base, path[1], dates)}#{event}" if _DATE_RANGE.fullmatch(dates) else ""
        return site.ref_of(event, known)


def _event_in(data: Any, wanted: str, url: str) -> tuple[SoccerEvent, str, SoccerVenue | None, Sequence[Detail] | None]:
    """Returns the match, its series, venue and key events (of a summary only); other matches are not validated."""
    response, key_events = parsing.mapping(data), None
    if "header" in response:
        summary = validated(SoccerSummary, data, schema=SOCCER, url=url, needed=SOCCER_NEEDS)
        league = summary.header.league
        event: SoccerEvent = summary.header
        venue, key_events = summary.venue, summary.key_events
    else:
        listed, league = _board_of(response, url)
        own = next((one for one in parsing.rows(listed) if _is_match(one, wanted)), None)
        if own is None:
            raise PayloadRejected(f"the scoreboard of its days does not have the match {wanted}", url=url)
        event, venue = _event_of(own, url), None
    parsing.refuse_another("the response is", event.id, wanted, url)
    return event, parsing.plain(league.name, 200) if league else "", venue, key_events


def _is_match(row: Mapping[str, Any], wanted: str) -> bool:
    return parsing.text(row.get("id")) == wanted


def _event_of(row: Any, url: str) -> SoccerEvent:
    return validated(SoccerEvent, row, schema=SOCCER, url=url, path="events[]", needed=SOCCER_NEEDS)


def _board_of(response: Mapping[str, Any], url: str) -> tuple[list[Any], SoccerLeague | None]:
    events = validated(list[Any], response.get("events"), schema=SOCCER, url=url, path="events")
    leagues = parsing.rows(response.get("leagues"))
    return events, validated(SoccerLeague, leagues[0], schema=SOCCER, url=url, path="leagues[]") if leagues else None


def _listed_matches(reading: Reading, base_url: str, day: date | None = None) -> list[DiscoveredMatch]:
    data, url = site.body_of(reading, "list")
    listed, league = _board_of(parsing.mapping(data), url)
    slug = (league.slug if league else None) or site.SERIE_A
    series = parsing.plain(league.name, 200) if league else ""

    def match_of(row: Any) -> DiscoveredMatch:
        return _listed_match(_event_of(row, url), base_url, slug, series)

    found = parsing.unique_matches(listed, match_of)
    return found if day is None else parsing.starting_on(day, found)


def _listed_match(event: SoccerEvent, base_url: str, league: str, series: str) -> DiscoveredMatch:
    state = state_of(event, series=series)
    if state.start_time is None or not parsing.is_number(event.id):
        raise SchemaBreak(f"{SOCCER}: the match {event.id[:20]!r} has no id or no time")
    return DiscoveredMatch(
        source_event_id=event.id,
        url=site.soccer_match_url(base_url, league, event.id, state.start_time),
        title=state.title,
        sport=Sport.FOOTBALL,
        status=state.status,
        start_time=state.start_time,
        teams=(state.teams.team_a, state.teams.team_b),
        series=series,
    )
