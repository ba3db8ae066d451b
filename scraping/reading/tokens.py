"""Direct requests to sources that need a token: sends ours, renews it once if refused, else uses public endpoints.

A page's script may have its own token, and a visit keeps the header that it sent. Ours goes first, because it can be
renewed without a visit. The page's token is used while there is none of ours.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Protocol

import orjson

from scraping.errors import Blocked, NoToken, Transient
from scraping.reading.token_cache import FetchedToken, MissingToken, TokenCache, parse_answer
from scraping.readings import PAGE, Reading, RefInfo, Request, Site

HEADER = "authorization"
TOKEN = "token"  # noqa: S105 - the name of a document
REFUSALS = frozenset({401, 403})
REQUESTED_WITHIN_SECONDS = 600.0  # a source whose matches are over needs no token

Ask = Callable[[tuple[Request, ...]], Awaitable[Reading]]


class AsksDirectly(Protocol):
    """The part of a session that tokens need."""

    site: Site

    async def direct(self, ref: RefInfo, requests: tuple[Request, ...], *, timeout_factor: float = 1.0) -> Reading: ...


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
        self._caches: dict[str, TokenCache] = {}
        self._clock = clock
        self._chance = chance

    async def direct(
        self,
        session: AsksDirectly,
        ref: RefInfo,
        requests: tuple[Request, ...],
        *,
        public: tuple[Request, ...] = (),
        timeout_factor: float = 1.0,
    ) -> Reading:
        """Makes the requests through the session. `public`: the requests to make instead while there is no token."""
        ask = partial(session.direct, ref, timeout_factor=timeout_factor)
        if not session.site.token_url:
            return await ask(requests)
        cache, fetch = self._cache(session.site.key), partial(self._fetch, session)
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
        if refused is not None and not _wants_token(refused):
            return refused  # a 403 also for a new token: the source refuses us, not the token
        return await _without_token(ask, requests, public, refused, cache)

    def missing(self) -> list[MissingToken]:
        """Returns the sources that need a token now and have none."""
        found = (one.missing(requested_within_seconds=REQUESTED_WITHIN_SECONDS) for one in list(self._caches.values()))
        return [one for one in found if one is not None]

    def _cache(self, key: str) -> TokenCache:
        if key not in self._caches:
            self._caches[key] = TokenCache(key, clock=self._clock, chance=self._chance)
        return self._caches[key]

    async def _fetch(self, session: AsksDirectly) -> FetchedToken:
        """Requests a token from the source's service. Errors contain nothing of what was sent or received."""
        site = session.site
        credential = self._credentials.get(site.key)
        body = orjson.dumps({"api_key": credential} if credential else {})
        headers = {"content-type": "application/json", "accept": "application/json"}
        request = Request(TOKEN, site.token_url, "POST", body, headers)
        reading = await session.direct(RefInfo("", site.token_url), (request,))
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
    if refused is None and all(_has_header(request) for request in requests if request not in pages):
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
        else replace(request, headers={**_without_header(request.headers), HEADER: f"Bearer {token}"})
        for request in requests
    )


def is_refused(reading: Reading) -> bool:
    """Returns whether at least one request was refused and none succeeded: a token that opens one endpoint is good."""
    answered = tuple(document for name, document in reading.documents.items() if name != PAGE)
    return any(one.status in REFUSALS for one in answered) and not any(one.status < 300 for one in answered)


def credentials_of(text: str) -> dict[str, str]:
    """Parses `source=secret` pairs, separated by spaces. A ValueError names the position of a bad one, not its text."""
    found: dict[str, str] = {}
    for number, pair in enumerate(text.split(), start=1):
        key, _, secret = pair.partition("=")
        if not key or not secret:
            raise ValueError(f"entry {number} is not source=secret")
        found[key] = secret
    return found


def _wants_token(reading: Reading) -> bool:
    return any(document.status == 401 for name, document in reading.documents.items() if name != PAGE)


def _has_header(request: Request) -> bool:
    return any(name.lower() == HEADER for name in request.headers)


def _without_header(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() != HEADER}
