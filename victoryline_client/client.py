"""Client of the VictoryLine API on httpx: tokens, conditional requests, retries. Safe for several threads."""

import logging
import random
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from victoryline_client.follower import Change, Follower
from victoryline_client.responses import ApiResponse, Document, Freshness, Problem, parse_seconds

logger = logging.getLogger("victoryline_client")

Sleep = Callable[[float], object]
CACHE_SIZE = 256  # responses that are kept with their ETag
MAX_WAIT_SECONDS = 30.0  # between the attempts of one call, in total


class Client:
    """A call that fails temporarily is repeated, up to `attempts` requests. Other options go to httpx.Client, such as
    `timeout`, the seconds of silence after which a request has failed."""

    def __init__(
        self, base_url: str, api_key: str, *, attempts: int = 4, sleep: Sleep = time.sleep, **options: Any
    ) -> None:
        address, self._api_key = urlsplit(base_url), api_key.strip()
        if address.scheme not in ("http", "https") or not address.hostname or set("@?#") & set(base_url):
            raise ValueError("The server's address must be like https://scores.example.com, without user and query.")
        if not (self._api_key and self._api_key.isascii() and self._api_key.isprintable()):
            raise ValueError("The API key is missing or has invalid characters: check what was pasted.")
        if address.scheme == "http" and address.hostname not in ("127.0.0.1", "::1", "localhost"):
            logger.warning("The API key for %s is sent unencrypted: use https", address.hostname)
        self._attempts, self._sleep, self._token, self._cache = attempts, sleep, "", dict[str, ApiResponse]()
        self._token_lock, self._cache_lock = threading.Lock(), threading.Lock()
        # Neither redirects nor proxies of the environment: the token goes to this server only.
        defaults = {"timeout": 10.0, "verify": ssl.create_default_context(), "trust_env": False}
        self._http = httpx.Client(base_url=base_url, **{**defaults, **options})
        self._http.headers["User-Agent"] = "victoryline-client/0.2.0"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def matches(self, **filters: Any) -> Iterator[ApiResponse]:
        """Returns every match that fits the filters, newest first, each with its own age (pages are not cached)."""
        target = str(httpx.URL("/api/v1/matches", params=filters))
        while target:
            page = self._call("GET", target, {})
            for item in page.data["matches"]:
                ages = {name: value for name, value in item["freshness"].items() if hasattr(page.freshness, name)}
                yield ApiResponse(data=item, freshness=replace(page.freshness, **ages))
            # Of the next page's address only the query is used: the token goes to no other server.
            target = f"/api/v1/matches?{urlsplit(page.data['next']).query}" if page.data.get("next") else ""

    def match(self, match_id: int | str, part: str = "", **params: Any) -> ApiResponse:
        """Returns a match, or a part of it: events, delta, snapshots, snapshots/3, lineups, conflicts."""
        path = f"/api/v1/matches/{quote(str(match_id), safe='')}"
        return self.get(f"{path}/{part}" if part else path, **params)

    def submit(self, match: Document, *, idempotency_key: str | None = None) -> ApiResponse:
        """Sends a match or {"matches": [...]} (scope ingest). The key makes repeated requests count once."""
        return self._call("POST", "/cricket-data", {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}, json=match)

    def get(self, path: str, *, attempts: int | None = None, **params: Any) -> ApiResponse:
        """Reads any resource. A repeated read is conditional: a 304 returns the data of the cached response."""
        target = str(httpx.URL(path, params=params))
        with self._cache_lock:
            cached = self._cache.get(target)
        response = self._call("GET", target, {"If-None-Match": cached.etag} if cached else {}, attempts=attempts)
        if cached and response.is_unchanged:
            response = replace(response, data=cached.data)
        if response.etag:
            with self._cache_lock:
                self._cache.pop(target, None)
                self._cache[target] = response  # at the end: the first one is the least recently used
                if len(self._cache) > CACHE_SIZE:
                    del self._cache[next(iter(self._cache))]
        return response

    def follow(
        self, match_id: int | str, *, after: int = 0, every_poll: bool = False, final_wait: float = 60.0
    ) -> Iterator[Change]:
        """Returns every change once, until the match is final and one more poll after `final_wait` seconds has none.

        The first change is the full match with its feed, or with the rows after `after`. `every_poll`: also polls
        without changes and with a temporary error, which is retried without end. Other errors are raised."""
        follower, failures, state = Follower(self.match, match_id, after), 0, ""
        while True:
            try:
                change = follower.poll()
            except httpx.HTTPError as error:
                if isinstance(error, Problem) and not error.is_temporary:
                    raise
                failures += 1
                logger.info("Following match %s: %s", match_id, error)
                if every_poll:
                    yield replace(follower.last, changed={}, events=(), error=error)
                self._sleep(backoff(error, failures))
                continue
            if every_poll or change.has_changes or change.freshness.state != state:
                yield change
            if state == change.freshness.state == "final" and not change.has_changes:
                return
            failures, state = 0, change.freshness.state
            self._sleep(final_wait if state == "final" else poll_interval(change.freshness.next_update_in))

    def _call(
        self, method: str, target: str, headers: Mapping[str, str], *, attempts: int | None = None, json: Any = None
    ) -> ApiResponse:
        """Repeats a request after temporary errors, and once after a refused token: tokens expire."""
        attempt, waited, refused, token = 1, 0.0, "", ""
        while True:
            try:
                token = self._current_token(refused)
                return self._send(method, target, {**headers, "Authorization": f"Bearer {token}"}, json)
            except httpx.HTTPError as error:
                if isinstance(error, Problem) and error.status == 401 and token and not refused:
                    refused = token
                    continue
                wait, is_final = backoff(error, attempt), isinstance(error, Problem) and not error.is_temporary
                if is_final or attempt >= (attempts or self._attempts) or waited + wait > MAX_WAIT_SECONDS:
                    raise
                logger.info("Attempt %d failed (%s); next attempt in %.1f s", attempt, error, wait)
            self._sleep(wait)
            attempt, waited = attempt + 1, waited + wait

    def _current_token(self, refused: str) -> str:
        with self._token_lock:
            if self._token == refused:
                response = self._send("POST", "/token/generate-token", {"X-API-Key": self._api_key})
                self._token = str(response.data.get("token"))
            return self._token

    def _send(self, method: str, target: str, headers: Mapping[str, str], json: Any = None) -> ApiResponse:
        """Sends one request. A response that VictoryLine did not send counts as a network error, also a 404."""
        requested_at = time.monotonic()
        response = self._http.request(method, target, headers=headers, json=json)
        is_unchanged = response.status_code == 304 and "If-None-Match" in headers
        try:
            data = {} if is_unchanged else response.json()
        except ValueError:
            data = None
        if response.is_error and (response.status_code != 404 or (isinstance(data, dict) and "type" in data)):
            raise Problem(response, data if isinstance(data, dict) else {})
        if not isinstance(data, dict) or not (response.is_success or is_unchanged):
            raise httpx.RemoteProtocolError(f"{response.status_code} {response.url} is not a response of VictoryLine.")
        headers = response.headers
        freshness = Freshness(
            state=headers.get("x-data-state", "unknown"),
            age_seconds=parse_seconds(headers.get("x-data-age-seconds")),
            scraped_at=headers.get("x-data-freshness"),
            next_update_in=parse_seconds(headers.get("x-next-update-in")),
            is_from_cache=headers.get("x-data-source") == "cache",
            requested_at=requested_at,
        )
        return ApiResponse(data=data, freshness=freshness, etag=headers.get("etag", ""), is_unchanged=is_unchanged)


def backoff(error: httpx.HTTPError, attempt: int) -> float:
    """Returns the seconds until the next attempt: Retry-After, else twice as long each time; with jitter."""
    if isinstance(error, Problem) and error.retry_after is not None:
        return min(900.0, error.retry_after) + random.uniform(0.0, 1.0)  # noqa: S311 - jitter is no secret
    return min(30.0, 0.5 * 2.0 ** min(attempt - 1, 16)) * random.uniform(0.5, 1.0)  # noqa: S311


def poll_interval(next_update_in: float | None) -> float:
    """Returns the seconds until the server has read the source again, between 1 and 60, with jitter."""
    seconds = min(60.0, max(1.0, 10.0 if next_update_in is None else next_update_in))
    return seconds * random.uniform(1.0, 1.1)  # noqa: S311
