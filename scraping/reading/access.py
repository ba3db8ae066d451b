"""Access to a source around every read: its session, its robots.txt, and the consequences of a failure for both.

robots.txt (RFC 9309) is fetched once an hour and obeyed unless the source's policy says otherwise. It is checked for
visited pages and for endpoints that we request directly, not for the requests that an allowed page's script makes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from protego import Protego
from yarl import URL

from scraping.browser.direct_client import DirectClient
from scraping.browser.session import Session
from scraping.browser.sessions import Sessions
from scraping.errors import (
    ERROR_RULES,
    AuthExpired,
    Blocked,
    Challenged,
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
from scraping.reading.request_modes import MAX_REASON, RequestModes
from scraping.reading.targets import Observer
from scraping.reading.tokens import Tokens
from scraping.readings import (
    PAGE,
    Document,
    Endpoint,
    Reading,
    ReadMode,
    RefInfo,
    Request,
    Site,
    evidence_from,
    report_stage,
    reporting_wait,
)
from scraping.sources.parsing import asks_for_proof, is_challenge

logger = logging.getLogger(__name__)

FORBIDDEN = 403
TOO_MANY_REQUESTS = 429
CHALLENGE_STATUSES = (403, 429, 503)  # with which challenges are sent, other than 200
CHALLENGE_BYTES = 200_000  # bot challenges are small pages
AGENT = "VictoryLine"
KEPT_SECONDS = 3600.0
RETRY_SECONDS = 15.0  # after a robots.txt that could not be fetched
STALE_SECONDS = 24 * 3600.0  # a robots.txt of this age is used while no new one can be fetched
FETCH_SECONDS = 10.0
MAX_BYTES = 512 * 1024
MAX_CACHED_URLS = 5000


Ask = Callable[[Session, ReadMode], Awaitable[Reading]]
Client = DirectClient | Session
REQUEST_WAYS = ("direct", "in_page")  # configured modes that exclude learning


class SourceAccess:
    """Lives on the loop thread."""

    def __init__(self, sessions: Sessions, tokens: Tokens, observer: Observer | None) -> None:
        self.sessions = sessions
        self.tokens = tokens
        self._observer = observer
        self.modes = RequestModes()
        self._robots = Robots()
        self._learning: dict[str, asyncio.Lock] = {}  # by source

    async def visit(
        self,
        site: Site,
        ref: RefInfo,
        endpoints: tuple[Endpoint, ...],
        *,
        required: Collection[str] = (),
        parse: Callable[[Reading], object] | None = None,
        is_suspect: bool = False,
        timeout_factor: float = 1.0,
    ) -> Reading:
        """Opens a page, and reads it with the responses of the endpoints that its scripts request."""
        wants_screenshot = partial(needs_screenshot, is_suspect=is_suspect)

        def is_readable(reading: Reading) -> bool:
            return parse is None or _is_readable(replace(reading, selectors=site.selectors), parse, required)

        return await self.read(
            site,
            lambda session: session.visit(
                ref,
                endpoints,
                wants_screenshot=wants_screenshot,
                is_readable=is_readable,
                timeout_factor=timeout_factor,
            ),
            urls=(ref.url,),
            required=required,
            timeout_factor=timeout_factor,
        )

    async def request(
        self,
        site: Site,
        ref: RefInfo,
        requests: tuple[Request, ...],
        *,
        required: Collection[str] = (),
        public: tuple[Request, ...] = (),
        is_ignored: Callable[[Document], bool] = lambda _: False,
        timeout_factor: float = 1.0,
    ) -> Reading:
        """Makes the requests without a page, with the source's token if it needs one.

        `public`: the requests to make instead while there is no token. Documents that are ignored fail no read.
        """

        async def ask(session: Session, mode: ReadMode) -> Reading:
            if site.token_url:
                with_token = partial(self.tokens.request, session, ref, requests, public=public)
                found = await with_token(mode=mode, timeout_factor=timeout_factor)
            else:
                found = await session.request(ref, requests, mode=mode, timeout_factor=timeout_factor)
            return replace(found, documents={n: one for n, one in found.documents.items() if not is_ignored(one)})

        urls = tuple(request.url for request in requests)
        ask_as_learned = partial(self._ask_as_learned, ask=ask, required=required)
        return await self.read(
            site, ask_as_learned, urls=urls, required=required, timeout_factor=timeout_factor, is_visit=False
        )

    async def _ask_as_learned(self, session: Session, *, ask: Ask, required: Collection[str]) -> Reading:
        """Makes requests directly or in a page, as learned; learns from a refusal in a session that is not yet used."""
        site = session.site
        if site.read_way in REQUEST_WAYS:
            return await ask(session, ReadMode(site.read_way))
        has_refused = site.key in self.modes.refusing
        mode, is_trial = self.modes.next_mode(site.key) if has_refused else (ReadMode.DIRECT, False)
        reading = await ask(session, mode)
        error = error_in(reading, required)
        if error is None:
            if not any(error_for(one) is None for one in reading.documents.values()):
                return reading  # it teaches nothing: none of its documents is required, and none was sent
            session.accepted_modes.add(mode)
            if has_refused:
                self.modes.accepted(site.key, mode)
            return replace(reading, reason=self.modes.reason(site.key) if mode is ReadMode.IN_PAGE else "")
        if not is_refusal(error) or (mode in session.accepted_modes and not is_trial):
            return reading
        reason = f"{error.error_class.value}: {error}"[:MAX_REASON]
        if mode is ReadMode.IN_PAGE:
            self.modes.refused_in_all(site.key, session.session_id, reason=reason)
            return reading
        async with reporting_wait(self._learning.setdefault(site.key, asyncio.Lock())):
            if self.modes.is_doubted(site.key, session.session_id):
                return reading
            if is_trial or self.modes.learned(site.key) is None:
                return await self._in_page_instead(session, ask, required, reading, reason)
        return (await self._ask_as_learned(session, ask=ask, required=required)).with_costs_of(reading)

    async def _in_page_instead(
        self, session: Session, ask: Ask, required: Collection[str], refused: Reading, reason: str
    ) -> Reading:
        """Repeats directly refused requests in a page, and learns which mode the source accepts."""
        key = session.site.key
        try:
            reading = await ask(session, ReadMode.IN_PAGE)
        except ScrapingError:  # it teaches nothing about the source
            return refused
        error = error_in(reading, required)
        if error is None:
            session.accepted_modes.add(ReadMode.IN_PAGE)
            self.modes.refused(key, accepted=ReadMode.IN_PAGE, reason=reason)
            reading = replace(reading, reason=reason)
        elif is_refusal(error):
            self.modes.refused_in_all(key, session.session_id, reason=reason)
        return reading.with_costs_of(refused)

    async def read(
        self,
        site: Site,
        read: Callable[[Session], Awaitable[Reading]],
        *,
        urls: tuple[str, ...],
        required: Collection[str] = (),
        timeout_factor: float = 1.0,
        is_visit: bool = True,
    ) -> Reading:
        """Reads through the source's session. Replaces a lost or hung browser; drops a session that is refused.

        `urls`: the requests to be checked against the site's robots.txt. `timeout_factor` above 1: a read through the
        same session timed out before; if it does so again, the session is dropped.
        """
        session = await self.sessions.get(site, is_visit=is_visit)
        await self._robots.check(session, site, *urls)
        report_stage("BROWSER_READY")
        try:
            reading = await read(session)
            if site.selectors:
                reading = replace(reading, selectors=site.selectors)
            if self._observer is not None:
                self._observer.reading(site.key, reading)
            with evidence_from(reading):
                return without_failed_documents(reading, required)
        except PageCrashed as error:  # the browser is replaced only if this repeats
            self.sessions.host.report_fault(session.generation, str(error))
            raise
        except ResourceLost as error:
            self.sessions.host.report_lost(session.generation, str(error))
            raise
        except ReadTimeout as error:
            if (is_visit or session.request_page.page is not None) and not await self.sessions.host.probe():
                raise ResourceLost("the browser hung and is being replaced") from None
            if timeout_factor > 1:
                self.sessions.drop(session, cause=error)
            raise
        except ScrapingError as error:
            if ERROR_RULES[error.error_class].rotates_session and not isinstance(error, NoToken):
                self.sessions.drop(session, cause=error)
            raise


def _is_readable(reading: Reading, parse: Callable[[Reading], object], required: Collection[str]) -> bool:
    try:
        parse(without_failed_documents(reading, required))
    except Drift:
        return False
    except ScrapingError:  # refused, gone, or slow: the status says it all
        return True
    except Exception:  # noqa: BLE001 - a bug, which is raised and recorded when the reading is parsed again
        return False
    return True


def needs_screenshot(page: Document | None, *, is_suspect: bool) -> bool:
    """Returns whether the page is worth a screenshot, which costs time: after a failure, a refusal or a challenge."""
    if is_suspect or page is None:
        return is_suspect
    if page.status == FORBIDDEN:
        return True
    return len(page.body) < CHALLENGE_BYTES and is_challenge(page.text())


def required_names(endpoints: tuple[Endpoint, ...]) -> frozenset[str]:
    return frozenset(endpoint.name for endpoint in endpoints if endpoint.is_required)


def without_failed_documents(reading: Reading, required: Collection[str]) -> Reading:
    """Returns the reading without documents that have an error status. Raises if the page or a required one has it."""
    errors = {name: error for name, one in reading.documents.items() if (error := error_for(one)) is not None}
    for name, error in errors.items():
        if name == PAGE or name in required:
            raise error
    return replace(reading, documents={name: one for name, one in reading.documents.items() if name not in errors})


def error_for(document: Document) -> ScrapingError | None:
    """Returns the error that the document's HTTP status means, or its body, if that is a challenge; None: no error."""
    if document.status < 300:
        return None
    kind = error_for_status(document.status) or Drift
    if document.status in CHALLENGE_STATUSES and len(document.body) < CHALLENGE_BYTES and asks_for_proof(document):
        kind = Challenged
    return kind(
        f"{document.name} answered {document.status}",
        http_status=document.status,
        url=document.url,
        retry_after_seconds=document.retry_after_seconds,
        evidence=document.text()[:2000],
    )


