"""HTTP with the standard library: connections that are kept and shared by threads, answers that are bounded.

Proxies of the environment (HTTPS_PROXY) are not used, redirects not followed: a token goes to the server it is for.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from victoryline_client.errors import Unreachable, clean

MAX_BODY_BYTES = 32 * 1024 * 1024
PIECE_BYTES = 64 * 1024
DRIP_FACTOR = 6
MAX_IDLE = 8
# Servers close idle connections after a while, and a question sent into one that is closing gets no answer.
IDLE_SECONDS = 30.0
# A kept connection may have been closed meanwhile, which says nothing about the server: it is asked again at once.
CLOSED = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
FAULTS = (OSError, http.client.HTTPException, ValueError)


@dataclass(frozen=True)
class Raw:
    """An answer as it came; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """To one server. Safe to use from many threads: each call has a connection to itself."""

    def __init__(self, base_url: str, *, timeout: float, context: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{base_url!r} is no address of a server: give one such as https://scores.example.com")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("The server's address must have no user, question mark or hash: only host, port and path")
        self.is_encrypted = parts.scheme == "https"
        self.host, self.port = parts.hostname, parts.port
        self.path = parts.path.rstrip("/")
        self._timeout = timeout
        self._context = (context or ssl.create_default_context()) if self.is_encrypted else None
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None) -> Raw:
        """Raises Unreachable. `target` is a path with its query; a base path of the server is put before it."""
        kept = self._take()
        if kept is not None and method == "GET":
            with suppress(*CLOSED):
                return self._ask_on(kept, method, target, headers, body)
        elif kept is not None:
            kept.close()  # what may change something is sent on a fresh one: a failure then is a real one
        try:
            return self._ask_on(self._new(), method, target, headers, body)
        except CLOSED as error:
            raise self._unreachable(method, target, error) from error

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _ask_on(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Raw:
        try:
            connection.request(method, self.path + target, body=body, headers=dict(headers))
            response = connection.getresponse()
            content = self._read(response)
        except BaseException as error:
            connection.close()
            if isinstance(error, FAULTS) and not isinstance(error, CLOSED):
                raise self._unreachable(method, target, error) from error
            raise
        if response.will_close:
            connection.close()
        else:
            self._give_back(connection)
        return Raw(response.status, {name.lower(): value for name, value in response.getheaders()}, content)

    def _unreachable(self, method: str, target: str, error: BaseException) -> Unreachable:
        words = clean(error) or "it closed the connection"
        where = self.host if self.port is None else f"{self.host}:{self.port}"
        return Unreachable(f"{where} did not answer {method} {target.partition('?')[0]}: {words}")

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        """The timeout of a socket is for a silence: an answer that drips is ended by its own time."""
        ends_at = time.monotonic() + DRIP_FACTOR * self._timeout
        pieces: list[bytes] = []
        size = 0
        with response:
            while piece := response.read1(PIECE_BYTES):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_BODY_BYTES:
                    raise http.client.HTTPException("its answer is too large")
                if time.monotonic() > ends_at:
                    raise TimeoutError("its answer takes too long")
            if response.length:  # less came than was announced, which read1 takes for an end
                raise http.client.HTTPException("its answer was cut off")
        return b"".join(pieces)

    def _new(self) -> http.client.HTTPConnection:
        if self._context is not None:
            return http.client.HTTPSConnection(self.host, self.port, timeout=self._timeout, context=self._context)
        return http.client.HTTPConnection(self.host, self.port, timeout=self._timeout)

    def _take(self) -> http.client.HTTPConnection | None:
        now = time.monotonic()
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if now - since < IDLE_SECONDS:
                    return connection
                connection.close()
        return None

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()
