"""Direct requests to sources that need a token: sends ours, renews it once if refused, else uses public endpoints.

The token of the page's own script, which a visit has kept, is used while there is none of ours.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial

import orjson
from yarl import URL

from scraping.browser.session import Session
from scraping.errors import Blocked, NoToken, Transient
from scraping.reading.token_cache import FetchedToken, MissingToken, TokenCache, parse_answer
from scraping.readings import PAGE, Document, Reading, ReadMode, RefInfo, Request

HEADER = "authorization"
TOKEN = "token"  # noqa: S105 - the name of a document
REFUSALS = frozenset({401, 403})
REQUESTED_WITHIN_SECONDS = 600.0  # a source whose matches are over needs no token

Ask = Callable[[tuple[Request, ...]], Awaitable[Reading]]


class Tokens:
    """The tokens of a worker, one per source. Lives on the loop thread; only `missing` may be called from another."""

    def __init__(
        self,
        credentials: Mapping[str, str] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:
        self._credentials = dict(credentials or {})
        self.caches: dict[str, TokenCache] = {}
        self._clock = clock
        self._chance = chance

    async def request(
        self,
        session: Session,
        ref: RefInfo,
        requests: tuple[Request, ...],
        *,
        public: tuple[Request, ...] = (),
        mode: ReadMode = ReadMode.DIRECT,
        timeout_factor: float = 1.0,
    ) -> Reading:
        """Makes the requests with the source's token. `public`: those to make instead while there is none."""
        ask = partial(session.request, ref, mode=mode, timeout_factor=timeout_factor)
        key, fetch = session.site.key, partial(self._fetch, session, mode)
        if key not in self.caches:
            self.caches[key] = TokenCache(key, clock=self._clock, chance=self._chance)
        cache = self.caches[key]
        refused: Reading | None = None
        token = await cache.get(fetch)
        for _ in range(2):  # with the cached one, then with a new one
            if token is None:
                break
            reading = (await ask(with_token(requests, token))).with_costs_of(refused)
            if not is_refused(reading):
                cache.accept(token)
                # Without our token: the requests are cached and logged elsewhere.
                return replace(reading, requests={request.name: request for request in requests})
            refused, token = reading, await cache.renew(token, fetch)
        if refused is not None and not any(one.status == 401 for one in _endpoint_documents(refused)):
            return refused  # a 403 also for a new token: the source refuses us, not the token
        return await _without_token(ask, requests, public, refused, cache)

    def missing(self) -> list[MissingToken]:
        """Returns the sources that need a token now and have none."""
        found = (one.missing(requested_within_seconds=REQUESTED_WITHIN_SECONDS) for one in list(self.caches.values()))
        return [one for one in found if one is not None]

    async def _fetch(self, session: Session, mode: ReadMode) -> FetchedToken:
        """Requests a token from the source's service. Errors contain nothing of what was sent or received."""
        site = session.site
        if URL(site.token_url).origin() != URL(site.base_url).origin():  # a page may request only what CORS allows
            mode = ReadMode.DIRECT
        credential = self._credentials.get(site.key)
        body = orjson.dumps({"api_key": credential} if credential else {})
        headers = {"content-type": "application/json", "accept": "application/json"}
        request = Request(TOKEN, site.token_url, "POST", body, headers)
        reading = await session.request(RefInfo("", site.token_url), (request,), mode=mode)
        document = reading.documents[TOKEN]
        if document.status in REFUSALS:
            what = "refuses the credential" if credential else "wants a credential and SOURCE_CREDENTIALS has none"
            raise Blocked(f"its token service {what} ({document.status})", http_status=document.status)
        if document.status != 200:
            raise Transient(
                f"its token service answered {document.status}",
                http_status=document.status,
                retry_after_seconds=document.retry_after_seconds,
            )
        return parse_answer(document, now=time.time())


async def _without_token(
    ask: Ask,
    requests: tuple[Request, ...],
    public: tuple[Request, ...],
    refused: Reading | None,
    cache: TokenCache,
) -> Reading:
    """Tries the page's own token where it has one, else the public requests."""
    pages = tuple(request for request in requests if request.name == PAGE)
    others = [request for request in requests if request.name != PAGE]
    if refused is None and all(HEADER in map(str.lower, request.headers) for request in others):
        refused = await ask(requests)
        if not is_refused(refused):
            return refused
    if public:
        return (await ask((*public, *pages))).with_costs_of(refused)
    if refused is None:
        raise NoToken(f"there is no token of {cache.source_key}: {cache.reason}")
    return refused


def with_token(requests: tuple[Request, ...], token: str) -> tuple[Request, ...]:
    """Adds the token to all requests except pages, which are public."""
    return tuple(
        request
        if request.name == PAGE
        else replace(
            request,
            headers={name: value for name, value in request.headers.items() if name.lower() != HEADER}
            | {HEADER: f"Bearer {token}"},
        )
        for request in requests
    )


def is_refused(reading: Reading) -> bool:
    """Returns whether at least one request was refused and none succeeded: a token that opens one endpoint is good."""
    statuses = [document.status for document in _endpoint_documents(reading)]
    return any(status in REFUSALS for status in statuses) and min(statuses) >= 300


def _endpoint_documents(reading: Reading) -> list[Document]:
    return [document for name, document in reading.documents.items() if name != PAGE]
