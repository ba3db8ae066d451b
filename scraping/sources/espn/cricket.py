"""The adapter of ESPN's cricket: reads a match from its summary and the newest pages of its plays."""

from __future__ import annotations

import re
from datetime import date
from functools import partial
from typing import Any

from scraping.errors import SchemaBreak
from scraping.payloads import DiscoveredMatch, Lineups, Payload, Sport
from scraping.sources import parsing
from scraping.sources.base import Adapter, Document, Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.espn import lineups, listing, site
from scraping.sources.espn.plays import Page, are_all, events_of, page_of, refuse_others
from scraping.sources.espn.schemas import SUMMARY
from scraping.sources.espn.summary import competition_of, state_of, summary_of
from scraping.sources.parsing import collecting_unrecognized

PLAYS = "plays"
_HEADERS = {"accept": "application/json"}
_FEW = 12  # with so few balls on the last page, the page before it is requested too, so that a poll misses none
_STEP = 4  # pages a step backwards: a Test has a hundred


class EspnAdapter(Adapter):
    """ESPN's cricket, as site.api.espn.com was in 2026."""

    key = "espn"
    sport = Sport.CRICKET
    payload_schema = SUMMARY
    lineup_schema = lineups.SCHEMA
    events_endpoint = PLAYS
    address_example = site.CRICKET_EXAMPLE

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        event = re.escape(ref.source_event_id)
        return (
            Endpoint("summary", re.compile(rf"/cricket/\d+/summary\?(?:.*&)?event={event}(?:&|$)")),
            Endpoint(PLAYS, re.compile(rf"/cricket/\d+/playbyplay\?(?:.*&)?event={event}(?:&|$)"), is_required=False),
        )

    def requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        league = site.league_of(ref.url)
        return (
            Request("summary", site.summary_url(base_url, league, ref.source_event_id), headers=_HEADERS),
            Request(PLAYS, site.plays_url(base_url, league, ref.source_event_id), headers=_HEADERS),
        )

    def follow_up(self, reading: Reading, base_url: str) -> tuple[Request, ...]:
        """Requests the last pages, once the first one has the number of pages; when paging back, some pages at once."""
        first = reading.document(PLAYS)
        data = _optional(first) if first is not None else None
        if first is None or data is None:
            return ()
        page, number = page_of(data, first.url), site.number_in(first.url, "page")
        ask = partial(_page, reading.ref, base_url, site.number_in(first.url, "period"))
        if number is not None:
            return tuple(ask(earlier) for earlier in _before(number))
        if page.pages <= page.number:
            return ()
        on_last = page.count - (page.pages - 1) * max(page.listed, 1)
        before = (ask(page.pages - 1),) if on_last <= _FEW else ()
        return ask(page.pages, PLAYS), *before

    def parse(self, reading: Reading) -> Payload:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return _payload(reading)

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        """Returns the previous page, or the list of the previous innings where this list begins with a later one."""
        pages = _pages(reading)
        if not pages:
            return None
        address, _, _ = request.url.partition("&page=")
        if pages[0].number > 1:
            return Request(PLAYS, f"{address}&page={pages[0].number - 1}", headers=_HEADERS)
        innings = min((play.period for play in pages[0].plays), default=1)
        address, _, _ = address.partition("&period=")
        return Request(PLAYS, f"{address}&period={innings - 1}", headers=_HEADERS) if innings > 1 else None

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return self.requests(ref, base_url)[:1]

    def parse_lineups(self, reading: Reading) -> Lineups:
        with parsing.rejecting_invalid_values(reading.ref.url):
            return lineups.lineups_of(reading)

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(
            url="", endpoints=(), requests=(Request("list", site.cricket_list_url(base_url), headers=_HEADERS),)
        )

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        with parsing.rejecting_invalid_values(base_url):
            return listing.cricket_matches(reading, base_url)

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        request = Request("list", site.cricket_list_url(base_url, day), headers=_HEADERS)
        return ListPlan(url="", endpoints=(), requests=(request,))

    def parse_fixtures(self, reading: Reading, base_url: str, day: date) -> list[DiscoveredMatch]:
        """Returns the matches that begin on the day; the list also has long matches that began earlier."""
        listed = self.parse_list(reading, base_url)
        return [match for match in listed if match.start_time is not None and match.start_time.date() == day]

    def match_at(self, url: str, base_url: str) -> DiscoveredMatch | None:
        return site.cricket_match_at(url, base_url)


def _page(ref: RefInfo, base_url: str, period: int | None, number: int, name: str = "") -> Request:
    url = site.plays_url(base_url, site.league_of(ref.url), ref.source_event_id, page=number, period=period)
    return Request(name or f"{PLAYS}:{number}", url, headers=_HEADERS)


def _before(number: int) -> range:
    """Returns the pages before this one that are requested along with it."""
    return range(max(1, number - _STEP + 1), number)


def _payload(reading: Reading) -> Payload:
    with collecting_unrecognized() as unknown:
        data, url = site.body_of(reading, "summary")
        response = summary_of(data, reading.ref.source_event_id, url)
        pages = _pages(reading)
        plays = [play for page in pages for play in page.plays]
        refuse_others(plays, frozenset(one.team.id for one in competition_of(response).competitors))
        events = events_of(plays)
        state = state_of(response, events)
    return Payload(
        source=EspnAdapter.key,
        payload_schema=SUMMARY,
        captured_at=reading.captured_at,
        source_event_id=reading.ref.source_event_id,
        state=state,
        events=events,
        events_are_complete=are_all(pages) and not _is_one_innings(reading),
        integrity=parsing.integrity_of(state, has_events=bool(pages)),
        unknown=tuple(unknown),
    )


def _is_one_innings(reading: Reading) -> bool:
    plays = reading.document(PLAYS)
    return plays is not None and site.number_in(plays.url, "period") is not None


def _pages(reading: Reading) -> list[Page]:
    """Returns the pages of plays in a reading, each once, without those that are no JSON."""
    found: dict[int, Page] = {}
    for name, document in reading.documents.items():
        if name == PLAYS or name.startswith(f"{PLAYS}:"):
            data = _optional(document)
            if data is not None:
                page = page_of(data, document.url)
                found.setdefault(page.number, page)
    return [found[number] for number in sorted(found)]


def _optional(document: Document) -> Any:
    if document.status >= 400:
        return None
    try:
        return site.checked_json(document)
    except SchemaBreak:
        return None
