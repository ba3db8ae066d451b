"""A real HTTP proxy in front of the server that injects network and proxy faults."""

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
REFUSALS = {"429": "too-many-requests", "503": "unavailable", "500": "internal-error"}


@dataclass
class SeenRequest:
    method: str
    path: str
    headers: dict[str, str]
    fault: str
    status: int = 0


@dataclass
class FaultyProxy:
    """Each of `faults` applies to one of the next requests for which `applies_to` is true; "" forwards unchanged.

    drop: closes the connection. lost: forwards, then drops the response. cut: sends half of the response. garbage: not
    HTTP. html, json, not_found: a response of another server. hang: no response. 429, 503, 500: a problem document.
    redirect: a 302. late: the response of a server process that lacks the last event.
    """

    target: str
    faults: deque[str] = field(default_factory=deque)
    seen: list[SeenRequest] = field(default_factory=list)
    retry_after: str = "2"
    applies_to: Callable[[str], bool] = lambda path: not path.startswith("/token")
    _server: ThreadingHTTPServer | None = None
    _port: int = 0
    is_closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closing.set()
        self.stop()

    def start(self) -> None:
        """Listens, after a stop on the same port."""
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Closes the port and all open connections, as a restart of the server does."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def is_stopped(self) -> bool:
        return self._server is None

    def next_fault(self, path: str) -> str:
        return self.faults.popleft() if self.faults and self.applies_to(path) else ""

    def requests_for(self, part: str) -> list[SeenRequest]:
        return [each for each in self.seen if part in each.path]


class _Handler(BaseHTTPRequestHandler):
    owner: ClassVar[FaultyProxy]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def log_message(self, *_: Any) -> None:
        pass

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = "drop" if self.owner.is_stopped else self.owner.next_fault(self.path)
        seen = SeenRequest(
            self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, fault
        )
        self.owner.seen.append(seen)
        if fault in REFUSALS:
            self._refuse(seen)
        elif fault in ("", "lost", "cut", "late"):
            self._forward(seen, body)
        else:
            self._misbehave(fault)

    def _forward(self, seen: SeenRequest, body: bytes) -> None:
        target = urlsplit(self.owner.target)
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=120)
        try:
            connection.request(self.command, self.path, body or None, dict(self.headers.items()))
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        seen.status = answer.status
        if seen.fault == "late":
            document = json.loads(content)
            document["events"].pop()
            document["_metadata"]["sequence"] -= 1
            content = json.dumps(document).encode()
        if seen.fault == "lost":
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_BY_HOP and (name.lower(), seen.fault) != ("etag", "late"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if seen.fault == "cut" else content)
        self.close_connection = self.close_connection or seen.fault == "cut"

    def _refuse(self, seen: SeenRequest) -> None:
        seen.status = int(seen.fault)
        kind = REFUSALS[seen.fault]
        document = {"type": f"/problems/{kind}", "title": kind, "status": seen.status, "detail": "By the proxy."}
        self._send(seen.status, "application/problem+json", json.dumps(document).encode())

    def _misbehave(self, fault: str) -> None:
        self.close_connection = True
        if fault == "garbage":
            self.wfile.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        elif fault == "html":
            self._send(200, "text/html", b"<html>Please sign in to the airport's network</html>")
        elif fault == "json":
            self._send(200, "application/json", b'{"login": "please", "_metadata": 7}')
        elif fault == "not_found":
            self._send(404, "text/html", b"<html>default backend - 404</html>")
        elif fault == "redirect":
            self._send(302, "text/plain", b"", Location="http://127.0.0.1:9/elsewhere")
        elif fault == "hang":
            self.owner.is_closing.wait(HANG_SECONDS)

    def _send(self, status: int, kind: str, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Retry-After": self.owner.retry_after, **headers}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
