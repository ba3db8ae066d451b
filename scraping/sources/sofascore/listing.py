"""Lists of matches: live and scheduled ones, the rounds of a season, and the matches of a day.

The list of a sport's whole day no longer exists; each tournament has its own. Cricket has some dozens of tournaments on
a day at most, which are listed page by page. Football has hundreds: only the one that we follow is requested.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from scraping.errors import LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport, Team
from scraping.sources import parsing
from scraping.sources.base import Document, Endpoint, ListPlan, Reading, Request
from scraping.sources.parsing import note_unrecognized, validated
from scraping.sources.sofascore import schemas
from scraping.sources.sofascore.event import series_of, sport_of, status_by_type, team_of, title_of
from scraping.sources.sofascore.site import url_of

ROUND_FIELDS: tuple[str, ...] = ("tournament", "season", "round")
FOLLOWED_TOURNAMENT = 325  # Brasileirão Série A
TOURNAMENTS, TOURNAMENT_LIST = "tournaments", "fixtures:"
AT_ONCE = 8


def endpoints(sport: Sport) -> tuple[Endpoint, ...]:
    return (
        Endpoint("live_list", re.compile(rf"/api/v1/sport/{sport.value}/events/live(?:\?|$)")),
        Endpoint("scheduled", re.compile(r"/api/v1/\S*/scheduled-events/\d{4}-\d{2}-\d{2}(?:\?|$)"), is_required=False),
    )


def matches_of(reading: Reading, base_url: str, sport: Sport) -> list[DiscoveredMatch]:
    """Returns the matches of both lists, each once; raises LayoutChanged where neither is present."""
    found: dict[str, DiscoveredMatch] = {}
    lists = [listed for name in ("live_list", "scheduled") if (listed := _events(reading.document(name))) is not None]
    for event in (event for listed in lists for event in listed):
        match = match_of(event, base_url, sport)
        if match is not None:
            found.setdefault(match.source_event_id, match)
    if not lists:
        page = reading.document("page")
        html = page.text() if page else ""
        parsing.raise_if_challenge(html, base_url)
        raise LayoutChanged(
            "no list of matches found; tried live_list, scheduled", url=base_url, evidence=html[:20_000]
        )
    return list(found.values())


def _events(document: Document | None) -> list[Mapping[str, Any]] | None:
    """Returns the events of a list; None where it is missing, which is no error: its address has moved before."""
    if document is None or document.status >= 400:
        return None
    return schemas.listed(parsing.json_object(document), url=document.url)


def match_of(event: Mapping[str, Any], base_url: str, sport: Sport) -> DiscoveredMatch | None:
    """Returns the match of a row; None for another sport and for an invalid row."""
    match_id = parsing.integer(event.get("id"))
    if match_id is None or sport_of(event) not in (sport.value, ""):
        return None
    try:
        judged, _ = status_by_type(parsing.mapping(event.get("status")))
    except (PayloadRejected, SchemaBreak):
        return None  # one odd row must not hide the others
    return DiscoveredMatch(
        source_event_id=str(match_id),
        url=url_of(event, base_url, sport),
        title=title_of(event),
        sport=sport,
        status=judged,
        start_time=parsing.moment(event.get("startTimestamp")),
        teams=_teams(event),
        series=series_of(event, sport),
    )


def _teams(event: Mapping[str, Any]) -> tuple[Team, ...]:
    """Returns both teams, or none where one of them has no name."""
    try:
        return team_of(event, "homeTeam"), team_of(event, "awayTeam")
    except SchemaBreak:
        return ()


def round_plan(base_url: str, asked: Mapping[str, int]) -> ListPlan:
    """Visits the home page for the session and requests the round's list, which no page loads by itself."""
    home = f"{base_url.rstrip('/')}/"
    path = "api/v1/unique-tournament/{tournament}/season/{season}/events/round/{round}".format_map(asked)
    request = Request("round", f"{home}{path}", headers={"accept": "*/*", "referer": home})
    return ListPlan(url=home, endpoints=endpoints(Sport.FOOTBALL), requests=(request,))


