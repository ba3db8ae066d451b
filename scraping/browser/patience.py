"""How long each source may take now: the last answers of each are remembered, and its timeouts follow them."""

from __future__ import annotations

from collections import deque

from scraping.browser.options import BrowserOptions
from scraping.policies.timeouts import SAMPLES, Timeouts, adapt


class Patience:
    """Lives on the loop thread. Forgetting it costs ten answers at the usual timeouts."""

    def __init__(self, options: BrowserOptions, *, is_adaptive: bool = True) -> None:
        self._usual = Timeouts(
            page_seconds=options.page_timeout_seconds,
            navigation_seconds=options.navigation_timeout_seconds,
            selector_seconds=options.capture_timeout_seconds,
            request_seconds=options.request_timeout_seconds,
        )
        self._is_adaptive = is_adaptive
        self._latencies: dict[str, deque[float]] = {}

    def note(self, source: str, seconds: float) -> None:
        """An answer of the source (by its key) took this long; one that was given up, at least this long."""
        self._latencies.setdefault(source, deque(maxlen=SAMPLES)).append(seconds)

    def timeouts(self, source: str, *, factor: float = 1.0) -> Timeouts:
        known = self._latencies.get(source)
        if known is None or not self._is_adaptive:
            return self._usual if factor == 1.0 else self._usual.times(factor)
        adapted = adapt(self._usual, tuple(known))
        return adapted if factor == 1.0 else adapted.times(factor)
