"""Every match that isn't archived, in this process's memory, as it was committed last. Answers are read from here.

Guards the database against the readers: a hundred requests a second cost it nothing. Two threads of `follower` keep the
board in step with what is committed; where they can't, `is_in_step` says so and the database is asked as before.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import replace

from scraping.rendered.known import Known

IN_STEP_SECONDS = 5.0  # what nobody has compared with the database for so long may be anything
ASIDE_SECONDS = 5.0
MAX_ASIDE = 1_000
EARLIER_KEPT = 5  # states of a match, the newest among them


class Board:
    """Safe to use from many threads: readers take no lock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[int, Known] = {}
        self._names: dict[str, int] = {}
        self._earlier: dict[int, OrderedDict[int, Known]] = {}
        self._newest_first: tuple[Known, ...] | None = None
        self._aside: OrderedDict[str, tuple[float, Known]] = OrderedDict()
        self._in_step_until = float("-inf")
        self._changes = 0
        self._lock = threading.Lock()
        self.is_complete = False

    def __len__(self) -> int:
        return len(self._known)

    @property
    def is_in_step(self) -> bool:
        return self._clock() < self._in_step_until

    @property
    def was_filled(self) -> bool:
        """It has held everything once: what it holds now is what is known last."""
        return self._in_step_until != float("-inf")

    def stay_in_step(self, seconds: float = IN_STEP_SECONDS) -> None:
        """It was compared with the database just now."""
        self._in_step_until = self._clock() + seconds

    def get(self, match_id: int) -> Known | None:
        return self._known.get(match_id)

    def id_of(self, name: str) -> int | None:
        """By the match's number or its key at a source."""
        if name.isascii() and name.isdigit() and len(name) < 19:
            return int(name)
        return self._names.get(name)

    def newest_first(self) -> tuple[Known, ...]:
        held = self._newest_first
        if held is None:
            with self._lock:
                held = tuple(self._known[match_id] for match_id in sorted(self._known, reverse=True))
                self._newest_first = held
        return held

    def earlier(self, match_id: int, sequence: int) -> Known | None:
        """A state of the match that this process has seen, if it is among the last few."""
        states = self._earlier.get(match_id)
        return None if states is None else states.get(sequence)

    def put(self, known: Known, *, is_from_database: bool = False) -> bool:
        """Take it, unless what is held is newer. What the database says counts also where no number has moved."""
        with self._lock:
            held = self._known.get(known.id)
            if held is not None and _is_older(known, held, is_from_database=is_from_database):
                return False
            self._place(known, held)
            return True

    def renew(self, bare: Known) -> bool:
        """The match was read again without news; `bare` comes without its payload. False: it isn't known like that."""
        with self._lock:
            held = self._known.get(bare.id)
            if held is None or held.sequence != bare.sequence:
                return held is not None and held.sequence > bare.sequence
            if not _is_older(bare, held, is_from_database=False):
                self._place(replace(bare, payload=held.payload, data_source=held.data_source), held)
            return True

    def drop(self, match_ids: Iterable[int]) -> None:
        with self._lock:
            for match_id in match_ids:
                held = self._known.pop(match_id, None)
                self._earlier.pop(match_id, None)
                if held is not None:
                    self._unname(held)
            self._newest_first = None
            self._aside.clear()

    def ids(self) -> set[int]:
        with self._lock:
            return set(self._known)

    def put_aside(self, name: str, known: Known) -> None:
        """An archived match, or one under the number it had before it became another: remembered for seconds."""
        with self._lock:
            self._aside.pop(name, None)
            self._aside[name] = (self._clock() + ASIDE_SECONDS, known)
            while len(self._aside) > MAX_ASIDE:
                self._aside.popitem(last=False)

    def aside(self, name: str) -> Known | None:
        held = self._aside.get(name)
        return held[1] if held is not None and self._clock() < held[0] else None

    def clear(self) -> None:
        """For tests: as if nobody had ever followed anything."""
        with self._lock:
            self._known, self._names, self._earlier, self._newest_first = {}, {}, {}, None
            self._aside.clear()
            self._in_step_until, self.is_complete = float("-inf"), False

    def _place(self, known: Known, held: Known | None) -> None:
        self._known[known.id] = known
        if held is None or held.keys != known.keys:
            if held is not None:
                self._unname(held)
            for key in known.keys:
                self._names[key] = known.id
            self._aside.clear()
        if held is None or held.sequence != known.sequence:
            states = self._earlier.setdefault(known.id, OrderedDict())
            states[known.sequence] = known
            while len(states) > EARLIER_KEPT:
                states.popitem(last=False)
        self._newest_first = None

    def _unname(self, known: Known) -> None:
        for key in known.keys:
            if self._names.get(key) == known.id:
                del self._names[key]


def _is_older(known: Known, held: Known, *, is_from_database: bool) -> bool:
    """Workers' words may overtake each other, and a pause leaves no number behind: it is the database that says so."""
    return known.version < held.version if is_from_database else known.version <= held.version


board = Board()
