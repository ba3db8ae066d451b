"""One source's token: fetched once for all who wait, kept until it ends, renewed before.

Guards against a token service that is away, slow or wrong. A token that is still good is used as long as it is; after
that nobody waits for the service, which is asked again in the background, more and more seldom.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from scraping.errors import ScrapingError
from scraping.policies.retry import token_backoff_seconds
from scraping.reading.token_answer import TokenAnswer

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 5.0  # how long a reading waits for a token that is being fetched
RENEWED_BEFORE_SECONDS = 60.0
RENEWED_BEFORE_SHARE = 0.2  # of a life that is so short that a minute would be most of it

Fetch = Callable[[], Awaitable[TokenAnswer]]


@dataclass
class Token:
    text: str
    ends_at: float  # monotonic seconds
    renew_at: float
    is_proven: bool = False  # the source has accepted it


@dataclass(frozen=True)
class Without:
    """A source has had no token for so long."""

    source_key: str
    seconds: float
    reason: str


class TokenKeeper:
    """Lives on the loop thread; only `without` may be asked from another."""

    def __init__(
        self,
        source_key: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:
        self.source_key = source_key
        self.reason = ""  # why the last try brought nothing
        self._clock = clock
        self._chance = chance or random.Random()  # noqa: S311 - spreads out tries, keeps no secret
        self._token: Token | None = None
        self._failures = 0
        self._try_at = clock()
        self._fetching: asyncio.Task[None] | None = None
        self._without_since: float | None = None
        self._wanted_at = clock()

    async def get(self, fetch: Fetch) -> str | None:
        """A token that may be used now; None where there is none to be had."""
        self._wanted_at = self._clock()
        token = self._usable()
        if token is not None:
            if self._clock() >= token.renew_at:
                self._start(fetch)
            return token.text
        fetching = self._start(fetch)
        if fetching is not None and not self._failures:
            await asyncio.wait({fetching}, timeout=PATIENCE_SECONDS)
            token = self._usable()
        if token is None and self._without_since is None:
            self._without_since = self._clock()
        return token.text if token else None

    async def renew(self, refused: str, fetch: Fetch) -> str | None:
        """Another token in the place of one that the source has refused; None where there is none to be had."""
        token = self._token
        if token is not None and token.text == refused:  # else somebody else was faster
            self._token = None
            if token.is_proven:
                logger.info(
                    "%s refuses the token that it took before; a fresh one is asked for",
                    self.source_key,
                    extra={"action": "token_refused", "source": self.source_key},
                )
            else:  # it was fresh: another one would fare no better
                self._note_failure("the source refuses the token that its own service gave", None)
        return await self.get(fetch)

    def accept(self, text: str) -> None:
        """The source has taken it."""
        token = self._token
        if token is None or token.is_proven or token.text != text:
            return
        token.is_proven = True
        self._failures, self.reason = 0, ""
        if self._without_since is not None:
            seconds = self._clock() - self._without_since
            self._without_since = None
            logger.info(
                "%s takes our token, after %.0f s without one",
                self.source_key,
                seconds,
                extra={"action": "token_works", "source": self.source_key},
            )

    def without(self, *, wanted_within_seconds: float) -> Without | None:
        """For how long it has had none; None where it has one, or where nobody has wanted one for a while."""
        since, now = self._without_since, self._clock()
        if since is None or now - self._wanted_at > wanted_within_seconds:
            return None
        return Without(self.source_key, now - since, self.reason)

    def _usable(self) -> Token | None:
        return self._token if self._token is not None and self._clock() < self._token.ends_at else None

    def _start(self, fetch: Fetch) -> asyncio.Task[None] | None:
        """The fetch that is under way, or a new one; None while the service is to be left alone."""
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        if self._clock() < self._try_at:
            return None
        # In a context of its own: it outlives the task that was the first to want it.
        self._fetching = asyncio.get_running_loop().create_task(self._fetch(fetch), context=contextvars.Context())
        return self._fetching

    async def _fetch(self, fetch: Fetch) -> None:
        where = {"source": self.source_key}
        logger.info("Asking for a token of %s", self.source_key, extra={"action": "token_asked", **where})
        try:
            answer = await fetch()
        except ScrapingError as error:
            self._note_failure(str(error), error.retry_after_seconds)
            return
        except Exception as error:  # a bug must not end all tries: it is told, and tried again later
            self._note_failure(type(error).__name__, None)
            logger.exception("No token of %s", self.source_key, extra={"action": "token_failed", **where})
            return
        now, life = self._clock(), answer.life_seconds
        early = min(RENEWED_BEFORE_SECONDS, life * RENEWED_BEFORE_SHARE)
        self._token = Token(answer.text, ends_at=now + life, renew_at=now + life - early)
        logger.info(
            "A token of %s came, good for %.0f s", self.source_key, life, extra={"action": "token_received", **where}
        )

    def _note_failure(self, reason: str, asked: float | None) -> None:
        self._failures += 1
        self.reason = reason
        pause = token_backoff_seconds(self._failures, self._chance, retry_after=asked)
        self._try_at = self._clock() + pause
        logger.warning(
            "No token of %s (%s); the next try is in %.1f s",
            self.source_key,
            reason,
            pause,
            extra={"action": "token_failed", "source": self.source_key, "failures": self._failures},
        )
