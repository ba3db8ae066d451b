"""Which selectors find what, watched while matches are read: a site's redesign shows here before it hurts."""

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

TELL_AGAIN_SECONDS = 600.0

_fallbacks = Counter(
    "victoryline_selector_fallbacks",
    "Readings in which a field was not found by its best selector, but by another.",
    ["source", "field"],
)


def is_attached(site: Site, adapter: Adapter) -> bool:
    """Is a match of this source read off a page that stays open?"""
    if adapter.layout is None or site.read_way == "visit":
        return False
    return site.read_way == "attached" or adapter.prefers_attached


def extractor_of(site: Site, adapter: Adapter) -> Extractor:
    assert adapter.layout is not None
    layout = adapter.layout.using(site.selectors)
    return Extractor(SCRIPT, plan_of(layout), layout.pulse)


class SelectorWatch:
    """Counts every fallback, and says now and then that one was needed. Called on any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._told: dict[tuple[str, str], float] = {}

    def note(self, site: Site, adapter: Adapter, payload: Payload, *, url: str) -> None:
        for one in payload.integrity.fallback_selectors:
            _fallbacks.labels(site.key, one.partition("#")[0]).inc()
            if adapter.layout is not None and self._is_news(site.key, one):
                _tell_of(one, adapter.layout.using(site.selectors).named(), site, url)

    def _is_news(self, source: str, one: str) -> bool:
        """Not with every poll of every match: a redesign would fill the log."""
        with self._lock:
            now, told_at = self._clock(), self._told.get((source, one))
            if told_at is not None and now - told_at < TELL_AGAIN_SECONDS:
                return False
            self._told[source, one] = now
            return True


def _tell_of(one: str, selectors: dict[str, tuple[str, ...]], site: Site, url: str) -> None:
    field, _, number = one.partition("#")
    ways, hit = selectors[field], int(number) - 1
    logger.warning(
        "Selector %s of %s found nothing at %s; %s did. Nothing is lost: put a better one first in its selectors",
        ", ".join(ways[:hit]), field, url, ways[hit],
        extra={"action": "selector_failed", "source": site.key, "url": url, "field": field, "selector": ways[0]},
    )  # fmt: skip
