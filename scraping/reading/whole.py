"""A match as a whole: its state and every event of it, or an error. Half a match is never passed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from scraping.errors import PayloadRejected, Transient
from scraping.payloads import Event, Payload, Sport, Status
from scraping.reading.reader import Reader, Target
from scraping.readings import Reading, evidence_from


def read_whole(reader: Reader, target: Target, *, is_enough: Callable[[Payload], bool]) -> tuple[Reading, Payload]:
    """The match with all its events in one payload. `is_enough`: everything before this page is stored already."""
    reading, payload = reader.scorecard(replace(target, is_quiet=True))
    if payload.is_partial_state:
        with evidence_from(reading):
            raise PayloadRejected(
                "only a part of the match could be read, and a job takes whole ones", url=target.ref.url
            )
    if payload.events_are_complete or not _owes_events(payload):
        return reading, payload
    pages = reader.older_events(target, is_enough=is_enough)
    for page in pages:
        if page.events_are_complete:  # one page has all of them, and the state that they agree with
            return reading, page
    if not any(event.ordinal is not None for page in pages for event in page.events):
        raise Transient("the list of events does not agree with the score yet", url=target.ref.url)
    events = _newest_first(payload.events, *(page.events for page in pages))
    return reading, payload.model_copy(update={"events": events})


def _owes_events(payload: Payload) -> bool:
    """Before the first ball there is nothing to list, and a match that was called off may never have had one."""
    if payload.events or "events" in payload.integrity.missing_fields:
        return True
    state = payload.state
    if state.sport is Sport.CRICKET:
        return any(innings.runs or innings.wickets or innings.overs != "0.0" for innings in state.innings)
    return state.status in (Status.LIVE, Status.COMPLETED)  # a list without goals would have said that it is complete


def _newest_first(*pages: Iterable[Event]) -> tuple[Event, ...]:
    """Each event once, as the source lists them; of two readings of one event the later page's counts."""
    found: dict[str, Event] = {}
    for page in pages:
        for event in page:
            found[event.id] = event
    return tuple(found.values())
