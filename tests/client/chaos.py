"""A real HTTP proxy before the server that does to some requests what networks and proxies do to them."""

from __future__ import annotations

import http.client
import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

HANG_SECONDS = 20.0
HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "server", "date")
REFUSALS = {"429": "too-many-requests", "503": "unavailable", "500": "internal-error", "409": "conflict"}


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    fault: str
    status: int = 0


@dataclass
class ChaosProxy:
    """`faults` happen to the next requests, one each; "" lets one through. `only`: not to requests for a token.

    drop: the connection is closed. lost: the server did it, and its answer never arrives. cut: half of the answer.
    garbage, html, json: words of somebody else. hang: silence. 429, 503, 500: refused. redirect: elsewhere.
    """

    target: str
    faults: deque[str] = field(default_factory=deque)
    seen: list[Seen] = field(default_factory=list)
    retry_after: str = "2"
    only: Callable[[str], bool] = lambda path: not path.startswith("/token")
    _server: ThreadingHTTPServer | None = None
    _port: int = 0
    ending: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self.come_back()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.go_away()

    def come_back(self) -> None:
        """Listens on the port that it had before."""
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def go_away(self) -> None:
        """As a server that is restarted: nobody listens, and connections that were open are closed."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def is_away(self) -> bool:
        return self._server is None

    def fault_for(self, path: str) -> str:
        return self.faults.popleft() if self.faults and self.only(path) else ""

    def asked(self, word: str) -> list[Seen]:
        return [each for each in self.seen if word in each.path]


class _Handler(BaseHTTPRequestHandler):
    owner: ClassVar[ChaosProxy]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._meet()

    def do_POST(self) -> None:
        self._meet()

    def log_message(self, *_: Any) -> None:
        pass

    def _meet(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = "drop" if self.owner.is_away else self.owner.fault_for(self.path)
        seen = Seen(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, fault)
        self.owner.seen.append(seen)
        if fault in REFUSALS:
            self._refuse(seen)
        elif fault in ("", "lost", "cut"):
            self._forward(seen, body)
        else:
            self._mistreat(fault)

    def _forward(self, seen: Seen, body: bytes) -> None:
        target = urlsplit(self.owner.target)
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=20)
        try:
            connection.request(self.command, self.path, body or None, dict(self.headers.items()))
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        seen.status = answer.status
        if seen.fault == "lost":
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if seen.fault == "cut" else content)
        self.close_connection = self.close_connection or seen.fault == "cut"

    def _refuse(self, seen: Seen) -> None:
        seen.status = int(seen.fault)
        kind = REFUSALS[seen.fault]
        told = {"type": f"/problems/{kind}", "title": kind, "status": seen.status, "detail": "By the proxy."}
        self._send(seen.status, "application/problem+json", json.dumps(told).encode())

    def _mistreat(self, fault: str) -> None:
        self.close_connection = True
        if fault == "garbage":
            self.wfile.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        elif fault == "html":
            self._send(200, "text/html", b"<html>Please sign in to the airport's network</html>")
        elif fault == "json":
            self._send(200, "application/json", b'{"login": "please", "_metadata": 7}')
        elif fault == "nowhere":
            self._send(404, "text/html", b"<html>default backend - 404</html>")
        elif fault == "redirect":
            self._send(302, "text/plain", b"", Location="http://127.0.0.1:9/elsewhere")
        elif fault == "hang":
            self.owner.ending.wait(HANG_SECONDS)

    def _send(self, status: int, kind: str, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Retry-After": self.owner.retry_after, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
