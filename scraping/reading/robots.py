"""What a site's robots.txt allows (RFC 9309): asked for once an hour, obeyed unless the source's policy says otherwise.

Checked is what we ask for ourselves: the pages that are visited and the endpoints that are asked directly. What the
script of an allowed page asks for is the page's own doing, as in anybody's browser.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from protego import Protego
from yarl import URL

from scraping.errors import EgressRefused, RobotsRefused, ScrapingError, Transient
from scraping.readings import Document, Request, Site

logger = logging.getLogger(__name__)

AGENT = "VictoryLine"
KEPT_SECONDS = 3600.0
RETRY_SECONDS = 15.0  # after a robots.txt that could not be had
STALE_SECONDS = 24 * 3600.0  # so long an old one counts while no new one is to be had
FETCH_SECONDS = 10.0
MAX_BYTES = 512 * 1024
REMEMBERED_URLS = 5000
TOO_MANY_REQUESTS = 429


class Asks(Protocol):
    """A session's wire, as far as robots.txt needs it."""

    async def ask(self, request: Request, *, seconds: float, may_be_empty: bool = False) -> Document: ...


@dataclass
class Rules:
    """What one robots.txt says. `parsed` is None where there is none: then everything is allowed."""

    parsed: Protego | None
    fetched_at: float
    good_until: float
    has_warned: bool = False
    _verdicts: dict[str, bool] = field(default_factory=dict)

    def allows(self, url: str) -> bool:
        if self.parsed is None:
            return True
        verdict = self._verdicts.get(url)
        if verdict is None:
            if len(self._verdicts) >= REMEMBERED_URLS:
                self._verdicts.clear()
            verdict = self._verdicts[url] = self.parsed.can_fetch(url, AGENT)
        return verdict

    @property
    def crawl_delay_seconds(self) -> float | None:
        return self.parsed.crawl_delay(AGENT) if self.parsed else None


class Robots:
    """Lives on the loop thread."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rules: dict[str, Rules] = {}
        self._failures: dict[str, tuple[float, ScrapingError]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def check(self, wire: Asks, site: Site, *urls: str) -> None:
        """RobotsRefused for what must not be read; Transient while it cannot be known."""
        if site.robots_policy == "ignore":
            return
        for url in urls:
            rules = await self._known(wire, site, url)
            if rules is None or rules.allows(url):
                continue
            path = URL(url, encoded=True).raw_path
            if site.robots_policy == "obey":
                raise RobotsRefused(
                    f"robots.txt of {site.key} forbids {path}: nothing was sent. It is looked at again in an hour; "
                    "whoever may read it all the same sets the source's robots policy to warn or ignore",
                    retry_after_seconds=KEPT_SECONDS,
                    url=url,
                )
            self._warn(rules, site, path)

    def crawl_delay_seconds(self, url: str) -> float | None:
        """The shortest time between two requests that the site asks for, as far as it is known."""
        rules = self._rules.get(_origin(url))
        return rules.crawl_delay_seconds if rules else None

    async def _known(self, wire: Asks, site: Site, url: str) -> Rules | None:
        """The rules that count now; None where they cannot be had and need not be."""
        origin = _origin(url)
        rules = self._rules.get(origin)
        if rules is not None and self._clock() < rules.good_until:
            return rules
        async with self._locks.setdefault(origin, asyncio.Lock()):
            rules = self._rules.get(origin)
            if rules is not None and self._clock() < rules.good_until:
                return rules
            try:
                rules = await self._fetch(wire, site, origin)
            except ScrapingError as error:
                return self._without(rules, error, site, origin)
            self._rules[origin] = rules
            self._failures.pop(origin, None)
            return rules

    async def _fetch(self, wire: Asks, site: Site, origin: str) -> Rules:
        now = self._clock()
        failed_at, failure = self._failures.get(origin, (float("-inf"), None))
        if failure is not None and now - failed_at < RETRY_SECONDS:
            raise failure.with_traceback(None)
        request = Request("robots", f"{origin}/robots.txt")
        document = await wire.ask(request, seconds=FETCH_SECONDS, may_be_empty=True)
        if document.status >= 500 or document.status == TOO_MANY_REQUESTS:
            raise Transient(
                f"robots.txt of {site.key} answered {document.status}: nothing is read until it can be had",
                http_status=document.status,
                retry_after_seconds=document.retry_after_seconds,
            )
        if document.status >= 300:
            return Rules(None, now, now + KEPT_SECONDS)
        text = document.body[:MAX_BYTES].decode("utf-8", errors="replace")
        rules = Rules(Protego.parse(text), now, now + KEPT_SECONDS)
        if delay := rules.crawl_delay_seconds:
            logger.warning(
                "%s asks in its robots.txt for %g s between two requests; a shortest interval below that is too short",
                *(site.key, delay),
                extra={"action": "crawl_delay", "source": site.key},
            )
        return rules

    def _without(self, old: Rules | None, error: ScrapingError, site: Site, origin: str) -> Rules | None:
        """No robots.txt now: what it said last still counts; else a policy of obeying waits."""
        now = self._clock()
        if origin not in self._failures or now - self._failures[origin][0] >= RETRY_SECONDS:
            self._failures[origin] = now, error
        if old is not None and now - old.fetched_at < STALE_SECONDS:
            old.good_until = now + RETRY_SECONDS
            return old
        if site.robots_policy != "obey" and not isinstance(error, EgressRefused):
            return None
        raise error

    def _warn(self, rules: Rules, site: Site, path: str) -> None:
        if not rules.has_warned:
            rules.has_warned = True
            logger.warning(
                "robots.txt of %s forbids %s; it is read all the same, as the source's robots policy says",
                *(site.key, path),
                extra={"action": "robots_ignored", "source": site.key},
            )


@lru_cache(maxsize=REMEMBERED_URLS)
def _origin(url: str) -> str:
    return str(URL(url, encoded=True).origin())
