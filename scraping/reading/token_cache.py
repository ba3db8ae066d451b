"""One source's token: fetched once for all readers, renewed before it expires.

Guards against a token service that is away, slow or wrong. A valid token is used until it expires; after that no reader
waits for the service, which is asked in the background with a growing pause. The expiry (`exp`) is kept as a duration,
so that a wrong clock costs a token too many and no data.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt
import orjson

from scraping.errors import SchemaBreak, ScrapingError
from scraping.policies.retry import token_backoff_seconds
from scraping.readings import Document

logger = logging.getLogger(__name__)

MAX_WAIT_SECONDS = 5.0  # of a reading, for a token that is being fetched
RENEWED_BEFORE_SECONDS = 60.0
RENEWED_BEFORE_SHARE = 0.2  # of a lifetime so short that a minute would be most of it
TOKEN_FIELDS = ("token", "access_token", "accessToken", "jwt")
UNKNOWN_LIFETIME_SECONDS = 600.0
SHORTEST_LIFETIME_SECONDS = 1.0
LONGEST_LIFETIME_SECONDS = 86_400.0
LONGEST_TOKEN = 8192


@dataclass(frozen=True)
class FetchedToken:
    text: str = field(repr=False)
    lifetime_seconds: float


Fetch = Callable[[], Awaitable[FetchedToken]]


@dataclass
class Token:
    text: str
    ends_at: float  # monotonic seconds
    renew_at: float
    is_accepted: bool = False  # by the source


@dataclass(frozen=True)
class MissingToken:
    """A source that has had no token for some time."""

    source_key: str
    seconds: float
    reason: str


class TokenCache:
    """Lives on the loop thread; only `missing` may be called from another."""

    def __init__(
        self,
        source_key: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:
        self.source_key = source_key
        self.reason = ""  # of the last failure
        self._clock = clock
        self._chance = chance or random.Random()  # noqa: S311 - spreads out attempts, keeps no secret
        self._token: Token | None = None
        self._failures = 0
        self._next_fetch_at = clock()
        self._fetching: asyncio.Task[None] | None = None
        self._missing_since: float | None = None
        self._requested_at = clock()

    async def get(self, fetch: Fetch) -> str | None:
        """Returns a valid token; None if there is none."""
        self._requested_at = self._clock()
        token = self._usable()
        if token is not None:
            if self._clock() >= token.renew_at:
                self._start(fetch)
            return token.text
        fetching = self._start(fetch)
        if fetching is not None and not self._failures:
            await asyncio.wait({fetching}, timeout=MAX_WAIT_SECONDS)
            token = self._usable()
        if token is None and self._missing_since is None:
            self._missing_since = self._clock()
        return token.text if token else None

    async def renew(self, refused: str, fetch: Fetch) -> str | None:
        """Returns a token in place of the one that the source refused; None if there is none."""
        token = self._token
        if token is not None and token.text == refused:  # else another read has renewed it already
            self._token = None
            if token.is_accepted:
                self._log("token_refused", "%s refuses the token that it accepted before; a new one is requested")
            else:  # it was new: the next one would be refused too
                self._record_failure("the source refuses the token that its own service gave", None)
        return await self.get(fetch)

    def accept(self, text: str) -> None:
        """Records that the source accepted the token."""
        token = self._token
        if token is None or token.is_accepted or token.text != text:
            return
        token.is_accepted = True
        self._failures, self.reason = 0, ""
        if self._missing_since is not None:
            seconds = self._clock() - self._missing_since
            self._missing_since = None
            self._log("token_works", "%s accepts our token, after %.0f s without one", seconds)

    def missing(self, *, requested_within_seconds: float) -> MissingToken | None:
        """Returns for how long there was no token; None if there is one, or if none was requested lately."""
        since, now = self._missing_since, self._clock()
        if since is None or now - self._requested_at > requested_within_seconds:
            return None
        return MissingToken(self.source_key, now - since, self.reason)

    def _usable(self) -> Token | None:
        return self._token if self._token is not None and self._clock() < self._token.ends_at else None

    def _start(self, fetch: Fetch) -> asyncio.Task[None] | None:
        """Returns the running fetch or a new one; None during the pause after a failure."""
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        if self._clock() < self._next_fetch_at:
            return None
        # In its own context: it outlives the task that started it.
        self._fetching = asyncio.get_running_loop().create_task(self._fetch(fetch), context=contextvars.Context())
        return self._fetching

    async def _fetch(self, fetch: Fetch) -> None:
        self._log("token_asked", "Requesting a token of %s")
        try:
            answer = await fetch()
        except ScrapingError as error:
            self._record_failure(str(error), error.retry_after_seconds)
            return
        except Exception as error:  # a bug must not end all attempts
            self._record_failure(type(error).__name__, None)
            logger.exception(
                "No token of %s", self.source_key, extra={"action": "token_failed", "source": self.source_key}
            )
            return
        now, life = self._clock(), answer.lifetime_seconds
        early = min(RENEWED_BEFORE_SECONDS, life * RENEWED_BEFORE_SHARE)
        self._token = Token(answer.text, ends_at=now + life, renew_at=now + life - early)
        self._log("token_received", "Received a token of %s, valid for %.0f s", life)

    def _record_failure(self, reason: str, asked: float | None) -> None:
        self._failures += 1
        self.reason = reason
        pause = token_backoff_seconds(self._failures, self._chance, retry_after=asked)
        self._next_fetch_at = self._clock() + pause
        message = "No token of %s (%s); the next attempt is in %.1f s"
        self._log("token_failed", message, reason, pause, level=logging.WARNING, failures=self._failures)

    def _log(self, action: str, message: str, *values: object, level: int = logging.INFO, **fields: int) -> None:
        extra = {"action": action, "source": self.source_key, **fields}
        logger.log(level, message, self.source_key, *values, extra=extra)


def parse_answer(document: Document, *, now: float) -> FetchedToken:
    """Raises SchemaBreak, without any text of the answer, if it has no token. `now`: unix seconds."""
    try:
        body = orjson.loads(document.body)
    except orjson.JSONDecodeError:
        raise SchemaBreak("the answer of the token service is not JSON") from None
    fields: Mapping[str, Any] = body if isinstance(body, dict) else {}
    text = next((fields[name] for name in TOKEN_FIELDS if isinstance(fields.get(name), str)), "")
    if not text or len(text) > LONGEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise SchemaBreak("the answer of the token service holds no token")
    return FetchedToken(text, lifetime_seconds(text, fields.get("expires_in"), now=now))


def lifetime_seconds(token: str, expires_in: object, *, now: float) -> float:
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError:  # another kind of token
        claims = {}
    end, begin = _number(claims.get("exp")), _number(claims.get("iat"))
    life = _number(expires_in) or UNKNOWN_LIFETIME_SECONDS
    if end is not None:
        left, whole = end - now, end - begin if begin is not None else None
        # Expired by our clock, or valid for longer than its whole lifetime: our clock is wrong.
        is_skewed = left <= 0 or (whole is not None and left > whole)
        life = (whole if whole is not None else UNKNOWN_LIFETIME_SECONDS) if is_skewed else left
    return min(max(life, SHORTEST_LIFETIME_SECONDS), LONGEST_LIFETIME_SECONDS)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
