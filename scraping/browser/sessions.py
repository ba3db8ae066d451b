"""The sessions of a worker, one a source: who asks gets the one that works, a refused one is forgotten.

A session is kept for a time (sticky), for a source trusts a visitor that it has seen before; then, at the next visit,
another one takes its place, cookies and all, without a read in between that goes without.
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

from scraping.browser import session_metrics
from scraping.browser.gate import Gate
from scraping.browser.host import BrowserHost
from scraping.browser.profile import Country, profile_for
from scraping.browser.proxies import Cause, Mode, Pick, ProxyPlan, ProxyPool, Verdict, cause_of, words_of
from scraping.browser.session import Session, is_good, new_session_id
from scraping.errors import ScrapingError
from scraping.readings import Reading, Site

logger = logging.getLogger(__name__)

ENDED_KEPT = 1000  # until the heartbeat has written them
ASK_AGAIN_SECONDS = 60.0
RENEWED, CHANGED, STOPPED, GIVEN_UP = "renewed", "changed", "stopped", "given_up"


@dataclass(frozen=True)
class SessionRecord:
    """A session as its row tells it; the proxy by its hash."""

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
    """Lives on the loop thread; `records` and the counts may be read from others."""

    def __init__(
        self, host: BrowserHost, plan: ProxyPlan | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.host = host
        self.gate = Gate()
        self._options = host.options
        self._plan = plan or ProxyPlan()
        self._clock = clock
        self._version = ""  # of the browser, as it was last seen
        self._by_site: dict[str, Session] = {}
        self._next: dict[str, Session] = {}  # gets ready to take its place
        self._open: dict[str, Session] = {}  # by id; also those that only finish what they have begun
        self._pools: dict[str, ProxyPool] = {}
        self._asked_at: dict[str, float] = {}  # when a visit was last wanted
        self._ended: deque[SessionRecord] = deque(maxlen=ENDED_KEPT)
        self._closing: set[asyncio.Task[None]] = set()
        if not self._options.has_gate:
            logger.warning(
                "The browser at SCRAPER_CDP_ENDPOINT is on another machine: what a page reaches is checked in the page "
                "only, not below it. Shut it in there, with a firewall of its own",
                extra={"action": "browser_without_gate"},
            )

    @property
    def context_count(self) -> int:
        return sum(session.has_context for session in tuple(self._open.values()))

    @property
    def page_count(self) -> int:
        return sum(session.page_count for session in tuple(self._open.values()))

    async def get(self, site: Site, *, is_visit: bool = False) -> Session:
        """The session at a source; made where there is none, or where the source is now to be read otherwise.

        A visit may get one that is new and not in use yet: once it has gone well, that one is everybody's.
        """
        if not self._version:
            browser, _ = await self.host.browser()
            self._version = browser.version
        session = self._by_site.get(site.key)
        if session is not None and session.site != site:
            self._forget_site(site.key)
            session = None
        if session is None:
            session = self._by_site[site.key] = self._begin(site)
        elif is_visit and self._is_due(session):
            session = self._successor(session)
        return session

    def is_warm(self, key: str) -> bool:
        """Has a visit earned what direct reads of this source need?"""
        session = self._by_site.get(key)
        return session is not None and session.is_warm

    def wants_visit(self, key: str) -> bool:
        """Has the source's session had its time? Says so once in a while only: one visit renews it for everybody.

        May be called from any thread.
        """
        session, now = self._by_site.get(key), self._clock()
        if session is None or not session.is_warm or not self._is_due(session) or self._plan.mode is Mode.ROTATING:
            return False
        if now - self._asked_at.get(key, -ASK_AGAIN_SECONDS) < ASK_AGAIN_SECONDS:
            return False
        self._asked_at[key] = now
        return True

    def renew(self, key: str) -> None:
        """The next visit to this source begins another session; until that has gone well, the old one serves."""
        session = self._by_site.get(key)
        if session is not None:
            session.is_worn = True

    def drop(self, session: Session, *, cause: ScrapingError | None = None, reason: str = "") -> None:
        """Forget a session: the next one is a stranger to the source. A newer session stays."""
        if not session.is_dropped:  # many were reading through it: what it died of is told once
            self._end(session, cause, reason, self._failed(session, cause))

    def _end(self, session: Session, cause: ScrapingError | None, reason: str, verdict: Verdict | None) -> None:
        session.is_dropped = True
        key = session.site.key
        for table in (self._by_site, self._next):
            if table.get(key) is session:
                del table[key]
        word = cause_of(cause).value if cause is not None else reason or GIVEN_UP
        session_metrics.ended.labels(key, word).inc()
        session_metrics.quarantined.labels(key).set(self._pool(session.site).quarantined(self._clock()))
        self._ended.append(self._record(session, ended_because=words_of(cause) or word, verdict=verdict))
        logger.log(
            logging.INFO if cause is None else logging.WARNING,
            "Session at %s given up (%s); the next visit begins another",
            key,
            words_of(cause) or word,
            extra={"action": "session_ended", "source": key, "cause": word, **_proxy_fields(session)},
        )
        # Others may be reading through it: they get their answers before it closes.
        closing = asyncio.ensure_future(self._close_later(session))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def refused(self, session_id: str, cause: ScrapingError) -> None:
        """What this session brought turned out to be a refusal, once somebody had looked into it."""
        session = self._open.get(session_id)
        if session is not None:
            self.drop(session, cause=cause)

    async def close_all(self) -> None:
        """Forget every session at once."""
        for key in {*self._by_site, *self._next}:
            self._forget_site(key, reason=STOPPED)
        closing = tuple(self._closing)
        for task in closing:
            task.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
        for session in tuple(self._open.values()):
            await self._close(session)

    async def stop(self) -> None:
        self.host.begin_stop()  # else a poll that loses its page now would have a new browser started
        await self.close_all()
        await self.gate.stop()
        await self.host.stop()

    def records(self) -> list[SessionRecord]:
        """Every session that is open or has ended since `written`; for the heartbeat thread."""
        ended = tuple(self._ended)
        told = {record.session_id for record in ended}
        running = [one for one in tuple(self._open.values()) if not one.is_dropped and one.session_id not in told]
        return [*ended, *(self._record(session) for session in running)]

    def written(self, records: list[SessionRecord]) -> None:
        """These have their rows: what has ended need not be told again."""
        done = {record.session_id for record in records if record.ended_at is not None}
        for record in tuple(self._ended):
            if record.session_id in done:
                with contextlib.suppress(ValueError):
                    self._ended.remove(record)

    def _is_due(self, session: Session) -> bool:
        """Has it had its time? A proxy that rotates is for one visit. Pages that stay open keep their session."""
        if session.is_worn:
            return True
        if session.has_lasting_pages:
            return False
        if self._plan.mode is Mode.ROTATING and session.proxy is not None:
            return session.is_warm
        return self._clock() - session.created_at >= self._plan.sticky_seconds

    def _successor(self, session: Session) -> Session:
        key = session.site.key
        waiting = self._next.get(key)
        if waiting is None or self._plan.mode is Mode.ROTATING:
            waiting = self._next[key] = self._begin(session.site)
        return waiting

    def _begin(self, site: Site) -> Session:
        session_id, now = new_session_id(), self._clock()
        pick = self._pool(site).take(now) if site.uses_proxy else None
        proxy = pick.proxy.for_session(session_id, seconds=self._plan.sticky_seconds) if pick else None
        home = Country(self._options.locale, self._options.timezone)
        country = proxy.country if proxy else ""
        session = Session(
            site,
            self.host,
            self._options,
            gate=self.gate,
            profile=profile_for(session_id, version=self._version, country=country, home=home),
            session_id=session_id,
            proxy=proxy,
            told=self._hear,
        )
        session.created_at = now
        self._open[session_id] = session
        session_metrics.opened.labels(site.key, country).inc()
        self._tell_begin(session, pick)
        return session

    def _tell_begin(self, session: Session, pick: Pick | None) -> None:
        key = session.site.key
        if pick is not None and pick.is_quarantined:
            session_metrics.all_quarantined.labels(key).inc()
            logger.warning(
                "Every proxy is in quarantine at %s: the one that would be released first is used. More proxies "
                "(SCRAPER_PROXIES) or a longer interval help",
                key,
                extra={"action": "proxies_exhausted", "source": key, **_proxy_fields(session)},
            )
        logger.info(
            "Session at %s begun", key, extra={"action": "session_begun", "source": key, **_proxy_fields(session)}
        )

    def _hear(self, session: Session, outcome: Reading | ScrapingError, began: float) -> None:
        """A read through a session has ended. What its answers say of us, the reader judges, and drops it."""
        if session.is_dropped:
            return
        pool, now = self._pool(session.site), self._clock()
        if isinstance(outcome, ScrapingError):
            if session.proxy is not None and cause_of(outcome) is Cause.NO_ANSWER:
                verdict = pool.failed(session.proxy_hash, Cause.NO_ANSWER, now, began=began)
                if verdict.rotates:
                    self._end(session, outcome, "", verdict)
        elif is_good(outcome):
            pool.succeeded(session.proxy_hash, now)
            if session.is_warm and self._next.get(session.site.key) is session:
                self._promote(session)

    def _promote(self, session: Session) -> None:
        """It has what direct reads need: from now on it is the source's session."""
        key = session.site.key
        del self._next[key]
        old, self._by_site[key] = self._by_site.get(key), session
        if old is not None:
            self.drop(old, reason=RENEWED)

    def _failed(self, session: Session, cause: ScrapingError | None) -> Verdict | None:
        """Tell the pool what a session died of; of silence it knows already."""
        if cause is None or session.proxy is None or cause_of(cause) is Cause.NO_ANSWER:
            return None
        return self._pool(session.site).failed(session.proxy_hash, cause_of(cause), self._clock())

    def _pool(self, site: Site) -> ProxyPool:
        pool = self._pools.get(site.key)
        if pool is None:
            pool = ProxyPool(self._plan.proxies, quarantine_seconds=self._plan.quarantine_seconds)
            self._pools[site.key] = pool
        return pool

    def _record(self, session: Session, *, ended_because: str = "", verdict: Verdict | None = None) -> SessionRecord:
        now = datetime.now(UTC)
        until = verdict.quarantined_until if verdict is not None else None
        return SessionRecord(
            session_id=session.session_id,
            source=session.site.key,
            proxy_hash=session.proxy_hash,
            geo=session.proxy.country if session.proxy else "",
            created_at=session.opened_at,
            last_used_at=session.last_used_at,
            ended_at=now if ended_because else None,
            end_reason=ended_because,
            successes=session.successes,
            failures=session.failures,
            bytes_in=session.bytes_in,
            quarantined_until=now + timedelta(seconds=until - self._clock()) if until is not None else None,
        )

    def _forget_site(self, key: str, reason: str = CHANGED) -> None:
        for table in (self._by_site, self._next):
            session = table.get(key)
            if session is not None:
                self.drop(session, reason=reason)

    async def _close_later(self, session: Session) -> None:
        options = self._options
        try:
            await session.idle(options.navigation_timeout_seconds + options.page_timeout_seconds)
        finally:
            await self._close(session)

    async def _close(self, session: Session) -> None:
        self._open.pop(session.session_id, None)
        with contextlib.suppress(Exception):
            await session.close()


def _proxy_fields(session: Session) -> dict[str, str]:
    geo = session.proxy.country if session.proxy else ""
    return {"session_id": session.session_id, "proxy": session.proxy_hash, "geo": geo}
