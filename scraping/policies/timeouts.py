"""Timeouts by a source's recent latencies: longer for a slow one, shorter for a quick one.

Guards against both mistakes of a fixed timeout: giving up on a source that is only slow, and waiting half a minute for
one that usually answers at once and now does not.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace

from scraping.errors import ReadTimeout

SAMPLES = 10
SLOW_SECONDS, QUICK_SECONDS = 2.0, 0.5
SLOWER, QUICKER = 1.5, 0.8
LEAST_PAGE_SECONDS = 15.0
SLOW_SELECTOR_SECONDS = 10.0


@dataclass(frozen=True)
class Timeouts:
    page_seconds: float = 30.0
    navigation_seconds: float = 30.0
    selector_seconds: float = 5.0
    request_seconds: float = 10.0

    def times(self, factor: float) -> Timeouts:
        """Returns all of them multiplied: for the retry after a timeout."""
        return Timeouts(*(seconds * factor for seconds in astuple(self)))


def adapt(usual: Timeouts, latencies: Sequence[float]) -> Timeouts:
    """Returns the timeouts for a source with these latencies (seconds). Too few samples change nothing."""
    recent = latencies[-SAMPLES:]
    if len(recent) < SAMPLES:
        return usual
    average = sum(recent) / len(recent)
    if average > SLOW_SECONDS:
        return replace(usual.times(SLOWER), selector_seconds=max(usual.selector_seconds, SLOW_SELECTOR_SECONDS))
    if average < QUICK_SECONDS:
        return replace(  # the time of selectors depends on the page's script, not on the network
            usual,
            page_seconds=_shorter(usual.page_seconds),
            navigation_seconds=_shorter(usual.navigation_seconds),
            request_seconds=usual.request_seconds * QUICKER,
        )
    return usual


def _shorter(seconds: float) -> float:
    """Never below the floor; a value that is below it already is kept."""
    return min(seconds, max(LEAST_PAGE_SECONDS, seconds * QUICKER))


class AdaptiveTimeouts:
    """The timeouts of each source, adapted to its last latencies. Lives on the loop thread, in memory only."""

    def __init__(self, usual: Timeouts, *, is_adaptive: bool = True) -> None:
        self._usual = usual
        self._is_adaptive = is_adaptive
        self._latencies: dict[str, deque[float]] = {}

    def record(self, source: str, seconds: float) -> None:
        """Records the latency of a response; of one that timed out, the time that was waited."""
        self._latencies.setdefault(source, deque(maxlen=SAMPLES)).append(seconds)

    @contextmanager
    def measured(self, source: str) -> Iterator[None]:
        """Records how long the enclosed request takes, also when it times out."""
        began = time.monotonic()
        try:
            yield
        except ReadTimeout:
            self.record(source, time.monotonic() - began)
            raise
        self.record(source, time.monotonic() - began)

    def of(self, source: str, *, factor: float = 1.0) -> Timeouts:
        recorded = self._latencies.get(source)
        usual = self._usual if recorded is None or not self._is_adaptive else adapt(self._usual, tuple(recorded))
        return usual if factor == 1.0 else usual.times(factor)
