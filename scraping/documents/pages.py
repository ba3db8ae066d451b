"""What was worked out for an answer once is kept until what it was worked out from has changed.

Guards the database against being asked the same by every request: the second caller who wants the events of a match
after row 40 gets what the first one got, as long as the match has the same `version`. While the database is away the
page that was remembered last is the answer, whatever its version; one that nobody has asked for before is NotKnown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any

import orjson

from scraping.documents.known import NotKnown
from scraping.documents.memory import Memory
from victoryline.lib import availability, pg_wait
from victoryline.lib.database_errors import DATABASE_AWAY

store = Memory()


def read(question: Hashable, version: Hashable, load: Callable[[], Any], *, what: str) -> Any:
    """What `load` returns (plain JSON values), or what it returned last time for this question and version.

    `what` names it for people, where it is NotKnown. What `load` raises is not remembered.
    """
    mark = repr(version).encode()
    held = store.get(question)
    if held is not None and held.startswith(mark + b"\0"):
        return _plain(held)
    if not availability.database.is_away():
        try:
            with pg_wait.within(availability.READ_SECONDS):
                found = load()
        except DATABASE_AWAY as error:
            availability.database.report(error)
        else:
            _remember(question, mark, found)
            return found
    if held is None:
        raise NotKnown(what)
    return _plain(held)


def tenth_of_a_second() -> int:
    """A version for what changes without leaving a mark: the present tenth of a second."""
    return int(time.monotonic() * 10)


def forget() -> None:
    """What was worked out, all of it."""
    store.clear()


def _plain(held: bytes) -> Any:
    return orjson.loads(held.partition(b"\0")[2])


def _remember(question: Hashable, mark: bytes, found: Any) -> None:
    try:
        store.put(question, mark + b"\0" + orjson.dumps(found))
    except (orjson.JSONEncodeError, ValueError):
        return  # a number beyond 64 bits, a lone surrogate: asked for anew each time
