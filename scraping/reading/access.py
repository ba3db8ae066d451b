"""Access to a source around every read: its session, its robots.txt, and the consequences of a failure for both.

robots.txt (RFC 9309) is fetched once an hour and obeyed unless the source's policy says otherwise. It is checked for
visited pages and for endpoints that we request directly, not for the requests that an allowed page's script makes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

from cachetools import LRUCache
from protego import Protego
from yarl import URL

from scraping.browser.session import Session
from scraping.browser.sessions import Sessions
from scraping.errors import (
    ERROR_RULES,
    Drift,
    EgressRefused,
    NoToken,
    PageCrashed,
    ReadTimeout,
    ResourceLost,
    RobotsRefused,
    ScrapingError,
    Transient,
    error_for_status,
)
from scraping.reading.targets import Observer
from scraping.readings import PAGE, Document, Endpoint, Reading, Request, Site, evidence_from, report_stage
from scraping.sources.parsing import is_challenge

logger = logging.getLogger(__name__)

FORBIDDEN = 403
TOO_MANY_REQUESTS = 429
CHALLENGE_BYTES = 200_000  # bot challenges are small pages
AGENT = "VictoryLine"
KEPT_SECONDS = 3600.0
RETRY_SECONDS = 15.0  # after a robots.txt that could not be fetched
STALE_SECONDS = 24 * 3600.0  # a robots.txt of this age is used while no new one can be fetched
FETCH_SECONDS = 10.0
MAX_BYTES = 512 * 1024
MAX_CACHED_URLS = 5000
WAIT_REPORT_SECONDS = 5.0


class SourceAccess:
    """Lives on the loop thread."""

    def __init__(self, sessions: Sessions, observer: Observer | None) -> None:
        self.sessions = sessions
        self._observer = observer
        self._robots = Robots()

    async def read(
        self,
        site: Site,
        required: tuple[Endpoint, ...],
        read: Callable[[Session], Awaitable[Reading]],
        *,
        urls: tuple[str, ...],
        is_last_chance: bool = False,
        uses_browser: bool = True,
    ) -> Reading:
        """Reads through the source's session. Replaces a lost or hung browser; drops a session that is refused.

        `urls`: the requests to be checked against the site's robots.txt.
        `is_last_chance`: the same session timed out before; if it does so again, it is dropped.
        """
        session = await self.sessions.get(site, is_visit=uses_browser)
        await self._robots.check(session.client, site, *urls)
        report_stage("BROWSER_READY")
        try:
            reading = await read(session)
            if site.selectors:
                reading = replace(reading, selectors=site.selectors)
            self.observe(site, reading)
            with evidence_from(reading):
                return without_failed_documents(reading, required)
        except PageCrashed as error:  # the browser is replaced only if this repeats
            self.sessions.host.report_fault(session.context.generation, str(error))
            raise
        except ResourceLost as error:
            self.sessions.host.report_lost(session.context.generation, str(error))
            raise
        except ReadTimeout as error:
            if uses_browser and not await self.sessions.host.probe():
                raise ResourceLost("the browser hung and is being replaced") from None
            if is_last_chance:
                self.sessions.drop(session, cause=error)
            raise
        except ScrapingError as error:
            if ERROR_RULES[error.error_class].rotates_session and not isinstance(error, NoToken):
                self.sessions.drop(session, cause=error)
            raise

    def observe(self, site: Site, reading: Reading) -> None:
        if self._observer is not None:
            self._observer.reading(site.key, reading)


def needs_screenshot(page: Document | None, *, is_suspect: bool) -> bool:
    """Returns whether the page is worth a screenshot, which costs time: after a failure, a refusal or a challenge."""
    if is_suspect or page is None:
        return is_suspect
    if page.status == FORBIDDEN:
        return True
    return len(page.body) < CHALLENGE_BYTES and is_challenge(page.text())


def without_failed_documents(reading: Reading, endpoints: tuple[Endpoint, ...]) -> Reading:
    """Returns the reading without documents that have an error status. Raises if the page or a required one has it."""
    needed = {PAGE} | {endpoint.name for endpoint in endpoints if endpoint.is_required}
    errors: dict[str, ScrapingError] = {
        name: error for name, document in reading.documents.items() if (error := error_for(document)) is not None
    }
    for name in needed & errors.keys():
        raise errors[name]
    return replace(reading, documents={name: one for name, one in reading.documents.items() if name not in errors})


def error_for(document: Document) -> ScrapingError | None:
    """Returns the error that the document's HTTP status means; None for a good one."""
    if document.status < 300:
        return None
    kind = error_for_status(document.status) or Drift
    return kind(
        f"{document.name} answered {document.status}",
        http_status=document.status,
        url=document.url,
        retry_after_seconds=document.retry_after_seconds,
        evidence=document.text()[:2000],
    )


class HttpClient(Protocol):
    """The part of a session's HTTP client that robots.txt needs."""

    async def fetch(self, request: Request, *, seconds: float, may_be_empty: bool = False) -> Document: ...


