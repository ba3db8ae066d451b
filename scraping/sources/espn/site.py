"""ESPN's API: its addresses, the JSON bodies of its responses, and what cricket and football have in common.

The address of a match is that of its API response; a browser shows it as plain JSON.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from html import unescape
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import orjson

from scraping.errors import Gone, SchemaBreak
from scraping.payloads import Side, Team
from scraping.readings import PAGE
from scraping.sources import markup, parsing
from scraping.sources.base import Document, ListPlan, Reading, RefInfo, Request
from scraping.sources.espn.schemas import Contender

SPORTS = "/apis/site/v2/sports"
SERIE_A = "bra.1"
_SIDES, NEUTRAL = ("home", "away"), "neutral"
_EVENT_ID = re.compile(r"[1-9]\d{0,14}", re.ASCII)
ContenderT = TypeVar("ContenderT", bound=Contender)


def request(name: str, url: str) -> Request:
    return Request(name, url, headers={"accept": "application/json"})


def plan(url: str) -> ListPlan:
    return ListPlan(url="", endpoints=(), requests=(request("list", url),))


def cricket_list_url(base_url: str, day: date | None = None) -> str:
    dates = f"?dates={day:%Y%m%d}" if day else ""
    return f"{base_url.rstrip('/')}{SPORTS}/cricket/scorepanel{dates}"


def summary_url(base_url: str, league: str, event: str) -> str:
    return f"{base_url.rstrip('/')}{SPORTS}/cricket/{league}/summary?event={event}"


def plays_url(base_url: str, league: str, event: str, *, page: int | None = None, period: int | None = None) -> str:
    """Without a page the source returns the first one and the number of pages; `period`: one innings only."""
    wanted = f"{f'&period={period}' if period else ''}{f'&page={page}' if page else ''}"
    return f"{base_url.rstrip('/')}{SPORTS}/cricket/{league}/playbyplay?event={event}{wanted}"


def league_of(url: str) -> str:
    """Returns the number of the series in a cricket match's address; the source finds a match only in its series."""
    found = re.search(rf"{SPORTS}/cricket/(\d{{1,10}})/", url, re.ASCII)
    return found[1] if found else "0"


def number_in(url: str, name: str) -> int | None:
    number = parse_qs(urlsplit(url).query).get(name, [""])[0]
    return int(number) if parsing.is_number(number) and len(number) < 6 else None


def soccer_list_url(base_url: str, league: str = SERIE_A, dates: str = "") -> str:
    return f"{base_url.rstrip('/')}{SPORTS}/soccer/{league}/scoreboard{f'?dates={dates}' if dates else ''}"


def soccer_match_url(base_url: str, league: str, event: str, start: datetime) -> str:
    return f"{soccer_list_url(base_url, league, dates_of(start.date()))}#{event}"


def soccer_summary_url(url: str, base_url: str, event: str) -> str:
    found = re.search(rf"{SPORTS}/soccer/([a-z][\w.-]{{1,60}})/", url, re.ASCII)
    return f"{base_url.rstrip('/')}{SPORTS}/soccer/{found[1] if found else SERIE_A}/summary?event={event}"


def soccer_request_url(url: str, base_url: str) -> str:
    parts = urlsplit(url)
    path = parts.path[parts.path.find(SPORTS) :] if SPORTS in parts.path else parts.path
    query = f"?{parts.query}" if parts.query else ""
    return f"{base_url.rstrip('/')}{path}{query}"


def dates_of(day: date) -> str:
    """Returns the dates to request for a day of ours: ESPN uses New York days, which begin later."""
    return f"{day - timedelta(days=1):%Y%m%d}-{day:%Y%m%d}" if day > date.min else f"{day:%Y%m%d}"


def ref_of(event: str, url: str) -> RefInfo | None:
    return RefInfo(event, url) if url and _EVENT_ID.fullmatch(event) else None


def body_of(reading: Reading, name: str) -> tuple[Any, str]:
    document = reading.document(name)
    if document is not None and document.status < 400:
        return _accepted(parsing.json_body(document), document.url), document.url
    page = reading.document(PAGE)
    shown = _shown_in(page) if page is not None else None
    if page is None or shown is None:
        raise SchemaBreak(f"the {name} endpoint gave no response", url=reading.ref.url)
    return shown, page.url


def optional_body(document: Document | None) -> Any:
    """Returns the JSON of a response; None where it is missing, no JSON, or states that there is none."""
    if document is None or document.status >= 400:
        return None
    try:
        return _accepted(parsing.json_body(document), document.url)
    except (SchemaBreak, Gone):
        return None


def _shown_in(page: Document) -> Any:
    """Returns the JSON that a browser shows for an address of the API; None where the page shows something else."""
    text = page.text()
    parsing.raise_if_challenge(text, page.url)
    shown = markup.content_of(text, "pre")
    try:
        data = orjson.loads(text if shown is None else unescape(shown))
    except orjson.JSONDecodeError:
        return None
    parsing.raise_if_error_body(data, page.url)
    return _accepted(data, page.url)


def _accepted(data: Any, url: str) -> Any:
    """Raises Gone for {"code": 404, "message": "..."}, which is this API's response for an unknown match."""
    response = parsing.mapping(data)
    if response.keys() <= {"code", "message", "detail"} and parsing.integer(response.get("code")) in (400, 404):
        raise Gone(f"the source knows no such match: {parsing.text(response.get('message'), 100)}", url=url)
    return data


def sides_of(competitors: Sequence[ContenderT], where: str) -> dict[Side, ContenderT]:
    """Returns home and away, where one may follow from the other; at a neutral venue the first one is home."""
    if len(competitors) != len(_SIDES):
        raise SchemaBreak(f"{where} are {len(competitors)} instead of two")
    first, second = competitors
    if first.home_away == "away" or second.home_away == "home":
        first, second = second, first
    stated = (str(first.home_away), str(second.home_away))
    if any(one in _SIDES and one != own for one, own in zip(stated, _SIDES, strict=True)):
        raise SchemaBreak(f"{where} are not one home and one away: {' and '.join(stated)[:60]}")
    for one in stated:
        if one not in _SIDES and one != NEUTRAL:
            parsing.note_unrecognized("competitors[].homeAway", one)
    return {"team_a": first, "team_b": second}


def team_of(competitor: Contender) -> Team:
    team = competitor.team
    return Team(name=parsing.plain(team.display_name, 120), short_name=parsing.plain(team.abbreviation, 24))