def round_matches(reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
    """Returns each match of the round once."""
    document = reading.document("round")
    try:
        response = validated(
            schemas.ListResponse, parsing.json_object(document) if document else None, schema=schemas.LIST
        )
    except SchemaBreak as broken:
        raise SchemaBreak(f"the response has no list of the round's matches: {broken}", url=reading.ref.url) from broken
    found: dict[str, DiscoveredMatch] = {}
    for row in map(parsing.mapping, response.events):
        _refuse_another_round(row, asked)
        match = match_of(row, base_url, Sport.FOOTBALL)
        if match is None:
            named = parsing.text(row.get("id"), 40) or "one without an id"
            raise SchemaBreak(f"a match of the round cannot be read: {named}", url=reading.ref.url)
        found.setdefault(match.source_event_id, match)
    return list(found.values())


def _refuse_another_round(row: Mapping[str, Any], asked: Mapping[str, int]) -> None:
    """Raises PayloadRejected where a row states another tournament, season or round than the requested one."""
    tournament = parsing.mapping(parsing.mapping(row.get("tournament")).get("uniqueTournament"))
    stated = {
        "tournament": parsing.integer(tournament.get("id")),
        "season": parsing.integer(parsing.mapping(row.get("season")).get("id")),
        "round": parsing.integer(parsing.mapping(row.get("roundInfo")).get("round")),
    }
    for name, value in stated.items():
        if value is not None and value != asked[name]:
            raise PayloadRejected(f"asked for {name} {asked[name]} and was given a match of {name} {value}")


def fixture_plan(base_url: str, day: date) -> ListPlan:
    """Visits the home page for the session and requests the day's list: the page shows only today's."""
    home = f"{base_url.rstrip('/')}/"
    url = f"{home}api/v1/unique-tournament/{FOLLOWED_TOURNAMENT}/scheduled-events/{day.isoformat()}"
    request = Request("fixtures", url, headers={"accept": "*/*", "referer": home})
    return ListPlan(url=home, endpoints=endpoints(Sport.FOOTBALL), requests=(request,))


def fixture_matches(reading: Reading, base_url: str) -> list[DiscoveredMatch]:
    """Returns the day's matches, each once. A postponed match stays on the list of its old day too."""
    document = reading.document("fixtures")
    if document is None:
        raise SchemaBreak(f"{schemas.LIST}: the day's list gave no response", url=reading.ref.url)
    found: dict[str, DiscoveredMatch] = {}
    for row in schemas.listed(parsing.json_object(document), url=document.url):
        match = match_of(row, base_url, Sport.FOOTBALL)
        if match is not None:
            found.setdefault(match.source_event_id, match)
    return list(found.values())


def tournament_plan(base_url: str, day: date, sport: Sport) -> ListPlan:
    """Visits the sport's page for the session."""
    home = f"{base_url.rstrip('/')}/{sport.value}"
    return ListPlan(url=home, endpoints=endpoints(sport), requests=(_tournaments_page(base_url, day, sport, 1),))


def tournament_requests(readings: Sequence[Reading], base_url: str, day: date, sport: Sport) -> tuple[Request, ...]:
    """Returns the next requests: the day's next page, then the lists of the tournaments, a few at a time."""
    days = [one for reading in readings if (one := reading.document(TOURNAMENTS)) is not None and one.status < 400]
    if days and _tournaments_response(days[-1]).hasNextPage:
        return (_tournaments_page(base_url, day, sport, len(days) + 1),)
    asked = {name for reading in readings for name in reading.documents}
    wanted = {f"{TOURNAMENT_LIST}{number}": number for document in days for number in _tournaments(document)}
    return tuple(
        _request(base_url, sport, name, f"unique-tournament/{number}/scheduled-events/{day.isoformat()}")
        for name, number in wanted.items()
        if name not in asked
    )[:AT_ONCE]


def tournament_matches(reading: Reading, base_url: str, sport: Sport) -> list[DiscoveredMatch]:
    """Returns the matches of the tournament lists in a reading, each once."""
    found: dict[str, DiscoveredMatch] = {}
    lists = [one for name, one in reading.documents.items() if name.startswith(TOURNAMENT_LIST) and one.status < 400]
    for document in lists:
        for row in schemas.listed(parsing.json_object(document), url=document.url):
            match = match_of(row, base_url, sport)
            if match is not None:
                found.setdefault(match.source_event_id, match)
    return list(found.values())


def _tournaments_page(base_url: str, day: date, sport: Sport, number: int) -> Request:
    path = f"sport/{sport.value}/scheduled-tournaments/{day.isoformat()}/page/{number}"
    return _request(base_url, sport, TOURNAMENTS, path)


def _request(base_url: str, sport: Sport, name: str, path: str) -> Request:
    home = base_url.rstrip("/")
    return Request(name, f"{home}/api/v1/{path}", headers={"accept": "*/*", "referer": f"{home}/{sport.value}"})


def _tournaments_response(document: Document) -> schemas.TournamentsResponse:
    return validated(schemas.TournamentsResponse, parsing.json_object(document), schema=schemas.LIST, url=document.url)


def _tournaments(document: Document) -> Iterator[int]:
    for row in _tournaments_response(document).scheduled:
        number = parsing.integer(_unique(row).get("id"))
        if number is None:
            note_unrecognized("scheduled[].tournament.uniqueTournament.id", row)
        else:
            yield number


def _unique(row: Any) -> Mapping[str, Any]:
    """Returns the unique tournament of a row, which only tournaments with lists of their own have."""
    return parsing.mapping(parsing.mapping(parsing.mapping(row).get("tournament")).get("uniqueTournament"))
