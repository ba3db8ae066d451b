"""The environment of session tests: a small site, proxies, and a worker's loop thread with a browser.

All of them real: servers on this machine, Chromium, and everything between them over TCP.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from aiohttp import web

from scraping.browser.egress.upstream_proxies import Proxy, ProxyPlan
from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.policies.timeouts import Timeouts
from scraping.readings import Endpoint, RefInfo, Request, Site
from tests.patience import stretched

T = TypeVar("T")

LIVE = Endpoint("live", re.compile(r"^/api/live\.json"))
MATCH = """<!doctype html><title>match</title><link rel=stylesheet href=/style.css><img src=/crest.png>
<script src=/app.js></script><div id=app></div>"""
APP = """
fetch('/api/live.json?key=1').then(answer => answer.json())
    .then(data => { document.querySelector('#app').textContent = data.score; });
"""


class OnThread:
    """An event loop on its own thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float = 60) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout=seconds)

    def end(self) -> None:
        self.run(_end_others())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=stretched(10))
        self.loop.close()


async def _end_others() -> None:
    """Cancels all other tasks, which closes their connections."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)  # sockets are closed in the round after


@dataclass(frozen=True)
class Seen:
    """A request as the site or a proxy received it."""

    method: str
    path: str
    headers: dict[str, str]
    user: str = ""
    password: str = ""
    client_port: int = 0


Answer = Callable[[web.Request], web.StreamResponse | Awaitable[web.StreamResponse]]


class LocalSite(OnThread):
    """A match page whose script requests one endpoint. `answers` replaces the response of a path."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Seen] = []
        self.answers: dict[str, Answer] = {}
        self.run(self._start())

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        place = web.TCPSite(self._runner, "127.0.0.1", 0)
        await place.start()
        self.port = int(place._server.sockets[0].getsockname()[1])  # type: ignore[union-attr]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        headers = {key.lower(): value for key, value in request.headers.items()}
        assert request.transport is not None
        client_port = request.transport.get_extra_info("peername")[1]
        self.seen.append(Seen(request.method, request.path, headers, client_port=client_port))
        if request.path in self.answers:
            answer = self.answers[request.path](request)
            return answer if isinstance(answer, web.StreamResponse) else await answer
        return usual(request)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def match(self) -> RefInfo:
        return RefInfo("1", f"{self.url}/match")

    @property
    def request(self) -> Request:
        return Request("live", f"{self.url}/api/live.json?key=1")

    def as_source(self, key: str = "", **fields: Any) -> Site:
        return Site(key or f"local-{uuid.uuid4().hex[:6]}", self.url, allows_private=True, **fields)

    def paths(self) -> list[str]:
        return [one.path for one in self.seen]

    def last(self, path: str) -> Seen:
        return next(one for one in reversed(self.seen) if one.path == path)

    def reset(self) -> Self:
        self.seen.clear()
        self.answers.clear()
        return self

    def close(self) -> None:
        self.run(self._runner.cleanup())
        self.end()


def usual(request: web.Request) -> web.StreamResponse:
    if request.path == "/match":
        return web.Response(text=MATCH, content_type="text/html")
    if request.path == "/app.js":
        return web.Response(text=APP, content_type="text/javascript")
    if request.path == "/api/live.json":
        return web.json_response({"score": "92/1"})
    return web.Response(status=404, text="nothing here")


@dataclass
class LocalProxy:
    """An HTTP proxy with a password. `behaviour`: pass, hang, or a status to respond with instead of the site.

    `ports`: of its connections to the site.
    """

    thread: OnThread
    username: str = "anna"
    password: str = "geheim"
    country: str = ""
    behaviour: str = "pass"
    seen: list[Seen] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)
    port: int = 0
    _server: asyncio.Server | None = None

    def start(self) -> Self:
        self.thread.run(self._start())
        return self

    def close(self) -> None:
        if self._server is not None:
            self.thread.loop.call_soon_threadsafe(self._server.close)

    @property
    def proxy(self) -> Proxy:
        return Proxy("127.0.0.1", self.port, self.username, self.password, self.country)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
                while await self._one(reader, writer):
                    pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serves one request; returns False when the connection is to be closed."""
        raw = await reader.readuntil(b"\r\n\r\n")
        first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        credentials = base64.b64decode(headers.get("proxy-authorization", "").partition(" ")[2] or b"").decode()
        user, _, password = credentials.partition(":")
        self.seen.append(Seen(method, target, headers, user, password))
        if user != self.username or not password.startswith(self.password):
            writer.write(b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return True
        if self.behaviour == "hang":
            await reader.read()  # until the other side disconnects
            return False
        if self.behaviour.isdigit():
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {self.behaviour} No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno".encode())
            await writer.drain()
            return False
        await self._forward(method, target, headers, reader, writer)
        return False

    async def _forward(
        self,
        method: str,
        target: str,
        headers: dict[str, str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        host, path = (target, "") if method == "CONNECT" else target.removeprefix("http://").split("/", 1)
        name, _, port = host.partition(":")
        there, back = await asyncio.open_connection(name, int(port or 80))
        self.ports.add(back.get_extra_info("sockname")[1])
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            passed = "".join(f"{key}: {value}\r\n" for key, value in headers.items() if not key.startswith("proxy-"))
            back.write(f"{method} /{path} HTTP/1.1\r\n{passed}connection: close\r\n\r\n".encode("latin-1"))
        try:
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        finally:
            back.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


class Worker(OnThread):
    """A browser on a loop thread; `sessions` can be made repeatedly."""

    def __init__(self, program: Path, **options: Any) -> None:
        super().__init__()
        timeouts = Timeouts(navigation_seconds=8, selector_seconds=3, request_seconds=2)
        limits: dict[str, Any] = {"timeouts": timeouts, "max_body_bytes": 200_000}
        owner = f"sessions-{uuid.uuid4().hex[:8]}"
        self.host = BrowserHost(BrowserOptions(executable=program, owner=owner, **{**limits, **options}))
        self._made: list[Sessions] = []

    def sessions(self, plan: ProxyPlan | None = None, *, clock: Callable[[], float] | None = None) -> Sessions:
        async def make() -> Sessions:
            return Sessions(self.host, plan, clock=clock) if clock else Sessions(self.host, plan)

        made = self.run(make())
        self._made.append(made)
        return made

    def forget(self) -> None:
        """Closes the sessions of a test; the browser stays."""
        for sessions in self._made:
            self.run(sessions.close_all())
        self._made.clear()

    def close(self) -> None:
        self.forget()
        self.run(self.host.stop())
        self.end()
