"""Taking the answers out of a reading: which way the event came, and whether it is the one that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from scraping.errors import LayoutChanged, PayloadRejected, SchemaBreak
from scraping.sources import parsing
from scraping.sources.base import Document, Reading
from scraping.sources.parsing import note_unrecognized
from scraping.sources.sofascore.event import sport_of
from scraping.sources.sofascore.page import event_in_page

_EVIDENCE_CHARACTERS = 20_000
FOREIGN = "another match's"
T = TypeVar("T")
Event = Mapping[str, Any]
Check = Callable[[Event, str], None]


def body_of(document: Document) -> Mapping[str, Any]:
    """The body, with challenges and errors told apart from drift."""
    try:
        data = document.json()
    except SchemaBreak:
        parsing.raise_if_challenge(document.text(), document.url)
        raise
    parsing.raise_if_error_body(data, document.url)
    return parsing.mapping(data)


def event_in(reading: Reading, sport: str, check: Check) -> tuple[Event, tuple[str, ...]]:
    """The event, checked to be the one asked for, and which way to it did not work."""
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
    """The checked answer, or nothing where there is none or it is broken: a match lives without it.

    A break is noted, and the payload says that the events are missing: whoever must have them does not get half.
    """
    if document is None or document.status >= 400:
        return None
    try:
        return check(document.json(), document.url)
    except SchemaBreak as broken:
        note_unrecognized(document.name, broken)
        return None


def note_foreign(name: str) -> None:
    """An answer that cannot be about the match that was asked for. It is not used; that it came is not hushed up."""
    note_unrecognized(name, FOREIGN)


def _answered(document: Document | None) -> Event:
    if document is None or document.status >= 400:
        raise SchemaBreak("the event endpoint gave no answer")
    return parsing.mapping(body_of(document).get("event"))


def _checked(event: Event, reading: Reading, sport: str, check: Check) -> Event:
    stated_sport = sport_of(event)
    if stated_sport not in (sport, ""):
        raise PayloadRejected(f"the event is about another sport: {stated_sport}", url=reading.ref.url)
    check(event, reading.ref.url)
    stated, wanted = str(event["id"]), reading.ref.source_event_id
    if stated != wanted:
        raise PayloadRejected(f"the event is about another match: {stated} instead of {wanted}", url=reading.ref.url)
    return event
