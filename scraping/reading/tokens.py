"""Direct reads of sources that want a token: ours is sent along, renewed once when it is refused, and done without
where there is none: then what everybody may ask is asked.

A page's own script may have a token of its own, and a visit keeps the header that it sent. Ours goes first: it can be
renewed without a visit. The page's is used while there is none of ours.
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
from scraping.reading.token_answer import TokenAnswer, parse_answer
from scraping.reading.token_keeper import TokenKeeper, Without
from scraping.readings import PAGE, Reading, RefInfo, Request, Site

HEADER = "authorization"
TOKEN = "token"  # noqa: S105 - the name of a document
REFUSALS = frozenset({401, 403})
WANTED_WITHIN_SECONDS = 600.0  # a source whose matches are over needs no token, and misses none


Ask = Callable[[tuple[Request, ...]], Awaitable[Reading]]


class AsksDirectly(Protocol):
    """A session, as far as tokens need it."""

    site: Site

    async def direct(self, ref: RefInfo, requests: tuple[Request, ...], *, timeout_factor: float = 1.0) -> Reading: ...


class Tokens:
    """The tokens of a worker, one a source. Lives on the loop thread; only `without` may be asked from another."""

    def __init__(
        self,
        credentials: Mapping[str, str] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:
        self._credentials = dict(credentials or {})
        self._keepers: dict[str, TokenKeeper] = {}
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
        """Ask through the session. `public`: what to ask instead while there is no token."""
        ask = partial(session.direct, ref, timeout_factor=timeout_factor)
        if not session.site.token_url:
            return await ask(requests)
        keeper, fetch = self._keeper(session.site.key), partial(self._fetch, session)
        refused: Reading | None = None
        token = await keeper.get(fetch)
        for _ in range(2):  # with what we have, then with a fresh one
            if token is None:
                break
            reading = with_costs_of(refused, await ask(with_token(requests, token)))
            if not is_refused(reading):
                keeper.accept(token)
                # Our token stays here: nobody else needs to know how it was asked.
                return replace(reading, requests={request.name: request for request in requests})
            refused, token = reading, await keeper.renew(token, fetch)
        if refused is not None and not _wants_token(refused):
            return refused  # a 403 to a fresh token as well: something against us, not against the token
        return await _without_token(ask, requests, public, refused, keeper)

    def without(self) -> list[Without]:
        """The sources that want a token now and have had none for a while."""
        found = (one.without(wanted_within_seconds=WANTED_WITHIN_SECONDS) for one in list(self._keepers.values()))
        return [one for one in found if one is not None]

    def _keeper(self, key: str) -> TokenKeeper:
        if key not in self._keepers:
            self._keepers[key] = TokenKeeper(key, clock=self._clock, chance=self._chance)
        return self._keepers[key]

    async def _fetch(self, session: AsksDirectly) -> TokenAnswer:
        """Ask the source's token service. No error says anything of what was sent or came back."""
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
    keeper: TokenKeeper,
) -> Reading:
    """With the page's own token where it has one, else what everybody may ask."""
    pages = tuple(request for request in requests if request.name == PAGE)
    if refused is None and all(_has_header(request) for request in requests if request not in pages):
        refused = await ask(requests)
        if not is_refused(refused):
            return refused
    if public:
        return with_costs_of(refused, await ask((*public, *pages)))
    if refused is None:
        raise NoToken(f"there is no token of {keeper.source_key}: {keeper.reason}")
    return refused


def with_token(requests: tuple[Request, ...], token: str) -> tuple[Request, ...]:
    """Pages are open to everybody, and get none."""
    return tuple(
        request
        if request.name == PAGE
        else replace(request, headers={**_without_header(request.headers), HEADER: f"Bearer {token}"})
        for request in requests
    )


def is_refused(reading: Reading) -> bool:
    """None was answered, and one at least because of who asks. A token that opens one endpoint is no bad token."""
    answered = tuple(document for name, document in reading.documents.items() if name != PAGE)
    return any(one.status in REFUSALS for one in answered) and not any(one.status < 300 for one in answered)


def with_costs_of(first: Reading | None, second: Reading) -> Reading:
    if first is None:
        return second
    return replace(
        second,
        bytes_in=first.bytes_in + second.bytes_in,
        requests_made=first.requests_made + second.requests_made,
        duration_ms=first.duration_ms + second.duration_ms,
    )


def credentials_of(text: str) -> dict[str, str]:
    """`source=secret` pairs, separated by spaces; ValueError tells which one is none, and not what it is."""
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
