"""Data that belongs to a match: events, earlier states, line-ups, conflicts, provenance.

Read through the document cache: once for each state of the match if it changes with the match, at most ten times a
second otherwise. Raises NotCachedError while the database is away and the cache does not have it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from scraping.api import history_problems
from scraping.api.bodies import MatchDocument, SourceReading
from scraping.api.history_bodies import (
    ConflictRow,
    EventRow,
    LineupDocument,
    SnapshotDocument,
    SnapshotItem,
)
from scraping.documents import queries
from scraping.documents.cache import documents
from scraping.documents.cached_match import CachedMatch
from victoryline.lib.times import as_utc_iso

Row = dict[str, Any]
LISTED_SECONDS = 10  # a cached list of snapshots may contain deleted ones


def at_sequence(match: CachedMatch, sequence: int) -> Row | None:
    """Returns an earlier state, which never changes; None if it is no longer kept."""

    def load() -> Row | None:
        row = queries.at_sequence(match.id, sequence)
        return None if row is None else SnapshotDocument.render(row)

    return documents.derived(("at-sequence", match.id, sequence), 0, load, what="this state of the match")


def at_time(match: CachedMatch, moment: datetime) -> Row | None:
    """Returns the state of a time, valid until the match changes: a poll may just be committing."""

    def load() -> Row | None:
        row = queries.at_time(match.id, moment)
        return None if row is None else SnapshotDocument.render(row)

    question = ("at-time", match.id, as_utc_iso(moment))
    return documents.derived(question, match.sequence, load, what="this state of the match")


def oldest(match: CachedMatch) -> history_problems.Oldest:
    def load() -> history_problems.Oldest:
        found = queries.oldest_kept(match.id)
        return None if found is None else (found[0], as_utc_iso(found[1]))

    question = ("oldest", match.id)
    return documents.derived(question, documents.short_version(), load, what="the age of this match's history")


def snapshots(match: CachedMatch, *, before: int | None, limit: int) -> tuple[list[Row], bool]:
    def load() -> tuple[list[Row], bool]:
        rows, has_more = queries.page_of_snapshots(match.id, before=before, limit=limit)
        return [SnapshotItem.render(row) for row in rows], has_more

    version = match.sequence, int(time.monotonic() / LISTED_SECONDS)
    return documents.derived(("snapshots", match.id, before, limit), version, load, what="these snapshots")


@dataclass(frozen=True)
class Feed:
    """Rows of a match's feed. `last`: the id of the row to continue after."""

    rows: list[Row]
    has_more: bool
    last: int
    sequence: int  # the rows are complete up to here; while the database is away it may be older than the match


def events(match: CachedMatch, *, since: int, since_sequence: int, limit: int) -> Feed:
    """Returns a page of the feed. A new row means a new sequence, so one query serves all requests until then."""

    def load() -> tuple[list[Row], bool, int, int]:
        rows, more = queries.page_of_events(match.id, since=since, since_sequence=since_sequence, limit=limit)
        if not rows and since and 0 < queries.last_event(match.id) < since:
            raise history_problems.ahead_in_feed(match, since)
        seen = {"is_served": True, "sequence__lte": since_sequence}
        last = rows[-1].pk if rows else max(since, queries.last_event(match.id, **seen) if since_sequence else 0)
        return [EventRow.render(row) for row in rows], more, last, match.sequence

    question = ("events-of", match.id, since, since_sequence, limit)
    return Feed(*documents.derived(question, match.sequence, load, what="these events"))


def provisional(match: CachedMatch) -> Row | None:
    """Returns a lower score that is not confirmed yet. It changes nothing that is served, so it has no sequence."""
    load = partial(queries.column_of, match.id, "provisional")
    question, version = ("provisional", match.id), documents.short_version()
    return documents.derived(question, version, load, what="the provisional score") or None


def provenance(match: CachedMatch) -> Row:
    """Returns the source, the time and the other values of each field."""
    load = partial(queries.column_of, match.id, "provenance")
    return documents.derived(("provenance", match.id), documents.short_version(), load, what="this provenance")


def readings(match: CachedMatch) -> list[Row]:
    """Returns the latest reading of each source, with its integrity. Most readings do not change the match."""

    def load() -> list[Row]:
        return [SourceReading.render(ref) for ref in queries.readings_of(match.id)]

    return documents.derived(("readings", match.id), documents.short_version(), load, what="the sources' readings")


def lineups(match: CachedMatch) -> list[Row]:
    """Returns one row for each side, source and snapshot type. Reading line-ups does not change the match."""

    def load() -> list[Row]:
        return [LineupDocument.render(row) for row in queries.lineups_of(match.id)]

    return documents.derived(("lineups", match.id), documents.short_version(), load, what="these line-ups")


def conflicts(match: CachedMatch, *, is_open_only: bool) -> list[Row]:
    def load() -> list[Row]:
        return [ConflictRow.render(row) for row in queries.conflicts_of(match.id, is_open_only=is_open_only)]

    question = ("conflicts", match.id, is_open_only)
    return documents.derived(question, documents.short_version(), load, what="these conflicts")


def as_it_was(match: CachedMatch, snapshot: Row) -> CachedMatch:
    """Returns the match with the state of an earlier snapshot.

    Fields without history (its names, a start that the snapshot lacks) have their present values.
    """
    state, captured_at = snapshot["payload"], datetime.fromisoformat(snapshot["captured_at"])
    identity = {name: state[name] for name in ("sport", "title", "status", "phase") if state.get(name)}
    start = state.get("start_time")
    return replace(
        match,
        **identity,
        sequence=snapshot["sequence"],
        start_time=datetime.fromisoformat(start) if start else match.start_time,
        scraped_at=captured_at,
        changed_at=datetime.fromisoformat(snapshot["created_at"]),
        pause_until=None,
        frozen_at=None,
        data_source=snapshot["data_source"],
        payload=state,
    )


def state_of(match: CachedMatch) -> Row:
    """Returns the fields of the match document that a delta may contain: those of its payload."""
    body = MatchDocument.render(match)
    return {name: value for name, value in body.items() if name in match.payload}
