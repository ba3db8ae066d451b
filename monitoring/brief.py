"""A value that is worked out at most once in a while, however many ask for it.

Guards the database against its own observers: a thousand open status pages cost as much as one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")
_all: WeakSet[Brief[Any]] = WeakSet()


class Brief(Generic[T]):
    """Calls `build` when the last value is older than `seconds`.

    Callers that come meanwhile get the last value, as long as it is not older than `at_most_seconds`; else they wait.
    A value is as old as the moment at which its building began: that is when its figures were true. One that somebody
    else has built brings the age it has by then along (`age_of`).
    """

    def __init__(
        self,
        build: Callable[[], T],
        *,
        seconds: float = 1.0,
        at_most_seconds: float = 3.0,
        age_of: Callable[[T], float] | None = None,
    ) -> None:
        self._build = build
        self._seconds = seconds
        self._at_most_seconds = at_most_seconds
        self._age_of = age_of
        self._lock = threading.Lock()
        self._value: tuple[float, T] | None = None
        self.took_seconds = 0.0
        _all.add(self)

    def get(self) -> T:
        if (held := self._held(self._seconds)) is not None:
            return held[1]
        if self._is_on_its_way() and (held := self._held(self._at_most_seconds)) is not None:
            return held[1]
        with self._lock:
            if (held := self._held(self._seconds)) is not None:
                return held[1]
            return self._built()

    def refresh(self) -> None:
        """Build now, unless somebody has meanwhile."""
        with self._lock:
            if self._held(self._seconds) is None:
                self._built()

    @property
    def age_seconds(self) -> float:
        held = self._value
        return float("inf") if held is None else time.monotonic() - held[0]

    def forget(self) -> None:
        self._value = None

    def _built(self) -> T:
        began = time.monotonic()
        value = self._build()
        ended = time.monotonic()
        self.took_seconds = ended - began
        self._value = (began if self._age_of is None else min(ended, ended - self._age_of(value)), value)
        return value

    def _is_on_its_way(self) -> bool:
        """Somebody else builds the next value just now."""
        return self._lock.locked()

    def _held(self, seconds: float) -> tuple[float, T] | None:
        held = self._value
        return held if held is not None and time.monotonic() - held[0] < seconds else None


def forget_all() -> None:
    """For tests, which change the database between two looks at it."""
    for brief in list(_all):
        brief.forget()
