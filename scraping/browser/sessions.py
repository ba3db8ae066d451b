"""The sessions of a worker: one or more per source, replaced when the source refuses one or its time is over.

When its time is over, the next visit opens a successor; the old session serves direct reads until that visit has
succeeded. Of several sessions the least recently used one reads; each is opened by a visit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from cachetools import LRUCache
from prometheus_client import Counter, Gauge

from scraping.browser.egress.upstream_proxies import (
    FailureCause,
    ProxyPlan,
    ProxyPool,
    cause_of,
    error_label,
)
from scraping.browser.host import BrowserHost
from scraping.browser.profile import profile_for
from scraping.browser.session import Session, SessionRecord, is_success
from scraping.errors import Challenged, ScrapingError
from scraping.readings import Reading, ReadMode, Site

logger = logging.getLogger(__name__)

MAX_ENDED = 1000  # kept until the heartbeat has written them
RENEWAL_SECONDS = 60.0
MIN_READINGS, MAX_SIZES = 20, 5000
ABNORMAL_FACTOR, ABNORMAL_BYTES = 5.0, 100_000  # of one request
CHALLENGE_SECONDS = 600.0  # in which a source's sessions are replaced once for its challenges

# Labelled by source only: proxies are not exposed.
_opened = Counter("scraper_sessions", "Sessions that were opened at a source.", ["source", "geo"])
_ended = Counter("scraper_sessions_ended", "Sessions that were ended, by cause.", ["source", "cause"])
_all_quarantined = Counter(
    "scraper_proxies_exhausted", "Sessions that used a proxy in quarantine because all of them were.", ["source"]
)
_quarantined = Gauge("scraper_proxies_quarantined", "Proxies in quarantine at a source.", ["source"])


class UsualSizes:
    """The usual bytes of a request, for each match and the documents that are read of it.

    Guards against a heavy page in place of the data, such as a bot challenge that no parser recognises. After an
    abnormal reading the size is learned anew: a match whose data have grown costs one session.
    """

    def __init__(self) -> None:
        self._means: LRUCache[tuple[str, ...], tuple[float, int]] = LRUCache(MAX_SIZES)  # with number of readings

    def is_abnormal(self, source: str, reading: Reading) -> bool:
        """Counts the reading; returns whether its requests brought many times the bytes that are usual."""
        if not reading.requests_made or reading.mode is ReadMode.ATTACHED:  # an open page is counted from time to time
            return False
        names = sorted(reading.requests) if reading.mode.is_requested else ()
        key = (source, reading.ref.source_event_id, reading.mode.value, *names)
        size = reading.bytes_in / reading.requests_made
        mean, number = self._means.get(key, (0.0, 0))
        if number >= MIN_READINGS and size > max(ABNORMAL_FACTOR * mean, ABNORMAL_BYTES):
            del self._means[key]
            return True
        number = min(number + 1, MIN_READINGS)
        self._means[key] = mean + (size - mean) / number, number
        return False


class Sessions:
    """Lives on the loop thread. Other threads may read `records` and the counts."""

    def __init__(
        self, host: BrowserHost, plan: ProxyPlan | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.host = host
        self._plan = plan or ProxyPlan()
        self._clock = clock
        self._version = ""  # of the browser
        self._by_site = defaultdict[str, list[Session]](list)
        self._successors: dict[str, Session] = {}
        self._open: dict[str, Session] = {}  # by id; also dropped ones with reads under way
        self._pools = defaultdict[str, ProxyPool](  # by source
            lambda: ProxyPool(self._plan.proxies, quarantine_seconds=self._plan.quarantine_seconds)
        )
        self._sizes = UsualSizes()
        self._renewal_asked_at: dict[str, float] = {}
        self._challenged_at: dict[str, float] = {}  # by source: when a session was replaced for a challenge
        self._ended: deque[SessionRecord] = deque(maxlen=MAX_ENDED)
        self._closing: set[asyncio.Task[None]] = set()
        if not host.options.has_forward_proxy:
            logger.warning(
                "The browser at SCRAPER_CDP_ENDPOINT is on another machine: the hosts of a page are checked in "
                "the page only, not by the forward proxy. Restrict that browser with a firewall",
                extra={"action": "browser_unrestricted"},
            )

    @property
    def context_count(self) -> int:
        return sum(session.is_open for session in tuple(self._open.values()))

    @property
    def page_count(self) -> int:
        return sum(session.page_count for session in tuple(self._open.values()))

    async def get(self, site: Site, *, is_visit: bool = False) -> Session:
        """Returns the least recently used session of a source; opens one where there is none, or its site has changed.

        A visit opens another where there are fewer than planned, and may get the successor of one whose time is over.
        """
        if not self._version:
            browser, _ = await self.host.browser()
            self._version = browser.version
        sessions = self._by_site[site.key]
        if any(one.site != site for one in sessions):
            self._drop_site(site.key, "changed")
        if not sessions or (is_visit and self._is_short(sessions)):
            sessions.append(self._open_session(site))
            return sessions[-1]
        attached = [one for one in sessions if one.has_attached_pages]
        warm = [one for one in sessions if one.is_warm]
        if is_visit:  # a session that was never used for one is completed by it
            session = min(attached or sessions, key=lambda one: (not self._is_due(one), one.is_warm, one.taken_at))
        else:
            session = min(warm or sessions, key=lambda one: one.taken_at)
        if is_visit and self._is_due(session):
            successor = self._successors.get(site.key)
            if successor is None or self._plan.is_rotating:
                successor = self._successors[site.key] = self._open_session(site)
            session = successor
        session.taken_at = self._clock()
        return session

    def _is_short(self, sessions: Sequence[Session]) -> bool:
        """Returns whether another session is to be opened: one after the other, and beside no open pages."""
        return len(sessions) < self._plan.sessions_per_source and all(
            one.is_warm and not one.has_attached_pages for one in sessions
        )

    def is_warm(self, key: str) -> bool:
        """Whether a visit has succeeded, so that direct reads of this source are possible."""
        return any(one.is_warm for one in tuple(self._by_site.get(key, ())))

    def wants_visit(self, key: str) -> bool:
        """Whether a session's time is over, or one is missing, and a visit should open another; True once a minute."""
        sessions, now = tuple(self._by_site.get(key, ())), self._clock()
        if not any(one.is_warm for one in sessions) or self._plan.is_rotating:
            return False
        is_wanted = self._is_short(sessions) or any(one.is_warm and self._is_due(one) for one in sessions)
        asked_at = self._renewal_asked_at.get(key, -RENEWAL_SECONDS)
        if not is_wanted or now - asked_at < RENEWAL_SECONDS:
            return False
        self._renewal_asked_at[key] = now
        return True

    def renew(self, key: str) -> None:
        """Makes the next visits open other sessions; the old ones serve until those visits have succeeded."""
        for session in self._by_site.get(key, ()):
            session.is_worn = True

    def drop(self, session: Session, *, cause: ScrapingError | None = None, reason: str = "given_up") -> None:
        """Ends a session, so that the next one has a new identity. A newer session stays."""
        if session.is_dropped:  # concurrent reads fail together; only the first failure counts
            return
        if isinstance(cause, Challenged) and not self._may_rotate_for_challenge(session.site.key):
            return
        is_refused = cause is not None and cause_of(cause) is FailureCause.REFUSED
        self._end(session, cause, reason, is_quarantined=is_refused)

    def _may_rotate_for_challenge(self, key: str) -> bool:
        """Returns False for ten minutes after a session was replaced for a challenge: another would meet it too."""
        now = self._clock()
        if now - self._challenged_at.get(key, float("-inf")) < CHALLENGE_SECONDS:
            return False
        self._challenged_at[key] = now
        return True

    def _end(self, session: Session, cause: ScrapingError | None, reason: str, *, is_quarantined: bool) -> None:
        """`is_quarantined`: the failure is the proxy's, which is not used for some time."""
        session.is_dropped = True
        key, record, pool = session.site.key, session.record, self._pools[session.site.key]
        until = pool.quarantine(record.proxy_hash, self._clock()) if is_quarantined else None
        if session in self._by_site[key]:
            self._by_site[key].remove(session)
        if self._successors.get(key) is session:
            del self._successors[key]
        label = cause_of(cause).value if cause is not None else reason
        _ended.labels(key, label).inc()
        _quarantined.labels(key).set(pool.quarantined_count(self._clock()))
        record.ended_at, record.end_reason = datetime.now(UTC), error_label(cause) or label
        if until is not None:
            record.quarantined_until = record.ended_at + timedelta(seconds=until - self._clock())
        self._ended.append(record)
        logger.log(
            logging.INFO if cause is None else logging.WARNING,
            "Session at %s ended (%s); the next visit opens another",
            key,
            record.end_reason,
            extra={"action": "session_ended", "cause": label, **_log_fields(session)},
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
        for key in {*self._by_site, *self._successors}:
            self._drop_site(key, "stopped")
        closing = tuple(self._closing)
        for task in closing:
            task.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
        for session in tuple(self._open.values()):
            await self._close(session)

    async def stop(self) -> None:
        self.host.begin_stop()  # a poll that loses its page now must not start a new browser
        await self.close_all()
        await self.host.stop()

    def records(self) -> list[SessionRecord]:
        """Returns every session that is open or has ended since `written`; for the heartbeat thread."""
        ended = tuple(self._ended)
        ended_ids = {record.session_id for record in ended}
        running = [one for one in tuple(self._open.values()) if not one.is_dropped and one.session_id not in ended_ids]
        return [*ended, *(session.record for session in running)]

    def written(self, records: list[SessionRecord]) -> None:
        for record in records:
            with contextlib.suppress(ValueError):
                self._ended.remove(record)

    def _is_due(self, session: Session) -> bool:
        """Whether it must be replaced: a rotating proxy serves one visit; attached pages keep their session."""
        if session.is_worn:
            return True
        if session.has_attached_pages:
            return False
        if self._plan.is_rotating and session.proxy is not None:
            return session.is_warm
        return self._clock() - session.created_at >= self._plan.sticky_seconds

    def _open_session(self, site: Site) -> Session:
        session_id, now = secrets.token_hex(8), self._clock()
        proxy, is_quarantined = self._pools[site.key].take(now) if site.uses_proxy else (None, False)
        proxy = proxy.for_session(session_id, seconds=self._plan.sticky_seconds) if proxy else None
        session = Session(
            site,
            self.host,
            session_id=session_id,
            profile=profile_for(session_id, version=self._version, country=proxy.country if proxy else ""),
            proxy=proxy,
            created_at=now,
            on_read=self._on_read,
        )
        self._open[session_id] = session
        _opened.labels(site.key, session.record.geo).inc()
        if is_quarantined:
            _all_quarantined.labels(site.key).inc()
            logger.warning(
                "Every proxy is in quarantine at %s: the one that is released first is used. Add proxies "
                "(SCRAPER_PROXIES) or poll less often",
                site.key,
                extra={"action": "proxies_exhausted", **_log_fields(session)},
            )
        logger.info("Session at %s opened", site.key, extra={"action": "session_begun", **_log_fields(session)})
        return session

    def _on_read(self, session: Session, outcome: Reading | ScrapingError, seconds: float) -> None:
        """Records the end of a read. Refusals inside a reading are found by the reader, which drops the session."""
        if session.is_dropped:
            return
        key, now = session.site.key, self._clock()
        pool, proxy_hash = self._pools[key], session.record.proxy_hash
        if isinstance(outcome, ScrapingError):
            if cause_of(outcome) is FailureCause.NO_ANSWER and pool.timed_out(proxy_hash, began=now - seconds, now=now):
                self._end(session, outcome, "", is_quarantined=True)
        elif is_success(outcome):
            if proxy_hash:
                pool.succeeded(proxy_hash, now)
            if session.is_warm and self._successors.get(key) is session:
                del self._successors[key]
                due = [one for one in self._by_site[key] if self._is_due(one)]
                self._by_site[key].append(session)
                if due:
                    self.drop(min(due, key=lambda one: one.taken_at), reason="renewed")
            if self._sizes.is_abnormal(key, outcome):
                self.drop(session, reason="abnormal_bytes")

    def _drop_site(self, key: str, reason: str) -> None:
        successor = self._successors.get(key)
        for session in (*self._by_site[key], *([successor] if successor else ())):
            self.drop(session, reason=reason)

    async def _close_later(self, session: Session) -> None:
        usual = self.host.options.timeouts
        try:
            await session.wait_idle(usual.navigation_seconds + usual.page_seconds)
        finally:
            await self._close(session)

    async def _close(self, session: Session) -> None:
        self._open.pop(session.session_id, None)
        with contextlib.suppress(Exception):
            await session.close()


def _log_fields(session: Session) -> dict[str, str]:
    return {
        "source": session.site.key,
        "session_id": session.session_id,
        "proxy": session.record.proxy_hash,
        "geo": session.record.geo,
    }
