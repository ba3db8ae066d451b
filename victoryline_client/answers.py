"""What a call gives back: the data, and how old it is at this very moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Document = dict[str, Any]
Clock = Callable[[], float]

NOT_GOOD = {
    "stale": "The source has not been read for too long; the server is at it.",
    "frozen": "The match has been silent although everything was tried; people have been told.",
    "paused": "The server has stopped reading this match for a while.",
    "unknown": "The match is known and was not read yet.",
}


@dataclass(frozen=True, kw_only=True)
class Freshness:
    """How old the data was when the server answered.

    `state` is fresh, aging, stale, frozen, paused, final or unknown. `next_update_in`: seconds until the server reads
    the source again; None when it won't. `is_from_cache`: its database is away and it answered from memory.
    """

    state: str = "unknown"
    age_seconds: float | None = None
    scraped_at: datetime | None = None
    next_update_in: float | None = None
    is_from_cache: bool = False
    # Our own clock when the question was sent, not when the answer came: an age must never be told too young, and how
    # much of the way was the answer's nobody knows.
    asked_at: float = field(default_factory=time.monotonic, compare=False)
    clock: Clock = field(default=time.monotonic, compare=False, repr=False)

    def age_now(self) -> float | None:
        """Seconds since the source was last read; grows while you hold the answer. None: it never was."""
        return None if self.age_seconds is None else self.age_seconds + max(0.0, self.clock() - self.asked_at)

    def next_update_now(self) -> float | None:
        """Seconds until the server reads the source again, counted down to 0."""
        if self.next_update_in is None:
            return None
        return max(0.0, self.next_update_in - max(0.0, self.clock() - self.asked_at))

    @property
    def is_final(self) -> bool:
        return self.state == "final"

    @property
    def warning(self) -> str:
        """What to tell people; empty while all is well."""
        return NOT_GOOD.get(self.state, "")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`data` is the answer's JSON: the same object as long as the server says that nothing changed (`is_unchanged`).

    The ages inside `data` are as old as `data` itself. `freshness` is of this very answer: use that.
    """

    data: Document
    freshness: Freshness
    etag: str = ""
    is_unchanged: bool = False
    request_id: str = ""

    def age_now(self) -> float | None:
        return self.freshness.age_now()


def freshness_of(headers: Mapping[str, str], *, asked_at: float, clock: Clock) -> Freshness:
    """From an answer's headers, their names in lower case. What can't be read counts as not said."""
    return Freshness(
        state=headers.get("x-data-state", "unknown"),
        age_seconds=_number(headers.get("x-data-age-seconds")),
        scraped_at=_time(headers.get("x-data-freshness")),
        next_update_in=_number(headers.get("x-next-update-in")),
        is_from_cache=headers.get("x-data-source") == "cache",
        asked_at=asked_at,
        clock=clock,
    )


def freshness_of_item(item: Mapping[str, Any], whole: Freshness) -> Freshness:
    """Of one match in a list, which has an age of its own."""
    told = item.get("freshness")
    if not isinstance(told, Mapping):
        return whole
    return Freshness(
        state=str(told.get("state") or "unknown"),
        age_seconds=_number(told.get("age_seconds")),
        scraped_at=_time(told.get("scraped_at")),
        next_update_in=_number(told.get("next_update_in")),
        is_from_cache=whole.is_from_cache,
        asked_at=whole.asked_at,
        clock=whole.clock,
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
