"""Earlier states of a match and what hangs on them, looked up once and remembered, as `readers` does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from scraping.api import answers, history_problems
from scraping.api.history_problems import Oldest
from scraping.documents import history, pages, queries
from scraping.documents.known import Known, NotKnown
from scraping.models import Snapshot
from scraping.payloads import MatchState
from victoryline.lib.http.problems import DatabaseAway
from victoryline.lib.times import as_utc_iso

Row = dict[str, Any]
FIELDS = tuple(MatchState.model_fields)
LISTED_SECONDS = 10  # how long a list of snapshots may show one that was pruned since


class NotKeptError(Exception):
    """There is no such snapshot, or none any more."""


def at_sequence(match: Known, sequence: int) -> Row:
    """What was written is never changed, so it is remembered for ever. Raises NotKeptError."""
    return _snapshot(
        ("at-sequence", match.id, sequence), 0, match, lambda: history.at_sequence(match.id, sequence), sequence
    )


def at_time(match: Known, moment: datetime) -> Row:
    """A reading that is being written may have begun before `moment`: good until the match changes."""
    return _snapshot(
        ("at-time", match.id, as_utc_iso(moment)), match.sequence, match, lambda: history.at_time(match.id, moment)
    )


def _snapshot(
    question: tuple[object, ...],
    version: int,
    match: Known,
    find: Callable[[], Snapshot | None],
    sequence: int | None = None,
) -> Row:
    def load() -> Row:
        # Whoever asks again and again for what is gone costs ten queries a second at most.
        kept = oldest(match)
        row = None if kept is None or (sequence is not None and sequence < kept[0]) else find()
        if row is None:
            raise NotKeptError
        return {**_row(row), "payload": row.payload, "provenance": row.provenance}

    found: Row = _read(question, version, load, what="this state of the match")
    return found


def oldest(match: Known) -> Oldest:
    def load() -> list[Any] | None:
        found = history.oldest_kept(match.id)
        return None if found is None else [found[0], as_utc_iso(found[1])]

    found = _read(("oldest", match.id), pages.tenth_of_a_second(), load, what="the age of this match's history")
    return None if found is None else (found[0], found[1])


def snapshots(match: Known, *, before: int | None, limit: int) -> tuple[list[Row], bool]:
    def load() -> list[Any]:
        rows, has_more = history.page_of_snapshots(match.id, before=before, limit=limit)
        return [[{**_row(row), "changed": history.changed_fields(row)} for row in rows], has_more]

    version = match.sequence, int(time.monotonic() / LISTED_SECONDS)
    found, has_more = _read(("snapshots", match.id, before, limit), version, load, what="these snapshots")
    return found, has_more


@dataclass(frozen=True)
class Feed:
    """Rows of a match's feed, as answers show them. `last`: the row to go on after."""

    rows: list[Row]
    has_more: bool
    last: int
    sequence: int  # up to here they are complete: while the database is away they may be older than the match


def events(match: Known, *, since: int, since_sequence: int, limit: int) -> Feed:
    """A new row is a new sequence of its match, so one look serves all who ask until then."""

    def load() -> list[Any]:
        rows, more = queries.page_of_events(match.id, since=since, since_sequence=since_sequence, limit=limit)
        if not rows and since and 0 < queries.newest_event(match.id) < since:
            raise history_problems.ahead_in_feed(match, since)
        last = rows[-1].pk if rows else max(since, queries.last_event_until(match.id, since_sequence))
        return [[answers.event_row(row) for row in rows], more, last, match.sequence]

    question = ("events-of", match.id, since, since_sequence, limit)
    return Feed(*_read(question, match.sequence, load, what="these events"))


def provisional(match: Known) -> Row | None:
    """A score that went down and is not believed yet. It changes nothing that is served, so it has no sequence."""
    found: Row = _read(
        ("provisional", match.id),
        pages.tenth_of_a_second(),
        lambda: queries.provisional_of(match.id),
        what="whether its score is in doubt",
    )
    return found or None


def as_it_was(match: Known, snapshot: Row) -> Known:
    """The match with the state of an earlier snapshot. What has no history (its names, its start where none was told)
    is as it is now."""
    state, captured_at = snapshot["payload"], datetime.fromisoformat(snapshot["captured_at"])
    told = {name: state[name] for name in ("sport", "title", "status", "phase") if state.get(name)}
    start = state.get("start_time")
    return replace(
        match,
        **told,
        sequence=snapshot["sequence"],
        start_time=datetime.fromisoformat(start) if start else match.start_time,
        scraped_at=captured_at,
        changed_at=datetime.fromisoformat(snapshot["created_at"]),
        pause_until=None,
        frozen_at=None,
        data_source=snapshot["data_source"],
        payload=state,
    )


def state_of(match: Known) -> Row:
    """Its state as the match document spells it: what a delta speaks of. Without what its payload does not have."""
    body = answers.match_state(match)
    return {name: body[name] for name in FIELDS if name in match.payload}


def _read(question: Hashable, version: Hashable, load: Callable[[], Any], *, what: str) -> Any:
    """The database may go away between the match and what hangs on it: that is a 503 as well."""
    try:
        return pages.read(question, version, load, what=what)
    except NotKnown as error:
        raise DatabaseAway.now(f"What you ask for ({error}) is not among what we know without it. ") from error


def _row(snapshot: Snapshot) -> Row:
    return {
        "sequence": snapshot.sequence,
        "captured_at": as_utc_iso(snapshot.captured_at),
        "created_at": as_utc_iso(snapshot.created_at),
        "checksum": snapshot.checksum,
        "data_source": snapshot.data_source,
        "scraper_id": None if snapshot.scraper_id is None else str(snapshot.scraper_id),
    }