@dataclass
class RobotsRules:
    """One robots.txt. `parsed` is None where the site has none: then everything is allowed."""

    parsed: Protego | None
    fetched_at: float
    good_until: float
    has_warned: bool = False
    _allowed: LRUCache[str, bool] = field(default_factory=lambda: LRUCache(MAX_CACHED_URLS))

    def allows(self, url: str) -> bool:
        if self.parsed is None:
            return True
        is_allowed = self._allowed.get(url)
        if is_allowed is None:
            is_allowed = self._allowed[url] = self.parsed.can_fetch(url, AGENT)
        return is_allowed

    @property
    def crawl_delay_seconds(self) -> float | None:
        return self.parsed.crawl_delay(AGENT) if self.parsed else None


class Robots:
    """Lives on the loop thread."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rules: dict[str, RobotsRules] = {}
        self._failures: dict[str, tuple[float, ScrapingError]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def check(self, client: HttpClient, site: Site, *urls: str) -> None:
        """Raises RobotsRefused for a forbidden address, Transient while robots.txt can't be fetched."""
        if site.robots_policy == "ignore":
            return
        for url in urls:
            rules = await self._rules_for(client, site, url)
            if rules is None or rules.allows(url):
                continue
            path = URL(url, encoded=True).raw_path
            if site.robots_policy == "obey":
                raise RobotsRefused(
                    f"robots.txt of {site.key} forbids {path}: nothing was sent. It is fetched again in an hour; "
                    "to read the page all the same, set the source's robots policy to warn or ignore",
                    retry_after_seconds=KEPT_SECONDS,
                    url=url,
                )
            self._warn(rules, site, path)

    def crawl_delay_seconds(self, url: str) -> float | None:
        """Returns the pause between two requests that the site asks for, if its robots.txt is cached."""
        rules = self._rules.get(_origin(url))
        return rules.crawl_delay_seconds if rules else None

    async def _rules_for(self, client: HttpClient, site: Site, url: str) -> RobotsRules | None:
        """Returns the current rules; None where they can't be fetched and the policy does not require them."""
        origin = _origin(url)
        rules = self._rules.get(origin)
        if rules is not None and self._clock() < rules.good_until:
            return rules
        async with self._locks.setdefault(origin, asyncio.Lock()):
            rules = self._rules.get(origin)
            if rules is not None and self._clock() < rules.good_until:
                return rules
            try:
                rules = await self._fetch(client, site, origin)
            except ScrapingError as error:
                return self._rules_after_failure(rules, error, site, origin)
            self._rules[origin] = rules
            self._failures.pop(origin, None)
            return rules

    async def _fetch(self, client: HttpClient, site: Site, origin: str) -> RobotsRules:
        now = self._clock()
        failed_at, failure = self._failures.get(origin, (float("-inf"), None))
        if failure is not None and now - failed_at < RETRY_SECONDS:
            raise failure.with_traceback(None)
        request = Request("robots", f"{origin}/robots.txt")
        document = await client.fetch(request, seconds=FETCH_SECONDS, may_be_empty=True)
        if document.status >= 500 or document.status == TOO_MANY_REQUESTS:
            raise Transient(
                f"robots.txt of {site.key} answered {document.status}: nothing is read until it can be fetched",
                http_status=document.status,
                retry_after_seconds=document.retry_after_seconds,
            )
        if document.status >= 300:
            return RobotsRules(None, now, now + KEPT_SECONDS)
        text = document.body[:MAX_BYTES].decode("utf-8", errors="replace")
        rules = RobotsRules(Protego.parse(text), now, now + KEPT_SECONDS)
        if delay := rules.crawl_delay_seconds:
            logger.warning(
                "%s asks in its robots.txt for %g s between two requests; a shorter minimum interval is too short",
                *(site.key, delay),
                extra={"action": "crawl_delay", "source": site.key},
            )
        return rules

    def _rules_after_failure(
        self, old: RobotsRules | None, error: ScrapingError, site: Site, origin: str
    ) -> RobotsRules | None:
        """Returns the old rules while they are usable, else None. Raises where the policy is to obey."""
        now = self._clock()
        if origin not in self._failures or now - self._failures[origin][0] >= RETRY_SECONDS:
            self._failures[origin] = now, error
        if old is not None and now - old.fetched_at < STALE_SECONDS:
            old.good_until = now + RETRY_SECONDS
            return old
        if site.robots_policy != "obey" and not isinstance(error, EgressRefused):
            return None
        raise error

    def _warn(self, rules: RobotsRules, site: Site, path: str) -> None:
        if not rules.has_warned:
            rules.has_warned = True
            logger.warning(
                "robots.txt of %s forbids %s; it is read because of the source's robots policy",
                *(site.key, path),
                extra={"action": "robots_ignored", "source": site.key},
            )


@lru_cache(maxsize=MAX_CACHED_URLS)
def _origin(url: str) -> str:
    return str(URL(url, encoded=True).origin())


@asynccontextmanager
async def reporting_wait(lock: asyncio.Lock | asyncio.Semaphore) -> AsyncIterator[None]:
    """Holds the lock. Reports a stage while it waits, so that the watchdog does not take the task for hung."""
    while True:
        try:
            await asyncio.wait_for(lock.acquire(), WAIT_REPORT_SECONDS)
            break
        except TimeoutError:
            report_stage("INIT")
    try:
        yield
    finally:
        lock.release()
