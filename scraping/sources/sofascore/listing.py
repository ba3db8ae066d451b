"""Lists of matches: live and scheduled ones, the rounds of a season, and the matches of a day.

The list of a sport's whole day no longer exists; each tournament has its own. Cricket has some dozens of tournaments on
a day at most, which are listed page by page. Football has hundreds: only the one that we follow is requested.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport
from scraping.sources import parsing
from scraping.sources.base import Document, Endpoint, ListPlan, Reading, Request
from scraping.sources.parsing import note_unrecognized, validated
from scraping.sources.sofascore import schemas, site
from scraping.sources.sofascore.event import series_of, status_by_type, teams_of, title_of
from scraping.sources.sofascore.schemas import Brief, TournamentsResponse

ROUND_FIELDS: tuple[str, ...] = ("tournament", "season", "round")
FOLLOWED_TOURNAMENT = 325  # Brasileirão Série A
TOURNAMENTS, TOURNAMENT_LIST = "tournaments", "fixtures:"
AT_ONCE = 8
_SCHEDULED = re.compile(r"/api/v1/\S*/scheduled-events/\d{4}-\d{2}-\d{2}(?:\?|$)", re.ASCII)


def plan(base_url: str, sport: Sport, *requests: tuple[str, str]) -> ListPlan:
    """Visits the sport's page for the session; `requests` are names and paths of lists that no page loads by itself."""
    home = _home(base_url, sport)
    endpoints = (
        Endpoint("live_list", re.compile(rf"/api/v1/sport/{sport.value}/events/live(?:\?|$)")),
        Endpoint("scheduled", _SCHEDULED, is_required=False),
    )
    return ListPlan(
        url=home, endpoints=endpoints, requests=tuple(_request(base_url, sport, name, path) for name, path in requests)
    )


def round_path(asked: Mapping[str, int]) -> str:
    return "unique-tournament/{tournament}/season/{season}/events/round/{round}".format_map(asked)


def day_path(tournament: int, day: date) -> str:
    return f"unique-tournament/{tournament}/scheduled-events/{day.isoformat()}"


def tournaments_path(sport: Sport, day: date, page: int) -> str:
    return f"sport/{sport.value}/scheduled-tournaments/{day.isoformat()}/page/{page}"


def _home(base_url: str, sport: Sport) -> str:
    return f"{base_url.rstrip('/')}/{'' if sport is Sport.FOOTBALL else sport.value}"


def _request(base_url: str, sport: Sport, name: str, path: str) -> Request:
    headers = {"accept": "*/*", "referer": _home(base_url, sport)}
    return Request(name, f"{base_url.rstrip('/')}/api/v1/{path}", headers=headers)


def matches_of(reading: Reading, base_url: str, sport: Sport) -> list[DiscoveredMatch]:
    """Returns the matches of both lists; raises LayoutChanged if both are missing, as one is when its address moves."""
    lists = [one for name in ("live_list", "scheduled") if (one := site.usable(reading.document(name))) is not None]
    if not lists:
        page = reading.document("page")
        message = "no list of matches found; tried live_list, scheduled"
        raise parsing.layout_changed(message, page.text() if page else "", base_url)
    return listed_matches(lists, base_url, sport)


def listed_matches(documents: Iterable[Document | None], base_url: str, sport: Sport) -> list[DiscoveredMatch]:
    """Returns the matches of these lists, each once; invalid rows and those of another sport are left out."""
    rows = [row for document in documents for row in _events_in(document)]
    return parsing.unique_matches(rows, lambda row: _match_of(row, base_url, sport))


def _events_in(document: Document | None) -> list[Any]:
    """Returns the rows of a list. They are validated one by one: an invalid row must not hide the others."""
    listed = parsing.json_object(document).get("events") if document else None
    return validated(list[Any], listed, schema=schemas.LIST, url=document.url if document else "", path="events")


def _match_of(row: Any, base_url: str, sport: Sport) -> DiscoveredMatch | None:
    event = Brief.model_validate(row)
    if site.sport_of(event) not in (sport.value, ""):
        return None
    if event.id is None:
        raise SchemaBreak(f"{schemas.LIST}: events[].id (field required)")
    status, _ = status_by_type(event.status)
    teams = teams_of(event) if event.homeTeam.name and event.awayTeam.name else None
    return DiscoveredMatch(
        source_event_id=str(event.id),
        url=site.match_url(base_url, sport, event.slug[:200], event.customId[:40], str(event.id)),
        title=title_of(event),
        sport=sport,
        status=status,
        start_time=parsing.moment(event.startTimestamp),
        teams=(teams.team_a, teams.team_b) if teams else (),
        series=series_of(event, sport),
    )


def round_matches(reading: Reading, base_url: str, asked: Mapping[str, int]) -> list[DiscoveredMatch]:
    """Returns each match of the round once; raises PayloadRejected for a row of another round."""
    try:
        rows = _events_in(reading.document("round"))
    except SchemaBreak as broken:
        raise SchemaBreak(f"the response has no list of the round's matches: {broken}", url=reading.ref.url) from broken

    def match_of(row: Mapping[str, Any]) -> DiscoveredMatch:
        event = Brief.model_validate(row)
        stated = (event.league_id, event.season_id, event.round)
        for name, value in zip(ROUND_FIELDS, stated, strict=True):
            if value is not None and value != asked[name]:
                raise PayloadRejected(f"requested {name} {asked[name]} and received a match of {name} {value}")
        match = _match_of(row, base_url, Sport.FOOTBALL)
        if match is None:
            named = parsing.text(row.get("id"), 40) or "one without an id"
            raise SchemaBreak(f"a match of the round cannot be read: {named}", url=reading.ref.url)
        return match

    return parsing.unique_matches(map(parsing.mapping, rows), match_of, is_strict=True)


def tournament_requests(readings: Sequence[Reading], base_url: str, day: date, sport: Sport) -> tuple[Request, ...]:
    """Returns the next requests: the day's next page, then the lists of the tournaments, a few at a time."""
    documents = [one for reading in readings if (one := site.usable(reading.document(TOURNAMENTS))) is not None]
    pages = [
        validated(TournamentsResponse, parsing.json_object(one), schema=schemas.LIST, url=one.url) for one in documents
    ]
    if pages and pages[-1].hasNextPage:
        return (_request(base_url, sport, TOURNAMENTS, tournaments_path(sport, day, len(pages) + 1)),)
    wanted: dict[str, int] = {}
    for row in (row for page in pages for row in page.scheduled):
        if row.id is None:
            note_unrecognized("scheduled[].tournament.uniqueTournament.id", row)
        else:
            wanted[f"{TOURNAMENT_LIST}{row.id}"] = row.id
    asked = {name for reading in readings for name in reading.documents}
    missing = [name for name in wanted if name not in asked][:AT_ONCE]
    return tuple(_request(base_url, sport, name, day_path(wanted[name], day)) for name in missing)


def tournament_matches(reading: Reading, base_url: str, sport: Sport) -> list[DiscoveredMatch]:
    lists = [one for name, one in reading.documents.items() if name.startswith(TOURNAMENT_LIST) and one.status < 400]
    return listed_matches(lists, base_url, sport)
