"""Where answers come from: the database, and when that is away, what is known last. Both speak in the same values."""

from __future__ import annotations

from typing import Any, Protocol

from scraping import queries
from scraping.api import answers
from scraping.models import Match
from scraping.queries import MatchFilter
from scraping.rendered import recall
from scraping.rendered.absent import absent
from scraping.rendered.known import Known
from scraping.rendered.memory import memory

Events = tuple[list[dict[str, Any]], bool]


class Reader(Protocol):
    def match(self, name: str) -> Known | None:
        """By its number or its key at a source; None when there is no such match."""
        ...

    def page(self, wanted: MatchFilter, *, before_id: int | None, limit: int) -> tuple[list[Known], bool]:
        """Newest first, and whether there are more."""
        ...

    def events(self, match_id: int, *, since: int, limit: int) -> Events:
        """Rows of the feed, as answers show them, and whether there are more."""
        ...

    def conflicts(self, match_id: int, *, is_open_only: bool) -> list[dict[str, Any]]:
        """What the match's sources disagree about, as answers show it."""
        ...

    def provenance(self, match_id: int) -> dict[str, Any]:
        """By field: who said it, when, and what others say."""
        ...

    def lineups(self, match_id: int) -> list[dict[str, Any]]:
        """Who plays: one row a side, source and kind of snapshot, as answers show them."""
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

    def events(self, match_id: int, *, since: int, limit: int) -> Events:
        rows, has_more = queries.page_of_events(match_id, since=since, limit=limit)
        found = [answers.event_row(row) for row in rows]
        memory.remember_page(_question(match_id, since, limit), [found, has_more])
        return found, has_more

    def conflicts(self, match_id: int, *, is_open_only: bool) -> list[dict[str, Any]]:
        found = [answers.conflict_row(row) for row in queries.conflicts_of(match_id, is_open_only=is_open_only)]
        memory.remember_page(("conflicts", match_id, is_open_only), found)
        return found

    def provenance(self, match_id: int) -> dict[str, Any]:
        found = queries.provenance_of(match_id)
        memory.remember_page(("provenance", match_id), [found])
        return found

    def lineups(self, match_id: int) -> list[dict[str, Any]]:
        found = [answers.lineup_row(row) for row in queries.lineups_of(match_id)]
        memory.remember_page(("lineups", match_id), found)
        return found


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

    def events(self, match_id: int, *, since: int, limit: int) -> Events:
        answered = memory.page(_question(match_id, since, limit))
        if not isinstance(answered, list):
            raise recall.NotKnown("these events")
        return answered[0], answered[1]

    def conflicts(self, match_id: int, *, is_open_only: bool) -> list[dict[str, Any]]:
        answered = memory.page(("conflicts", match_id, is_open_only))
        if not isinstance(answered, list):
            raise recall.NotKnown("these conflicts")
        return answered

    def provenance(self, match_id: int) -> dict[str, Any]:
        answered = memory.page(("provenance", match_id))
        if not isinstance(answered, list):
            raise recall.NotKnown("this provenance")
        return dict(answered[0])

    def lineups(self, match_id: int) -> list[dict[str, Any]]:
        answered = memory.page(("lineups", match_id))
        if not isinstance(answered, list):
            raise recall.NotKnown("these line-ups")
        return answered


def _question(match_id: int, since: int, limit: int) -> tuple[object, ...]:
    return ("events", match_id, since, limit)
