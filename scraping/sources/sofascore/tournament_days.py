"""The matches of a day in two steps: which tournaments play on it, page by page, and then each tournament's own list.

The list of a sport's whole day is gone. Cricket has some dozens of tournaments on a day at most; football has hundreds,
and is asked for the one that we follow (`fixtures.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from scraping.payloads import DiscoveredMatch, Sport
from scraping.sources import parsing
from scraping.sources.base import Document, ListPlan, Reading, Request
from scraping.sources.parsing import note_unrecognized, validated
from scraping.sources.sofascore import listing, schemas
from scraping.sources.sofascore.answers import body_of

DAY, TOURNAMENT = "tournaments", "fixtures:"
AT_ONCE = 8


def plan(base_url: str, day: date, sport: Sport) -> ListPlan:
    """The sport's page earns the session."""
    home = f"{base_url.rstrip('/')}/{sport.value}"
    return ListPlan(url=home, endpoints=listing.endpoints(sport), requests=(_page(base_url, day, sport, 1),))


def more(readings: Sequence[Reading], base_url: str, day: date, sport: Sport) -> tuple[Request, ...]:
    """What to ask after these: the day's next page, then the tournaments' own lists, a few at a time."""
    days = [one for reading in readings if (one := reading.document(DAY)) is not None and one.status < 400]
    if days and _answer(days[-1]).hasNextPage:
        return (_page(base_url, day, sport, len(days) + 1),)
    asked = {name for reading in readings for name in reading.documents}
    wanted = {f"{TOURNAMENT}{number}": number for document in days for number in _tournaments(document)}
    return tuple(
        _request(base_url, sport, name, f"unique-tournament/{number}/scheduled-events/{day.isoformat()}")
        for name, number in wanted.items()
        if name not in asked
    )[:AT_ONCE]


def matches_of(reading: Reading, base_url: str, sport: Sport) -> list[DiscoveredMatch]:
    """Of the tournaments' lists among what was read, each match once."""
    found: dict[str, DiscoveredMatch] = {}
    lists = [one for name, one in reading.documents.items() if name.startswith(TOURNAMENT) and one.status < 400]
    for document in lists:
        for row in schemas.listed(body_of(document), url=document.url):
            match = listing.match_of(row, base_url, sport)
            if match is not None:
                found.setdefault(match.source_event_id, match)
    return list(found.values())


def _page(base_url: str, day: date, sport: Sport, number: int) -> Request:
    path = f"sport/{sport.value}/scheduled-tournaments/{day.isoformat()}/page/{number}"
    return _request(base_url, sport, DAY, path)


def _request(base_url: str, sport: Sport, name: str, path: str) -> Request:
    home = base_url.rstrip("/")
    return Request(name, f"{home}/api/v1/{path}", headers={"accept": "*/*", "referer": f"{home}/{sport.value}"})


def _answer(document: Document) -> schemas.TournamentsResponse:
    return validated(schemas.TournamentsResponse, body_of(document), schema=schemas.LIST, url=document.url)


def _tournaments(document: Document) -> Iterator[int]:
    for row in _answer(document).scheduled:
        number = parsing.integer(_unique(row).get("id"))
        if number is None:
            note_unrecognized("scheduled[].tournament.uniqueTournament.id", row)
        else:
            yield number


def _unique(row: Any) -> Mapping[str, Any]:
    """A tournament that is part of no other has no lists of its own."""
    return parsing.mapping(parsing.mapping(parsing.mapping(row).get("tournament")).get("uniqueTournament"))
