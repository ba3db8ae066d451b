"""Where answers come from: the board, the database, and when that is away, what is known last. All speak in the same
values.

A reader finds matches. What hangs on a match is looked up once for each state of it (events), or ten times a second at
most where it changes without the match (line-ups, conflicts, who said what).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any, Protocol

from scraping.api import answers
from scraping.documents import pages, queries, recall
from scraping.documents.absent import absent
from scraping.documents.board import board
from scraping.documents.known import Known
from scraping.documents.memory import memory
from scraping.documents.queries import MatchFilter
from scraping.models import Match, MatchLifecycle
from victoryline.lib import availability

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
        if known.has_another_number(name):
            memory.remember_old_number(name, known.id)
        return known

    def page(self, wanted: MatchFilter, *, before_id: int | None, limit: int) -> tuple[list[Known], bool]:
        rows, has_more = queries.page_of_matches(wanted, before_id=before_id, limit=limit)
        found = [Known.of(row) for row in rows]
        for known in found:
            memory.remember(known)
        memory.remember_page(recall.list_question(wanted, before_id, limit), [[each.id for each in found], has_more])
        return found, has_more


class FromBoard:
    """What this process follows. What is not on the board (archived, joined, not there) is asked for and set aside."""

    def __init__(self) -> None:
        self._is_away = availability.database.is_away()

    def match(self, name: str) -> Known | None:
        match_id = board.id_of(name)
        known = None if match_id is None else self._held(match_id)
        if known is None:
            known = self._beside(name)
        return _as_cached(known) if self._is_away and known is not None else known

    def page(self, wanted: MatchFilter, *, before_id: int | None, limit: int) -> tuple[list[Known], bool]:
        everything, is_complete = board.newest_first(), board.is_complete
        if wanted.lifecycle == MatchLifecycle.ARCHIVED or (board.is_expecting and not self._is_away):
            return self._behind().page(wanted, before_id=before_id, limit=limit)
        found = list(islice((each for each in everything if _is_next(each, wanted, before_id)), limit + 1))
        if len(found) <= limit and not is_complete:
            return self._behind().page(wanted, before_id=before_id, limit=limit)
        some = found[:limit]
        return [_as_cached(each) for each in some] if self._is_away else some, len(found) > limit

    def _held(self, match_id: int) -> Known | None:
        return board.held(match_id) if self._is_away else board.get(match_id)

    def _beside(self, name: str) -> Known | None:
        """What it has become may be on the board, and go on there."""
        known = board.aside(name) or self._asked(name)
        return None if known is None else self._held(known.id) or known

    def _asked(self, name: str) -> Known | None:
        known = self._behind().match(name)
        if known is not None and not self._is_away and self._may_wait(name, known):
            board.put_aside(name, known)
        return known

    def _may_wait(self, name: str, known: Known) -> bool:
        """It is archived, or is on the board under another name. One that is there and only waits to be looked up, or
        is in play and not held because there are so many, is asked for each time: an answer is not seconds late."""
        return known.lifecycle == MatchLifecycle.ARCHIVED or (board.holds(known.id) and board.id_of(name) != known.id)

    def _behind(self) -> Reader:
        return LastKnown() if self._is_away else FromDatabase()


def _is_next(known: Known, wanted: MatchFilter, before_id: int | None) -> bool:
    return (before_id is None or known.id < before_id) and recall.is_wanted(known, wanted)


def _as_cached(known: Known) -> Known:
    return replace(known, data_source="cache")


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
