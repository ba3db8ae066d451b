"""A minimal HTTP/1.1 client over persistent connections, so that the client does not limit the measured rate.

A request is prepared bytes; of a response only the status, the length and requested headers are parsed. One thread
uses many connections (epoll): about 20,000 responses a second on a core, http.client reaches 2,000.
"""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CHUNK = 1 << 18
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
HEADER = re.compile(rb"\r\n([^:\r\n]+): *([^\r\n]*)")
HEAD_END = b"\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
BODILESS = (204, 304)


class ConnectionClosedError(OSError):
    """The server closed a connection before its response was complete."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    head: bytes
    body: bytes

    def header(self, name: str) -> str:
        """Returns the value of a header, or an empty string."""
        found = re.search(rb"\r\n" + name.encode() + rb": *([^\r\n]*)", self.head, re.IGNORECASE)
        return found[1].decode("latin-1") if found else ""

    def headers(self) -> dict[str, str]:
        return {name.decode().lower(): value.decode("latin-1") for name, value in HEADER.findall(self.head)}


def request(host: str, path: str, *, token: str = "", etag: str = "") -> bytes:
    head = [f"GET {path} HTTP/1.1", f"Host: {host}", "Accept: application/json"]
    if token:
        head.append(f"Authorization: Bearer {token}")
    if etag:
        head.append(f"If-None-Match: {etag}")
    return ("\r\n".join(head) + "\r\n\r\n").encode()


def parse(received: bytes) -> tuple[Response, int] | None:
    """Returns the response and its length in bytes, or None while it is incomplete."""
    end = received.find(HEAD_END)
    if end < 0:
        return None
    head, start = received[:end], end + len(HEAD_END)
    status = int(head[9:12])
    if status in BODILESS:
        return Response(status, head, b""), start
    length = LENGTH.search(head)
    if length is not None:
        stop = start + int(length[1])
        return (Response(status, head, received[start:stop]), stop) if len(received) >= stop else None
    if CHUNKED.search(head):
        stop = received.find(LAST_CHUNK, start)
        return (Response(status, head, received[start:stop]), stop + len(LAST_CHUNK)) if stop >= 0 else None
    raise ConnectionClosedError("a response without a length")


class Connection:
    """A connection with at most one open request. `tag` belongs to the caller."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(None)  # a timeout would cost a poll() in every call
        self.tag: Any = None
        self.sent_at = 0.0
        self.is_pending = False
        self._received = b""

    def send(self, request_bytes: bytes, *, tag: Any = None) -> None:
        self.tag, self.sent_at, self.is_pending, self._received = tag, time.perf_counter(), True, b""
        self.socket.sendall(request_bytes)  # a request is small: it fits into the socket's buffer

    def take(self) -> Response | None:
        """Returns the response, or None while it is incomplete."""
        more = self.socket.recv(CHUNK)
        if not more:
            raise ConnectionClosedError("the server closed the connection")
        self._received = self._received + more if self._received else more
        found = parse(self._received)
        return found[0] if found else None


class Connections:
    """Several connections to one server, polled together."""

    def __init__(self, address: tuple[str, int], number: int) -> None:
        self.address = address
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self.free = [self.add() for _ in range(number)]

    def add(self) -> Connection:
        connection = Connection(self.address)
        self._connections[connection.socket.fileno()] = connection
        self._epoll.register(connection.socket.fileno(), select.EPOLLIN)
        return connection

    def drop(self, connection: Connection) -> None:
        if connection in self.free:
            self.free.remove(connection)
        self._epoll.unregister(connection.socket.fileno())
        del self._connections[connection.socket.fileno()]
        connection.socket.close()

    def responses(self, timeout_seconds: float) -> Iterator[tuple[Connection, Response | OSError]]:
        """Yields complete responses, and errors of connections with an open request, after a wait for the first.

        A failed connection is dropped. A close of an idle connection is not an error.
        """
        for number, _ in self._epoll.poll(max(0.0, timeout_seconds)):
            connection = self._connections[number]
            try:
                response = connection.take()
            except OSError as error:
                self.drop(connection)
                if connection.is_pending:
                    yield connection, error
                continue
            if response is not None:
                connection.is_pending = False
                yield connection, response

    def close(self) -> None:
        for connection in self._connections.values():
            connection.socket.close()
        self._epoll.close()


def request_once(address: tuple[str, int], request_bytes: bytes) -> Response:
    """Sends one request over its own connection."""
    connection = Connection(address)
    connection.socket.settimeout(10)
    try:
        connection.send(request_bytes)
        while (response := connection.take()) is None:
            pass
        return response
    finally:
        connection.socket.close()
