"""The adapter of ESPN's cricket: reads a match from its summary and the newest pages of its plays."""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

from scraping.errors import LayoutChanged, SchemaBreak
from scraping.payloads import DiscoveredMatch, Event, Lineups, Payload, Sport
from scraping.sources import parsing
from scraping.sources.base import Adapter, Endpoint, ListPlan, Reading, RefInfo, Request
from scraping.sources.espn import plays, site, summary
from scraping.sources.espn.schemas import ROSTERS, SUMMARY, SUMMARY_NEEDS, Competition, Plays
from scraping.sources.parsing import validated

PLAYS = "plays"
_PATH = re.compile(rf"{site.SPORTS}/cricket/(\d{{1,10}})/(?:summary|playbyplay)/?", re.ASCII)
_LEAGUE_IN_UID = re.compile(r"~l:([0-9]{1,10})~e:", re.ASCII)
_FEW = 12  # with so few balls on the last page, the page before it is requested too, so that a poll misses none
_STEP = 4  # pages a step backwards: a Test has a hundred


class EspnAdapter(Adapter):
    key = "espn"
    sport = Sport.CRICKET
    payload_schema = SUMMARY
    lineup_schema = ROSTERS
    events_endpoint = PLAYS
    address_example = ".../apis/site/v2/sports/cricket/8048/summary?event=1478914"

    def endpoints(self, ref: RefInfo) -> tuple[Endpoint, ...]:
        event = rf"\?(?:.*&)?event={re.escape(ref.source_event_id)}(?:&|$)"
        return (
            Endpoint("summary", re.compile(rf"/cricket/[0-9]+/summary{event}")),
            Endpoint(PLAYS, re.compile(rf"/cricket/[0-9]+/playbyplay{event}"), is_required=False),
        )

    def requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        league = site.league_of(ref.url)
        return (
            site.request("summary", site.summary_url(base_url, league, ref.source_event_id)),
            site.request(PLAYS, site.plays_url(base_url, league, ref.source_event_id)),
        )

    def follow_up(self, reading: Reading, base_url: str) -> tuple[Request, ...]:
        """Requests the last pages, once the first one has the number of pages; when paging back, some pages at once."""
        first = reading.document(PLAYS)
        data = site.optional_body(first)
        if first is None or data is None:
            return ()
        page, number = plays.page_of(data, first.url), site.number_in(first.url, "page")
        if page is None:
            return ()
        ask = partial(_page_request, reading.ref, base_url, site.number_in(first.url, "period"))
        if number is not None:
            return tuple(ask(earlier) for earlier in range(max(1, number - _STEP + 1), number))
        if page.page_count is None or page.page_count <= (page.page_index or 0):
            return ()
        on_last = (page.count or 0) - (page.page_count - 1) * max(page.listed, 1)
        before = (ask(page.page_count - 1),) if on_last <= _FEW else ()
        return ask(page.page_count, PLAYS), *before

    def parse(self, reading: Reading) -> Payload:
        data, url = site.body_of(reading, "summary")
        response = summary.summary_of(data, reading.ref.source_event_id, url)
        pages = _pages(reading)
        balls = [play for page in pages for play in page.items]
        plays.refuse_others(balls, {one.team.id for one in response.header.competitions[0].competitors})
        events = plays.events_of(
            balls, summary.fallen_in(response), summary.balls_per_over(response.header.competitions[0])
        )
        list_of_plays = reading.document(PLAYS)
        is_one_innings = list_of_plays is not None and site.number_in(list_of_plays.url, "period") is not None
        return self.payload(
            reading,
            summary.state_of(response, events),
            events=events,
            has_events=bool(pages),
            events_are_complete=plays.are_all(pages) and not is_one_innings,
        )

    def parse_events(self, reading: Reading) -> tuple[Event, ...]:
        pages = _pages(reading)
        if not pages:
            raise SchemaBreak("the plays endpoint gave no response", url=reading.ref.url)
        return plays.events_of([play for page in pages for play in page.items])

    def older_events(self, reading: Reading, request: Request) -> Request | None:
        """Returns the previous page, or the list of the previous innings where this list begins with a later one."""
        pages = _pages(reading)
        if not pages:
            return None
        address, _, _ = request.url.partition("&page=")
        if (earliest := pages[0].page_index or 1) > 1:
            return site.request(PLAYS, f"{address}&page={earliest - 1}")
        innings = min((play.period for play in pages[0].items), default=1)
        address, _, _ = address.partition("&period=")
        return site.request(PLAYS, f"{address}&period={innings - 1}") if innings > 1 else None

    def lineup_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return self.requests(ref, base_url)[:1]

    def parse_lineups(self, reading: Reading) -> Lineups:
        envelope = self.envelope(reading, ROSTERS)
        if reading.document("summary") is None and reading.document("page") is None:
            return Lineups(**envelope)
        data, url = site.body_of(reading, "summary")
        kickoff, lineups = summary.lineups_of(data, reading.ref.source_event_id, url)
        return Lineups(**envelope, kickoff=kickoff, lineups=lineups)

    def list_plan(self, base_url: str) -> ListPlan:
        return site.plan(site.cricket_list_url(base_url))

    def parse_list(self, reading: Reading, base_url: str) -> list[DiscoveredMatch]:
        data, url = site.body_of(reading, "list")
        listed = list(_listed_events(data, url))
        names = {parsing.text(league.get("id"), 20): parsing.plain(league.get("name"), 200) for league, _ in listed}
        return parsing.unique_matches(listed, lambda row: _listed_match(row[1], row[0], names, base_url, url))

    def fixture_plan(self, base_url: str, day: date) -> ListPlan:
        return site.plan(site.cricket_list_url(base_url, day))

    def ref_at(self, url: str, base_url: str) -> RefInfo | None:
        base, parts = base_url.rstrip("/"), urlsplit(url)
        path = _PATH.fullmatch(parts.path.removeprefix(urlsplit(base).path))
        event = parse_qs(parts.query).get("event", [""])[0]
        return site.ref_of(event, site.summary_url(base, path[1], event) if path else "")


