"""Selectors of a source: the extractor for open pages, and reports of fallback selectors.

A site's redesign shows as fallbacks before it breaks a read.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from prometheus_client import Counter

from scraping.payloads import Payload
from scraping.readings import Extractor, Site
from scraping.sources.base import Adapter
from scraping.sources.extract import SCRIPT, plan_of

logger = logging.getLogger(__name__)

REPORT_EVERY_SECONDS = 600.0

_fallbacks = Counter(
    "victoryline_selector_fallbacks",
    "Readings in which a field was not found by its best selector, but by another.",
    ["source", "field"],
)


def is_attached(site: Site, adapter: Adapter) -> bool:
    """Returns whether matches of this source are read from pages that stay open."""
    if adapter.layout is None or site.read_way == "visit":
        return False
    return site.read_way == "attached" or adapter.prefers_attached


def extractor_of(site: Site, adapter: Adapter) -> Extractor:
    assert adapter.layout is not None
    layout = adapter.layout.using(site.selectors)
    return Extractor(SCRIPT, plan_of(layout), layout.pulse)


class SelectorWatch:
    """Counts every fallback, and logs each one at most once in ten minutes. Called on any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._reported_at: dict[tuple[str, str], float] = {}

    def report(self, site: Site, adapter: Adapter, payload: Payload, *, url: str) -> None:
        for one in payload.integrity.fallback_selectors:
            _fallbacks.labels(site.key, one.partition("#")[0]).inc()
            if adapter.layout is not None and self._is_due(site.key, one):
                _log_fallback(one, adapter.layout.using(site.selectors).named(), site, url)

    def _is_due(self, source: str, one: str) -> bool:
        with self._lock:
            now, reported_at = self._clock(), self._reported_at.get((source, one))
            if reported_at is not None and now - reported_at < REPORT_EVERY_SECONDS:
                return False
            self._reported_at[source, one] = now
            return True


def _log_fallback(one: str, selectors: dict[str, tuple[str, ...]], site: Site, url: str) -> None:
    field, _, number = one.partition("#")
    candidates, found = selectors[field], int(number) - 1
    logger.warning(
        "Selector %s of %s found nothing at %s; %s did. Nothing is lost: put a better one first in its selectors",
        ", ".join(candidates[:found]), field, url, candidates[found],
        extra={"action": "selector_failed", "source": site.key, "url": url, "field": field, "selector": candidates[0]},
    )  # fmt: skip