def error_in(reading: Reading, required: Collection[str]) -> ScrapingError | None:
    """Returns the error that the page or a required endpoint has, or a challenge in its place; None: all are good."""
    for name, document in reading.documents.items():
        if name == PAGE or name in required:
            if (error := error_for(document)) is not None:
                return error
            if document.content_type.startswith("text/html") and is_challenge(document.text()[:CHALLENGE_BYTES]):
                return Challenged(f"{name} answered with a bot challenge", url=document.url)
    return None


def is_refusal(error: ScrapingError) -> bool:
    """Returns whether the source refuses us, other than for asking too often."""
    return isinstance(error, AuthExpired | Blocked) and error.http_status != TOO_MANY_REQUESTS


@dataclass
class RobotsFile:
    """The robots.txt of an origin. Where the site has none, everything is allowed."""

    allows: Callable[[str], bool] = lambda _: True  # whether this URL may be fetched
    fetched_at: float = float("-inf")
    next_fetch_at: float = float("-inf")
    failure: ScrapingError | None = None  # of the last fetch
    has_warned: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Robots:
    """Lives on the loop thread."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._files: dict[str, RobotsFile] = {}

    async def check(self, client: Client, site: Site, *urls: str) -> None:
        """Raises RobotsRefused for a forbidden address, Transient while robots.txt can't be fetched."""
        if site.robots_policy == "ignore":
            return
        for url in urls:
            origin = _origin(url)
            file = self._files.setdefault(origin, RobotsFile())
            if self._clock() >= file.next_fetch_at:
                async with file.lock:
                    if self._clock() >= file.next_fetch_at:
                        await self._fetch(file, client, site, origin)
            if file.failure is not None and self._clock() - file.fetched_at >= STALE_SECONDS:
                if site.robots_policy == "obey" or isinstance(file.failure, EgressRefused):
                    raise file.failure.with_traceback(None)
            elif not file.allows(url):
                _refuse(file, site, url)

    async def _fetch(self, file: RobotsFile, client: Client, site: Site, origin: str) -> None:
        request = Request("robots", f"{origin}/robots.txt")
        try:
            document = await client.fetch(request, seconds=FETCH_SECONDS, may_be_empty=True)
            if document.status >= 500 or document.status == TOO_MANY_REQUESTS:
                raise Transient(
                    f"robots.txt of {site.key} answered {document.status}: nothing is read until it can be fetched",
                    http_status=document.status,
                    retry_after_seconds=document.retry_after_seconds,
                )
        except ScrapingError as error:
            file.failure, file.next_fetch_at = error, self._clock() + RETRY_SECONDS
            return
        rules = document.body[:MAX_BYTES].decode("utf-8", errors="replace") if document.status < 300 else ""
        parsed = Protego.parse(rules)
        file.allows = lru_cache(MAX_CACHED_URLS)(partial(parsed.can_fetch, user_agent=AGENT))
        file.failure, file.has_warned, file.fetched_at = None, False, self._clock()
        file.next_fetch_at = file.fetched_at + KEPT_SECONDS
        if delay := parsed.crawl_delay(AGENT):
            logger.warning(
                "%s asks in its robots.txt for %g s between two requests; a shorter minimum interval is too short",
                *(site.key, delay),
                extra={"action": "crawl_delay", "source": site.key},
            )


def _refuse(file: RobotsFile, site: Site, url: str) -> None:
    """Raises RobotsRefused, or only logs it once per fetch where the policy is to warn."""
    path = URL(url, encoded=True).raw_path
    if site.robots_policy == "obey":
        raise RobotsRefused(
            f"robots.txt of {site.key} forbids {path}: nothing was sent. It is fetched again in an hour; "
            "to read the page all the same, set the source's robots policy to warn or ignore",
            retry_after_seconds=KEPT_SECONDS,
            url=url,
        )
    if not file.has_warned:
        file.has_warned = True
        logger.warning(
            "robots.txt of %s forbids %s; it is read because of the source's robots policy",
            *(site.key, path),
            extra={"action": "robots_ignored", "source": site.key},
        )


@lru_cache(maxsize=MAX_CACHED_URLS)
def _origin(url: str) -> str:
    return str(URL(url, encoded=True).origin())
