"""The sessions of a worker: one per source, replaced when the source refuses it or its time is over.

A session is sticky, because a source trusts a visitor that it has seen before. When its time is over, the next visit
opens a successor; the old session serves direct reads until that visit has succeeded.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from prometheus_client import Counter, Gauge

from scraping.browser.egress.forward_proxy import ForwardProxy
from scraping.browser.egress.upstream_proxies import (
    FailureCause,
    FailureOutcome,
    ProxyChoice,
    ProxyPlan,
    ProxyPool,
    RotationMode,
    cause_of,
    error_label,
)
from scraping.browser.host import BrowserHost
from scraping.browser.profile import Country, profile_for
from scraping.browser.session import Session, is_success, new_session_id
from scraping.errors import ScrapingError
from scraping.readings import Reading, Site

logger = logging.getLogger(__name__)

MAX_ENDED = 1000  # kept until the heartbeat has written them
RENEWAL_SECONDS = 60.0
RENEWED, CHANGED, STOPPED, GIVEN_UP = "renewed", "changed", "stopped", "given_up"

# Labelled by source only: proxies are not exposed.
_opened = Counter("scraper_sessions", "Sessions that were opened at a source.", ["source", "geo"])
_ended = Counter("scraper_sessions_ended", "Sessions that were ended, by cause.", ["source", "cause"])
_all_quarantined = Counter(
    "scraper_proxies_exhausted", "Sessions that used a proxy in quarantine because all of them were.", ["source"]
)
_quarantined = Gauge("scraper_proxies_quarantined", "Proxies in quarantine at a source.", ["source"])


@dataclass(frozen=True)
class SessionRecord:
    """The data of a session for its row; the proxy by its hash."""

    session_id: str
    source: str
    proxy_hash: str
    geo: str
    created_at: datetime
    last_used_at: datetime
    ended_at: datetime | None
    end_reason: str
    successes: int
    failures: int
    bytes_in: int
    quarantined_until: datetime | None


class Sessions:
    """Lives on the loop thread. Other threads may read `records` and the counts."""

    def __init__(
        self, host: BrowserHost, plan: ProxyPlan | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.host = host
        self.forward_proxy = ForwardProxy()
        self._options = host.options
        self._plan = plan or ProxyPlan()
        self._clock = clock
        self._version = ""  # of the browser
        self._by_site: dict[str, Session] = {}
        self._successors: dict[str, Session] = {}
        self._open: dict[str, Session] = {}  # by id; also dropped ones with reads under way
        self._pools: dict[str, ProxyPool] = {}
        self._renewal_asked_at: dict[str, float] = {}
        self._ended: deque[SessionRecord] = deque(maxlen=MAX_ENDED)
        self._closing: set[asyncio.Task[None]] = set()
        if not self._options.has_forward_proxy:
            logger.warning(
                "The browser at SCRAPER_CDP_ENDPOINT is on another machine: the hosts of a page are checked in "
                "the page only, not by the forward proxy. Restrict that browser with a firewall",
                extra={"action": "browser_without_gate"},
            )

    @property
    def context_count(self) -> int:
        return sum(session.context.is_open for session in tuple(self._open.values()))

    @property
    def page_count(self) -> int:
        return sum(session.context.page_count for session in tuple(self._open.values()))

    async def get(self, site: Site, *, is_visit: bool = False) -> Session:
        """Returns the session of a source; opens one where there is none, or where the site's settings have changed.

        A visit may get the successor, which replaces the session once the visit has succeeded.
        """
        if not self._version:
            browser, _ = await self.host.browser()
            self._version = browser.version
        session = self._by_site.get(site.key)
        if session is not None and session.site != site:
            self._drop_site(site.key)
            session = None
        if session is None:
            session = self._by_site[site.key] = self._open_session(site)
        elif is_visit and self._is_due(session):
            session = self._successor(session)
        return session

    def is_warm(self, key: str) -> bool:
        """Whether a visit has succeeded, so that direct reads of this source are possible."""
        session = self._by_site.get(key)
        return session is not None and session.is_warm

    def wants_visit(self, key: str) -> bool:
        """Whether the session's time is over and a visit should replace it; True once a minute, as one visit suffices.

        May be called from any thread.
        """
        session, now = self._by_site.get(key), self._clock()
        if (
            session is None
            or not session.is_warm
            or not self._is_due(session)
            or self._plan.mode is RotationMode.ROTATING
        ):
            return False
        if now - self._renewal_asked_at.get(key, -RENEWAL_SECONDS) < RENEWAL_SECONDS:
            return False
        self._renewal_asked_at[key] = now
        return True

    def renew(self, key: str) -> None:
        """Makes the next visit open another session; the old one serves until that visit has succeeded."""
        session = self._by_site.get(key)
        if session is not None:
            session.is_worn = True

    def drop(self, session: Session, *, cause: ScrapingError | None = None, reason: str = "") -> None:
        """Ends a session, so that the next one has a new identity. A newer session stays."""
        if not session.is_dropped:  # concurrent reads fail together; only the first failure counts
            self._end(session, cause, reason, self._report_to_pool(session, cause))

    def _end(self, session: Session, cause: ScrapingError | None, reason: str, outcome: FailureOutcome | None) -> None:
        session.is_dropped = True
        key = session.site.key
        for table in (self._by_site, self._successors):
            if table.get(key) is session:
                del table[key]
        label = cause_of(cause).value if cause is not None else reason or GIVEN_UP
        end_reason = error_label(cause) or label
        _ended.labels(key, label).inc()
        _quarantined.labels(key).set(self._pool(session.site).quarantined_count(self._clock()))
        self._ended.append(self._record(session, end_reason=end_reason, outcome=outcome))
        logger.log(
            logging.INFO if cause is None else logging.WARNING,
            "Session at %s ended (%s); the next visit opens another",
            key,
            end_reason,
            extra={"action": "session_ended", "source": key, "cause": label, **_proxy_fields(session)},
        )
        # Reads under way may finish before it closes.
        closing = asyncio.ensure_future(self._close_later(session))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def refused(self, session_id: str, cause: ScrapingError) -> None:
        """Drops a session whose reading turned out to be a refusal after validation."""
        session = self._open.get(session_id)
        if session is not None:
            self.drop(session, cause=cause)

    async def close_all(self) -> None:
        """Drops and closes every session at once."""
        for key in {*self._by_site, *self._successors}:
            self._drop_site(key, reason=STOPPED)
        closing = tuple(self._closing)
        for task in closing:
            task.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
        for session in tuple(self._open.values()):
            await self._close(session)

    async def stop(self) -> None:
        self.host.begin_stop()  # a poll that loses its page now must not start a new browser
        await self.close_all()
        await self.forward_proxy.stop()
        await self.host.stop()

    def records(self) -> list[SessionRecord]:
        """Returns every session that is open or has ended since `written`; for the heartbeat thread."""
        ended = tuple(self._ended)
        ended_ids = {record.session_id for record in ended}
        running = [one for one in tuple(self._open.values()) if not one.is_dropped and one.session_id not in ended_ids]
        return [*ended, *(self._record(session) for session in running)]

    def written(self, records: list[SessionRecord]) -> None:
        """Removes ended sessions whose rows have been written."""
        done = {record.session_id for record in records if record.ended_at is not None}
        for record in tuple(self._ended):
            if record.session_id in done:
                with contextlib.suppress(ValueError):
                    self._ended.remove(record)

    def _is_due(self, session: Session) -> bool:
        """Whether it must be replaced: a rotating proxy serves one visit; attached pages keep their session."""
        if session.is_worn:
            return True
        if session.has_attached_pages:
            return False
        if self._plan.mode is RotationMode.ROTATING and session.proxy is not None:
            return session.is_warm
        return self._clock() - session.created_at >= self._plan.sticky_seconds

    def _successor(self, session: Session) -> Session:
        key = session.site.key
        successor = self._successors.get(key)
        if successor is None or self._plan.mode is RotationMode.ROTATING:
            successor = self._successors[key] = self._open_session(session.site)
        return successor

    def _open_session(self, site: Site) -> Session:
        session_id, now = new_session_id(), self._clock()
        choice = self._pool(site).take(now) if site.uses_proxy else None
        proxy = choice.proxy.for_session(session_id, seconds=self._plan.sticky_seconds) if choice else None
        home = Country(self._options.locale, self._options.timezone)
        country = proxy.country if proxy else ""
        session = Session(
            site,
            self.host,
            forward_proxy=self.forward_proxy,
            profile=profile_for(session_id, version=self._version, country=country, home=home),
            session_id=session_id,
            proxy=proxy,
            on_read=self._on_read,
        )
        session.created_at = now
        self._open[session_id] = session
        _opened.labels(site.key, country).inc()
        self._log_opened(session, choice)
        return session

    def _log_opened(self, session: Session, choice: ProxyChoice | None) -> None:
        key = session.site.key
        if choice is not None and choice.is_quarantined:
            _all_quarantined.labels(key).inc()
            logger.warning(
                "Every proxy is in quarantine at %s: the one that is released first is used. Add proxies "
                "(SCRAPER_PROXIES) or poll less often",
                key,
                extra={"action": "proxies_exhausted", "source": key, **_proxy_fields(session)},
            )
        logger.info(
            "Session at %s opened", key, extra={"action": "session_begun", "source": key, **_proxy_fields(session)}
        )

    def _on_read(self, session: Session, outcome: Reading | ScrapingError, began: float) -> None:
        """Records the end of a read. Refusals inside a reading are found by the reader, which drops the session."""
        if session.is_dropped:
            return
        if isinstance(outcome, ScrapingError):
            if session.proxy is not None and cause_of(outcome) is FailureCause.NO_ANSWER:
                pool = self._pool(session.site)
                consequence = pool.failed(session.proxy_hash, FailureCause.NO_ANSWER, self._clock(), began=began)
                if consequence.rotates:
                    self._end(session, outcome, "", consequence)
        elif is_success(outcome):
            if session.proxy is not None:
                self._pool(session.site).succeeded(session.proxy_hash, self._clock())
            if session.is_warm and self._successors.get(session.site.key) is session:
                self._promote(session)

    def _promote(self, session: Session) -> None:
        """Makes a successor the session of its source."""
        key = session.site.key
        del self._successors[key]
        old, self._by_site[key] = self._by_site.get(key), session
        if old is not None:
            self.drop(old, reason=RENEWED)

    def _report_to_pool(self, session: Session, cause: ScrapingError | None) -> FailureOutcome | None:
        """Reports the failure to the proxy pool; timeouts are reported by `_on_read`."""
        if cause is None or session.proxy is None or cause_of(cause) is FailureCause.NO_ANSWER:
            return None
        return self._pool(session.site).failed(session.proxy_hash, cause_of(cause), self._clock())

    def _pool(self, site: Site) -> ProxyPool:
        pool = self._pools.get(site.key)
        if pool is None:
            pool = ProxyPool(self._plan.proxies, quarantine_seconds=self._plan.quarantine_seconds)
            self._pools[site.key] = pool
        return pool

    def _record(
        self, session: Session, *, end_reason: str = "", outcome: FailureOutcome | None = None
    ) -> SessionRecord:
        now = datetime.now(UTC)
        until = outcome.quarantined_until if outcome is not None else None
        return SessionRecord(
            session_id=session.session_id,
            source=session.site.key,
            proxy_hash=session.proxy_hash,
            geo=session.proxy.country if session.proxy else "",
            created_at=session.opened_at,
            last_used_at=session.last_used_at,
            ended_at=now if end_reason else None,
            end_reason=end_reason,
            successes=session.successes,
            failures=session.failures,
            bytes_in=session.bytes_in,
            quarantined_until=now + timedelta(seconds=until - self._clock()) if until is not None else None,
        )

    def _drop_site(self, key: str, reason: str = CHANGED) -> None:
        for table in (self._by_site, self._successors):
            session = table.get(key)
            if session is not None:
                self.drop(session, reason=reason)

    async def _close_later(self, session: Session) -> None:
        options = self._options
        try:
            await session.wait_idle(options.navigation_timeout_seconds + options.page_timeout_seconds)
        finally:
            await self._close(session)

    async def _close(self, session: Session) -> None:
        self._open.pop(session.session_id, None)
        with contextlib.suppress(Exception):
            await session.close()


def _proxy_fields(session: Session) -> dict[str, str]:
    geo = session.proxy.country if session.proxy else ""
    return {"session_id": session.session_id, "proxy": session.proxy_hash, "geo": geo}
