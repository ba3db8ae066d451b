"""Sofascore's responses: the event of a match, from its endpoint or its page, and the addresses of matches."""

from collections.abc import Mapping
from typing import Any, TypeVar

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Sport
from scraping.sources import broken_parts, parsing
from scraping.sources.base import Document, Reading, RefInfo, Request
from scraping.sources.parsing import T, note_unrecognized, validated
from scraping.sources.sofascore import schemas
from scraping.sources.sofascore.schemas import Brief

EventT = TypeVar("EventT", bound=schemas.Event)
INNINGS_OF_A_SIDE = tuple(f"inning{number}" for number in range(1, 5))
NEEDED = ("homeScore", "awayScore", "display", "current", "innings", *INNINGS_OF_A_SIDE)  # of an event


def sport_of(event: Brief) -> str:
    return event.sport or event.homeTeam.sport


def event_requests(ref: RefInfo, base_url: str, part: str) -> tuple[Request, ...]:
    """Requests a part of a match, and the event, which has start time and teams."""
    event = f"{base_url.rstrip('/')}/api/v1/event/{ref.source_event_id}"
    headers = {"accept": "*/*", "referer": ref.url.partition("#")[0] or base_url}
    return Request(part, f"{event}/{part}", headers=headers), Request("event", event, headers=headers)


def usable(document: Document | None) -> Document | None:
    return document if document is not None and document.status < 400 else None


def event_in(reading: Reading, model: type[EventT], sport: Sport) -> tuple[EventT, tuple[str, ...]]:
    """Returns the requested event, and the names of the sources that failed."""
    document, page = usable(reading.document("event")), reading.document("page")
    try:
        if document is None:
            raise SchemaBreak("the event endpoint gave no response")
        data = parsing.json_object(document)
        return _checked(model, parsing.unwrapped(data, "event").get("event"), reading, sport), ()
    except SchemaBreak as broken:
        if page is None:
            raise
        html = page.text()
        if event := _event_in_page(html):
            return _checked(model, event, reading, sport), ("event_answer",)
        message = f"{broken}; the page has no event in __NEXT_DATA__"
        raise parsing.layout_changed(message, html, page.url) from broken


def _checked(model: type[EventT], data: Any, reading: Reading, sport: Sport) -> EventT:
    brief = Brief.model_validate(parsing.mapping(data))
    if sport_of(brief) not in (sport.value, ""):
        raise PayloadRejected(f"the event is about another sport: {sport_of(brief)}", url=reading.ref.url)
    event = validated(
        model, parsing.mapping(data), schema=schemas.EVENT, url=reading.ref.url, path="event", needed=NEEDED
    )
    parsing.refuse_another("the event is", brief.id, reading.ref.source_event_id, reading.ref.url)
    return event


def _event_in_page(html: str) -> Mapping[str, Any]:
    return parsing.mapping(parsing.unwrapped(parsing.next_data(html), "event").get("event"))


def optional(reading: Reading, name: str, kind: type[T], schema: str) -> T | None:
    """Returns the readable rows of a response's list; None where there is none: a match can be read without it."""
    document = usable(reading.document(name))
    if document is None:
        return None
    try:
        body = parsing.mapping(document.json())
    except SchemaBreak as broken:
        broken_parts.note(name, str(broken))
        return None
    return parsing.readable(kind, body.get(name), schema=schema, url=document.url, path=name)


def required(reading: Reading, name: str, kind: type[T], schema: str) -> T:
    document = usable(reading.document(name))
    if document is None:
        raise SchemaBreak(f"the {name} endpoint gave no response", url=reading.ref.url)
    return validated(kind, parsing.json_object(document).get(name), schema=schema, url=document.url, path=name)


def note_other_match(name: str) -> None:
    """Counts a response that cannot be about the requested match and is not used."""
    note_unrecognized(name, "another match's")


def match_url(base_url: str, sport: Sport, slug: str, code: str, number: str) -> str:
    return f"{base_url.rstrip('/')}/en/{sport.value}/match/{slug}/{code}#id:{number}"
