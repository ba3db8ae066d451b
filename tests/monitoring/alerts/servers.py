"""A real HTTP server on this machine that receives alerts and stores them."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.patience import stretched


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


class HttpReceiver:
    """Answers with `status` (and `headers`); while `hangs` is set it reads the request and sends nothing."""

    def __init__(self) -> None:
        self.got: list[Received] = []
        self.status, self.headers = 200, dict[str, str]()
        self.hangs = threading.Event()
        self.released = threading.Event()
        taker = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                taker.got.append(Received(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                if taker.hangs.is_set():
                    taker.released.wait(stretched(20))
                    return
                self.send_response(taker.status)
                for name, value in taker.headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook/s3cret?x=1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
