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
    """

    def __init__(self, build: Callable[[], T], *, seconds: float = 1.0, at_most_seconds: float = 3.0) -> None:
        self._build = build
        self._seconds = seconds
        self._at_most_seconds = at_most_seconds
        self._lock = threading.Lock()
        self._value: tuple[float, T] | None = None
        _all.add(self)

    def get(self) -> T:
        if (held := self._held(self._seconds)) is not None:
            return held[1]
        if self._lock.locked() and (held := self._held(self._at_most_seconds)) is not None:
            return held[1]
        with self._lock:
            if (held := self._held(self._seconds)) is not None:
                return held[1]
            value = self._build()
            self._value = (time.monotonic(), value)
            return value

    def _held(self, seconds: float) -> tuple[float, T] | None:
        held = self._value
        return held if held is not None and time.monotonic() - held[0] < seconds else None

    def forget(self) -> None:
        self._value = None


def forget_all() -> None:
    """For tests, which change the database between two looks at it."""
    for brief in list(_all):
        brief.forget()
