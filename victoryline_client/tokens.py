"""The bearer token: fetched with the key when it is needed, renewed before it ends, by one thread at a time."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping

from victoryline_client.connection import Raw
from victoryline_client.errors import PASSING, ClientError, Unreachable, problem_of

PATH = "/token/generate-token"
RENEW_AT = 0.9  # of a token's life: a new one is asked for while the old one is still good
TRY_AGAIN_SECONDS = 30.0

Post = Callable[[str, Mapping[str, str]], Raw]  # with these headers, and no body that could get stuck on the way
Clock = Callable[[], float]


class Tokens:
    def __init__(self, api_key: str, post: Post, clock: Clock) -> None:
        self._api_key, self._post, self._clock = api_key.strip(), post, clock  # files end with a line's end
        if not (self._api_key.isascii() and self._api_key.isprintable()):
            raise ValueError("The API key has characters that no key has: was something else pasted?")
        self._token = ""
        self._renew_at = self._ends_at = 0.0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "<Tokens>"  # never the key, never the token

    def get(self) -> str:
        """Raises Unauthorized for a key that is not accepted, and whatever else kept us from getting a token."""
        with self._lock:
            if self._clock() < min(self._renew_at, self._ends_at):
                return self._token
            try:
                self._fetch()
            except ClientError as error:
                # The old one is good for a while: a token service that is away must not stop anybody.
                now = self._clock()
                if not isinstance(error, PASSING) or now >= self._ends_at:
                    raise
                self._renew_at = now + TRY_AGAIN_SECONDS
            return self._token

    def refused(self, token: str) -> None:
        """The server does not take it (any more). Another thread may have got a new one meanwhile: that stays."""
        with self._lock:
            if token == self._token:
                self._token, self._renew_at, self._ends_at = "", 0.0, 0.0

    def _fetch(self) -> None:
        asked_at = self._clock()
        raw = self._post(PATH, {"X-API-Key": self._api_key})
        if raw.status != 200:
            raise problem_of(raw.status, raw.headers, raw.body)
        try:
            told = json.loads(raw.body)
            token, seconds = str(told["token"]), float(told["expires_in"])
        except (ValueError, KeyError, TypeError):
            raise Unreachable("What should have been a token is something else: is this the right server?") from None
        self._token = token
        self._renew_at, self._ends_at = asked_at + RENEW_AT * seconds, asked_at + seconds
