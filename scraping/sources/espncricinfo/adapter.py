"""The ESPNcricinfo adapter: reads a match from its live page, which contains everything.

The site's own API needs a signed token and is not used. Where the page is refused without a browser, the reader opens
it in one and finds the same script in it.
"""

import re
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from scraping.errors import LayoutChanged, SchemaBreak
from scraping.payloads import DiscoveredMatch, Figures, Lineups, Payload, Sport
from scraping.sources import parsing
from scraping.sources.base import Adapter, ListPlan, Reading, RefInfo, Request
from scraping.sources.espncricinfo import match_state, players, schemas, site

_ASKED = re.compile(r"[?&]innings=(\d{1,2})(?:&|$)", re.ASCII)
_SCORECARD_PAGE = "scorecard"


class EspncricinfoAdapter(Adapter):
    """ESPNcricinfo, as its pages were in 2026."""

    key = "espncricinfo"
    sport = Sport.CRICKET
    payload_schema = schemas.MATCH
    lineup_schema = schemas.SCORECARD
    figure_schema = schemas.SCORECARD
    address_example = site.EXAMPLE

    def requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return (site.page_request(site.tab_url(ref.url, site.LIVE)),)

    def parse(self, reading: Reading) -> Payload:
        url = reading.ref.url
        data = site.data_of(reading.document("page"), url)
        match = site.match_of(data, reading, schema=schemas.MATCH)
        innings = match_state.innings_in(data, schema=schemas.MATCH, url=url)
        events, has_events = match_state.events_in(data, innings, url=url)
        state, is_partial = match_state.state_of(match, innings, events)
        return self.payload(reading, state, events=events, has_events=has_events, is_partial_state=is_partial)

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        """Requests the commentary page of the innings of the page's oldest ball, or of the one before that."""
        asked = _ASKED.search(request.url)
        number = int(asked[1]) - 1 if asked else _oldest_innings(self.parse(reading))
        if number < 1:
            return None
        return site.page_request(f"{site.tab_url(reading.ref.url, site.COMMENTARY)}?innings={number}")

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return (site.page_request(site.tab_url(ref.url, site.SCORECARD), _SCORECARD_PAGE),)

    def parse_lineups(self, reading: Reading) -> Lineups:
        envelope = self.envelope(reading, schemas.SCORECARD)
        page = reading.document(_SCORECARD_PAGE)
        if page is None:
            return Lineups(**envelope)
        data = site.data_of(page, reading.ref.url)
        match = site.match_of(data, reading, schema=schemas.SCORECARD)
        lineups = players.lineups_of(data, match, reading.ref.url)
        return Lineups(**envelope, kickoff=parsing.iso_moment(match.start_time), lineups=lineups)

    def figure_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return self.lineup_requests(ref, base_url)

    def parse_figures(self, reading: Reading) -> Figures:
        data = site.data_of(reading.document(_SCORECARD_PAGE), reading.ref.url)
        match = site.match_of(data, reading, schema=schemas.SCORECARD)
        innings = match_state.innings_in(data, schema=schemas.SCORECARD, url=reading.ref.url)
        return Figures(**self.envelope(reading, schemas.SCORECARD), figures=players.figures_of(match, innings))

    def list_plan(self, base_url: str) -> ListPlan:
        return ListPlan(url=f"{base_url.rstrip('/')}/{site.LIVE}", endpoints=())

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        data = site.data_of(reading.document("page"), base_url)
        listed = parsing.mapping(data.get("content")).get("matches")
        if not isinstance(listed, list):
            raise LayoutChanged(f"{schemas.LIST}: content.matches (missing)", url=base_url, evidence=str(data)[:2000])
        return parsing.unique_matches(listed, lambda row: _listed_match(row, base_url))

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        """Requests a day's list as the stadium has it; the site's own request is not recorded."""
        url = f"{base_url.rstrip('/')}/live-cricket-match-schedule-fixtures?date={day.isoformat()}"
        return ListPlan(url="", endpoints=(), requests=(site.page_request(url),))

    def ref_at(self, url: str, base_url: str) -> RefInfo | None:
        path = urlsplit(url).path.removeprefix(urlsplit(base_url.rstrip("/")).path)
        found = site.MATCH_PATH.fullmatch(path)
        return RefInfo(found["id"], site.tab_url(url, site.LIVE)) if found else None


def _listed_match(row: Any, base_url: str) -> DiscoveredMatch:
    match = parsing.validated(schemas.Brief, row, schema=schemas.LIST, url=base_url, needed=schemas.MATCH_NEEDS)
    if match.series.object_id is None:
        raise SchemaBreak(f"{schemas.LIST}: series.objectId (field required)", url=base_url)  # it is in the address
    status, _, _ = match_state.status_and_phase(match, has_play=any(side.score for side in match.teams))
    teams = tuple(match_state.team_of(side.team) for side in match.teams if parsing.text(side.team.long_name))
    names = " v ".join(team.name for team in teams)
    return DiscoveredMatch(
        source_event_id=str(match.object_id),
        url=site.match_url(base_url, match),
        title=parsing.text(", ".join(filter(None, (names, parsing.text(match.title, 120))))),
        sport=Sport.CRICKET,
        status=status,
        start_time=parsing.iso_moment(match.start_time),
        teams=teams if len(teams) == 2 else (),
        series=parsing.text(match.series.long_name or match.series.name),
    )


def _oldest_innings(payload: Payload) -> int:
    counted = [event for event in payload.events if event.ordinal is not None]
    if not counted:
        return len(payload.state.innings)
    oldest = min(counted, key=lambda event: event.ordinal or 0)
    return (oldest.innings or 0) - oldest.slot.endswith(":0:1")
