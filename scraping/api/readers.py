"""Where answers come from: the database, and when that is away, what is known last. Both speak in the same values.

A reader finds matches. What hangs on a match is looked up once for each state of it (events), or ten times a second at
most where it changes without the match (line-ups, conflicts, who said what).
"""

from __future__ import annotations

from typing import Any, Protocol

from scraping import queries
from scraping.api import answers
from scraping.models import Match
from scraping.queries import MatchFilter
from scraping.rendered import pages, recall
from scraping.rendered.absent import absent
from scraping.rendered.known import Known
from scraping.rendered.memory import memory

Row = dict[str, Any]


class Reader(Protocol):
    def match(self, name: str) -> Known | None:
        """By its number or its key at a source; None when there is no such match."""
        ...

    def page(self, wanted: MatchFilter, *, before_id: int | None, limit: int) -> tuple[list[Known], bool]:
        """Newest first, and whether there are more."""
        ...


class FromDatabase:
    """Remembers what it reads, for the time when it can't."""

    def match(self, name: str) -> Known | None:
        if not queries.may_be_a_name(name) or (not memory.knows(name) and absent.is_absent(name)):
            return None
        row = queries.find_match(name) or _looked_for_twice(name)
        if row is None:
            return None
        known = Known.of(row)
        memory.remember(known)
        return known

    def page(self, wanted: MatchFilter, *, before_id: int | None, limit: int) -> tuple[list[Known], bool]:
        rows, has_more = queries.page_of_matches(wanted, before_id=before_id, limit=limit)
        found = [Known.of(row) for row in rows]
        for known in found:
            memory.remember(known)
        memory.remember_page(recall.list_question(wanted, before_id, limit), [[each.id for each in found], has_more])
        return found, has_more


def _looked_for_twice(name: str) -> Match | None:
    """There was none: look again after having noted how things stand, so that no match is taken for absent."""
    version = absent.version()
    row = queries.find_match(name)
    if row is None:
        absent.remember(name, version)
    return row


class LastKnown:
    """Raises NotKnown where the database would have to be asked."""

    def match(self, name: str) -> Known | None:
        return recall.match(name)

    def page(self, wanted: MatchFilter, *, before_id: int | None, limit: int) -> tuple[list[Known], bool]:
        return recall.page(wanted, before_id=before_id, limit=limit)


def events(match: Known, *, since: int, limit: int) -> tuple[list[Row], bool]:
    """Rows of the feed, as answers show them, and whether there are more. A new row is a new sequence of its match."""

    def load() -> list[Any]:
        rows, has_more = queries.page_of_events(match.id, since=since, limit=limit)
        return [[answers.event_row(row) for row in rows], has_more]

    found, has_more = pages.read(("events", match.id, since, limit), match.sequence, load, what="these events")
    return found, has_more


def conflicts(match: Known, *, is_open_only: bool) -> list[Row]:
    """What the match's sources disagree about, as answers show it."""

    def load() -> list[Row]:
        return [answers.conflict_row(row) for row in queries.conflicts_of(match.id, is_open_only=is_open_only)]

    found: list[Row] = pages.read(
        ("conflicts", match.id, is_open_only), pages.tenth_of_a_second(), load, what="these conflicts"
    )
    return found


def provenance(match: Known) -> Row:
    """By field: who said it, when, and what others say."""
    found: Row = pages.read(
        ("provenance", match.id),
        pages.tenth_of_a_second(),
        lambda: queries.provenance_of(match.id),
        what="this provenance",
    )
    return found


def lineups(match: Known) -> list[Row]:
    """Who plays: one row a side, source and kind of snapshot, as answers show them.

    They come with readings of their own, which leave the match as it is.
    """

    def load() -> list[Row]:
        return [answers.lineup_row(row) for row in queries.lineups_of(match.id)]

    found: list[Row] = pages.read(("lineups", match.id), pages.tenth_of_a_second(), load, what="these line-ups")
    return found
