"""Sofascore's responses: the event of a match, from its endpoint or its page, and the addresses of matches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson

from scraping.errors import LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import DiscoveredMatch, Sport, Status
from scraping.sources import parsing
from scraping.sources.base import Document, Reading
from scraping.sources.parsing import note_unrecognized
from scraping.sources.sofascore.event import sport_of

_EVIDENCE_CHARACTERS = 20_000
OF_ANOTHER_MATCH = "another match's"
T = TypeVar("T")
RawEvent = Mapping[str, Any]
Check = Callable[[RawEvent, str], None]
_SCRIPT = re.compile(r"""<script\b[^>]*\bid=["']__NEXT_DATA__["'][^>]*>(.*?)</script>""", re.DOTALL | re.IGNORECASE)
EXAMPLE = ".../football/match/flamengo-santos/GOsuO#id:15052834, with the part after #"
CRICKET_EXAMPLE = ".../cricket/match/india-west-indies/kfAbspfAb#id:15884177, with the part after #"
_PATH = re.compile(
    r"(?:/[a-z]{2}(?:-[a-z]{2})?)?/(football|cricket)/match/([\w%-]{1,200})/([A-Za-z0-9]{1,40})/?", re.ASCII
)
_FRAGMENT = re.compile(r"id:([1-9]\d{0,14})(?:,.*)?", re.ASCII)


def event_in(reading: Reading, sport: str, check: Check) -> tuple[RawEvent, tuple[str, ...]]:
    """Returns the event, checked to be the requested one, and the names of the sources that failed."""
    document, page = reading.document("event"), reading.document("page")
    try:
        return _checked(_answered(document), reading, sport, check), ()
    except SchemaBreak as broken:
        if page is None:
            raise
        rendered = event_in_page(page.text())
        if rendered is not None:
            return _checked(rendered, reading, sport, check), ("event_answer",)
        parsing.raise_if_challenge(page.text(), page.url)
        message = f"{broken}; the page has no event in __NEXT_DATA__"
        raise LayoutChanged(message, url=page.url, evidence=page.text()[:_EVIDENCE_CHARACTERS]) from broken


def optional(document: Document | None, check: Callable[[Any, str], T]) -> T | None:
    """Returns the checked response, or None where it is missing or invalid: a match can be read without it.

    An invalid response is counted, and the payload lists the events as missing.
    """
    if document is None or document.status >= 400:
        return None
    try:
        return check(document.json(), document.url)
    except SchemaBreak as broken:
        note_unrecognized(document.name, broken)
        return None


def note_other_match(name: str) -> None:
    """Counts a response that cannot be about the requested match and is not used."""
    note_unrecognized(name, OF_ANOTHER_MATCH)


def _answered(document: Document | None) -> RawEvent:
    if document is None or document.status >= 400:
        raise SchemaBreak("the event endpoint gave no response")
    return parsing.mapping(parsing.json_object(document).get("event"))


def _checked(event: RawEvent, reading: Reading, sport: str, check: Check) -> RawEvent:
    stated_sport = sport_of(event)
    if stated_sport not in (sport, ""):
        raise PayloadRejected(f"the event is about another sport: {stated_sport}", url=reading.ref.url)
    check(event, reading.ref.url)
    stated, wanted = str(event["id"]), reading.ref.source_event_id
    if stated != wanted:
        raise PayloadRejected(f"the event is about another match: {stated} instead of {wanted}", url=reading.ref.url)
    return event


def event_in_page(html: str) -> Mapping[str, Any] | None:
    """Returns the event of the page; None where it is missing or no JSON."""
    found = _SCRIPT.search(html)
    if found is None:
        return None
    try:
        data = orjson.loads(found.group(1))
    except orjson.JSONDecodeError:
        return None
    props = parsing.mapping(parsing.mapping(parsing.mapping(data).get("props")).get("pageProps"))
    for holder in (props, parsing.mapping(props.get("initialProps"))):
        if event := parsing.mapping(holder.get("event")):
            return event
    return None


def match_at(url: str, base_url: str, sport: Sport) -> DiscoveredMatch | None:
    """Returns the match of an address; its number is required: all meetings of two teams share a code such as GOsuO."""
    base = base_url.rstrip("/")
    parts = urlsplit(url)
    path = _PATH.fullmatch(parts.path.removeprefix(urlsplit(base).path))
    number = _FRAGMENT.fullmatch(parts.fragment)
    if path is None or number is None or path[1] != sport.value:
        return None
    return DiscoveredMatch(
        source_event_id=number[1],
        url=f"{base}/en/{sport.value}/match/{path[2]}/{path[3]}#id:{number[1]}",
        sport=sport,
        status=Status.UPCOMING,  # until it is read
    )


def url_of(event: Mapping[str, Any], base_url: str, sport: Sport) -> str:
    slug, custom = parsing.text(event.get("slug"), 200), parsing.text(event.get("customId"), 40)
    return f"{base_url.rstrip('/')}/en/{sport.value}/match/{slug}/{custom}#id:{parsing.text(event.get('id'), 40)}"