def _page_request(ref: RefInfo, base_url: str, period: int | None, number: int, name: str = "") -> Request:
    url = site.plays_url(base_url, site.league_of(ref.url), ref.source_event_id, page=number, period=period)
    return site.request(name or f"{PLAYS}:{number}", url)


def _pages(reading: Reading) -> list[Plays]:
    """Returns the pages of plays in a reading, each once, without those that cannot be read, which are noted."""
    found: dict[int, Plays] = {}
    for name, document in reading.documents.items():
        if name.partition(":")[0] != PLAYS or document.status >= 400:
            continue
        page = plays.page_of(site.optional_body(document), document.url)
        if page is not None:
            found.setdefault(page.page_index or 1, page)
    return [found[number] for number in sorted(found)]


def _listed_events(data: Any, url: str) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yields each event with its league. A day has `scores[]`, one group per series; a series is one group."""
    response = parsing.mapping(data)
    groups = response["scores"] if isinstance(response.get("scores"), list) else [response]
    listed = [parsing.mapping(group).get("events") for group in groups]
    if groups and not any(isinstance(events, list) for events in listed):
        raise LayoutChanged("no list of cricket matches found; tried scores, events", url=url)
    for group, events in zip(groups, listed, strict=True):
        league = next(iter(parsing.rows(parsing.mapping(group).get("leagues"))), {})
        for event in events if isinstance(events, list) else [group]:  # a group without a list is one bad row
            yield league, event


def _listed_match(
    row: Any, league: Mapping[str, Any], names: Mapping[str, str], base_url: str, url: str
) -> DiscoveredMatch:
    event = parsing.mapping(row)
    match_id = parsing.text(event.get("id"), 20)
    competitions = parsing.rows(event.get("competitions"))
    number, series = _own_league({**next(iter(competitions), {}), **event}, league, names)
    if not parsing.is_number(match_id) or not parsing.is_number(number) or not competitions:
        raise SchemaBreak(f"a match of the list has no id, no league or no competition: {match_id!r}", url=url)
    body = {**event, **{name: value for name, value in competitions[0].items() if value is not None}}
    row = validated(Competition, body, schema=SUMMARY, url=url, needed=SUMMARY_NEEDS)
    has_play = parsing.has_play(summary.innings_of(row))
    status, _ = summary.status_and_phase(row.status, summary.ending_in(row), has_play=has_play)
    teams = tuple(map(site.team_of, site.sides_of(row.competitors, f"{SUMMARY}: competitors").values()))
    return DiscoveredMatch(
        source_event_id=match_id,
        url=site.summary_url(base_url, number, match_id),
        title=" v ".join(team.name for team in teams),
        sport=Sport.CRICKET,
        status=status,
        start_time=parsing.iso_moment(row.date),
        teams=teams,
        series=series,
    )


def _own_league(event: Mapping[str, Any], group: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, str]:
    """Returns number and name of the match's own league: it may be listed under that of another series too."""
    own = parsing.mapping(event.get("league")) or next(iter(parsing.rows(event.get("leagues"))), {})
    in_uid = _LEAGUE_IN_UID.search(parsing.text(event.get("uid")))
    stated = own.get("id") or event.get("leagueId") or event.get("league")
    number = parsing.text(stated, 20) or (in_uid[1] if in_uid else "")
    number = number or parsing.text(group.get("id"), 20)
    return number, parsing.plain(own.get("name"), 200) or names.get(number, "")
