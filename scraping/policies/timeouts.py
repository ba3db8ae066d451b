"""Timeouts by a source's recent latencies: longer for a slow one, shorter for a quick one. Pure.

Guards against both mistakes of a fixed timeout: giving up on a source that is only slow, and waiting half a minute for
one that usually answers at once and now does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

SAMPLES = 10
SLOW_SECONDS, QUICK_SECONDS = 2.0, 0.5
SLOWER, QUICKER = 1.5, 0.8
LEAST_PAGE_SECONDS = 15.0
SLOW_SELECTOR_SECONDS = 10.0


@dataclass(frozen=True)
class Timeouts:
    page_seconds: float
    navigation_seconds: float
    selector_seconds: float
    request_seconds: float

    def times(self, factor: float) -> Timeouts:
        """Returns all of them multiplied: for the retry after a timeout."""
        return Timeouts(
            self.page_seconds * factor,
            self.navigation_seconds * factor,
            self.selector_seconds * factor,
            self.request_seconds * factor,
        )


def adapt(usual: Timeouts, latencies: Sequence[float]) -> Timeouts:
    """Returns the timeouts for a source with these latencies (seconds). Too few samples change nothing."""
    recent = latencies[-SAMPLES:]
    if len(recent) < SAMPLES:
        return usual
    average = sum(recent) / len(recent)
    if average > SLOW_SECONDS:
        return replace(usual.times(SLOWER), selector_seconds=max(usual.selector_seconds, SLOW_SELECTOR_SECONDS))
    if average < QUICK_SECONDS:
        return Timeouts(
            _shorter(usual.page_seconds),
            _shorter(usual.navigation_seconds),
            usual.selector_seconds,  # it depends on the page's script, not on the network
            usual.request_seconds * QUICKER,
        )
    return usual


def _shorter(seconds: float) -> float:
    """Never below the floor; a value that is below it already is kept."""
    return min(seconds, max(LEAST_PAGE_SECONDS, seconds * QUICKER))
