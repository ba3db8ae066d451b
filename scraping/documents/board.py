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

from scraping.documents.known import Known, KnownRef, number_in

IN_STEP_SECONDS = 5.0  # what nobody has compared with the database for so long may be anything
ASIDE_SECONDS = 5.0
MAX_ASIDE = 1_000


class Board:
    """Safe to use from many threads: readers take no lock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[int, Known] = {}
        self._placed_at: dict[int, float] = {}
        self._expected: dict[int, float] = {}  # since when what is held is known to be old
        self._names: dict[str, int] = {}
        self._newest_first: tuple[Known, ...] | None = None
        self._aside: OrderedDict[str, tuple[float, Known]] = OrderedDict()
        self._in_step_until = float("-inf")
        self._lock = threading.Lock()
        self.is_complete = False
        self.floor = 0  # matches with a lower number are not held: there are too many

    def __len__(self) -> int:
        return len(self._known)

    @property
    def is_in_step(self) -> bool:
        return self._clock() < self._in_step_until

    @property
    def was_filled(self) -> bool:
        """It has held everything once: what it holds now is what is known last."""
        return self._in_step_until != float("-inf")

    def now(self) -> float:
        return self._clock()

    def stay_in_step(self, seconds: float = IN_STEP_SECONDS) -> None:
        """It was compared with the database just now."""
        self._in_step_until = self._clock() + seconds

    def get(self, match_id: int) -> Known | None:
        """None also for one that is known to have changed, until we have it: whoever wants it now asks the database."""
        return None if match_id in self._expected else self._known.get(match_id)

    def held(self, match_id: int) -> Known | None:
        """Also one that is known to have changed: while nobody can look it up, this is what is known last."""
        return self._known.get(match_id)

    def holds(self, match_id: int) -> bool:
        return match_id in self._known

    @property
    def is_expecting(self) -> bool:
        return bool(self._expected)

    def expect(self, match_ids: Iterable[int]) -> None:
        """Something was done to these: only what the database is asked for from now on counts."""
        with self._lock:
            now = self._clock()
            self._expected |= {match_id: now for match_id in match_ids if match_id in self._known}
            self._aside.clear()

    def id_of(self, name: str) -> int | None:
        """By the match's number or its key at a source."""
        number = number_in(name)
        return self._names.get(name) if number is None else number

    def newest_first(self) -> tuple[Known, ...]:
        held = self._newest_first
        if held is None:
            with self._lock:
                held = tuple(self._known[match_id] for match_id in sorted(self._known, reverse=True))
                self._newest_first = held
        return held

    def put(self, known: Known, *, read_at: float | None = None) -> bool:
        """Take it, unless what is held is newer. `read_at`: the database was asked for it then (by our clock).

        What the database says counts also where no number has moved, or where numbers went down (it was restored): only
        what has come since it was asked is newer.
        """
        with self._lock:
            held = self._known.get(known.id)
            if (held is None and known.id < self.floor) or not self._is_expected(known.id, read_at):
                return False
            if held is not None and self._is_older(known, held, read_at):
                return False
            if held is not None and read_at is None:
                known = replace(known, refs=_with_plans(known, held))
            self._place(known, held)
            return True

    def renew(self, bare: Known) -> bool:
        """The match was read again without news; `bare` comes without its payload. False: it isn't known like that.

        Only its times are news. Whoever read it may not know yet that it was paused meanwhile.
        """
        with self._lock:
            held = self._known.get(bare.id)
            if bare.id in self._expected:
                return True  # it is being looked up already
            if held is None or held.sequence != bare.sequence:
                return bare.id < self.floor if held is None else held.sequence > bare.sequence
            if not self._is_older(bare, held, None):
                self._place(replace(held, scraped_at=bare.scraped_at, refs=_with_plans(bare, held)), held)
            return True

    def drop(self, match_ids: Iterable[int]) -> None:
        with self._lock:
            gone = list(match_ids)
            dropped = [self._known.pop(match_id, None) for match_id in gone]
            for match_id in gone:
                self._expected.pop(match_id, None)
            if any(dropped):  # another match may have the names of one that is gone
                self._names = {key: each.id for each in self._known.values() for key in each.keys}
                self._placed_at = {match_id: self._placed_at[match_id] for match_id in self._known}
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
            self._known, self._names, self._placed_at, self._newest_first = {}, {}, {}, None
            self._aside.clear()
            self._expected.clear()
            self._in_step_until, self.is_complete, self.floor = float("-inf"), False, 0

    def _is_expected(self, match_id: int, read_at: float | None) -> bool:
        """Is it from after what was done to the match, if anything was?"""
        since = self._expected.get(match_id)
        return since is None or (read_at is not None and read_at >= since)

    def _place(self, known: Known, held: Known | None) -> None:
        self._expected.pop(known.id, None)
        self._known[known.id], self._placed_at[known.id] = known, self._clock()
        if held is None or held.keys != known.keys:
            if held is not None:
                self._unname(held)
            for key in known.keys:
                self._names[key] = known.id
            self._aside.clear()
        self._newest_first = None

    def _is_older(self, known: Known, held: Known, read_at: float | None) -> bool:
        """Workers' words may overtake each other, and a pause leaves no number behind: the database says so."""
        if read_at is None:
            return known.version <= held.version
        return known.version < held.version and self._placed_at[known.id] >= read_at

    def _unname(self, known: Known) -> None:
        for key in known.keys:
            if self._names.get(key) == known.id:
                del self._names[key]


def _with_plans(told: Known, held: Known) -> tuple[KnownRef, ...]:
    """Who has read it at one source remembers the others from a while ago. So which sources it has, and what their
    plans are where what is told of them has passed already, is taken from what we held: that came from the database."""
    if not held.refs:
        return told.refs
    refs = {ref.key: ref for ref in told.refs if not _has_passed(ref, told)}
    return tuple(_planned(ref, refs.get(ref.key)) for ref in held.refs)


def _planned(held: KnownRef, told: KnownRef | None) -> KnownRef:
    if told is None:
        return held
    return replace(held, next_poll_at=told.next_poll_at, scraper_id=told.scraper_id or held.scraper_id)


def _has_passed(ref: KnownRef, told: Known) -> bool:
    return ref.next_poll_at is not None and told.scraped_at is not None and ref.next_poll_at < told.scraped_at


board = Board()
