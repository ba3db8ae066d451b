"""HTTP/1.1 over kept connections, as thin as it goes: whoever measures must not be what is measured.

A request is bytes made ahead; of an answer only the status, the length and what is asked for are looked at. One thread
sends and receives on many connections (epoll): some 20,000 answers a second on a core, http.client has 2,000.
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


class HungUpError(OSError):
    """The server has closed a connection that owed an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    head: bytes
    body: bytes

    def header(self, name: str) -> str:
        """Empty where there is none."""
        found = re.search(rb"\r\n" + name.encode() + rb": *([^\r\n]*)", self.head, re.IGNORECASE)
        return found[1].decode("latin-1") if found else ""

    def headers(self) -> dict[str, str]:
        return {name.decode().lower(): value.decode("latin-1") for name, value in HEADER.findall(self.head)}


def request(host: str, path: str, *, token: str = "", etag: str = "") -> bytes:
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Accept: application/json"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if etag:
        lines.append(f"If-None-Match: {etag}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def parse(received: bytes) -> tuple[Answer, int] | None:
    """The answer and how many bytes it took; None while a part of it is still on its way."""
    end = received.find(HEAD_END)
    if end < 0:
        return None
    head, start = received[:end], end + len(HEAD_END)
    status = int(head[9:12])
    if status in BODILESS:
        return Answer(status, head, b""), start
    length = LENGTH.search(head)
    if length is not None:
        stop = start + int(length[1])
        return (Answer(status, head, received[start:stop]), stop) if len(received) >= stop else None
    if CHUNKED.search(head):
        stop = received.find(LAST_CHUNK, start)
        return (Answer(status, head, received[start:stop]), stop + len(LAST_CHUNK)) if stop >= 0 else None
    raise HungUpError("an answer that doesn't say how long it is")


class Line:
    """A connection with at most one question under way. `tag` is the caller's: what it asked."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(None)  # with one, every call would look first whether it may go on
        self.tag: Any = None
        self.asked_at = 0.0
        self.is_asked = False
        self._received = b""

    def ask(self, question: bytes, *, tag: Any = None) -> None:
        self.tag, self.asked_at, self.is_asked, self._received = tag, time.perf_counter(), True, b""
        self.socket.sendall(question)  # a question is small: it fits into the socket's buffer

    def take(self) -> Answer | None:
        """What has come; None while a part of it is missing."""
        more = self.socket.recv(CHUNK)
        if not more:
            raise HungUpError("the server hung up")
        self._received = self._received + more if self._received else more
        found = parse(self._received)
        return found[0] if found else None


class Lines:
    """Several connections to one server, and who of them has an answer."""

    def __init__(self, address: tuple[str, int], number: int) -> None:
        self.address = address
        self._epoll = select.epoll()
        self._lines: dict[int, Line] = {}
        self.free = [self.add() for _ in range(number)]

    def add(self) -> Line:
        line = Line(self.address)
        self._lines[line.socket.fileno()] = line
        self._epoll.register(line.socket.fileno(), select.EPOLLIN)
        return line

    def drop(self, line: Line) -> None:
        if line in self.free:
            self.free.remove(line)
        self._epoll.unregister(line.socket.fileno())
        del self._lines[line.socket.fileno()]
        line.socket.close()

    def answers(self, timeout_seconds: float) -> Iterator[tuple[Line, Answer | OSError]]:
        """Whoever has an answer by now, waiting for the first; an error is an answer too, and its line is gone.

        A line that nobody has asked anything may be hung up by the server at any time: that is no answer.
        """
        for number, _ in self._epoll.poll(max(0.0, timeout_seconds)):
            line = self._lines[number]
            try:
                answer = line.take()
            except OSError as error:
                self.drop(line)
                if line.is_asked:
                    yield line, error
                continue
            if answer is not None:
                line.is_asked = False
                yield line, answer

    def close(self) -> None:
        for line in self._lines.values():
            line.socket.close()
        self._epoll.close()


def ask_once(address: tuple[str, int], question: bytes) -> Answer:
    """One question over a connection of its own."""
    line = Line(address)
    line.socket.settimeout(10)
    try:
        line.ask(question)
        while (answer := line.take()) is None:
            pass
        return answer
    finally:
        line.socket.close()
