"""A real Chromium behind the forward proxy: no request of a page reaches a forbidden server."""

from __future__ import annotations

import asyncio
import re
import threading
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

from scraping.browser.egress.forward_proxy import TrafficLimits
from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.errors import EgressRefused, RobotsRefused, ScrapingError, Transient
from scraping.policies.timeouts import Timeouts
from scraping.reading.reader import Reader
from scraping.readings import PAGE, Endpoint, Reading, RefInfo, Site
from scraping.sources import adapter_for
from tests.patience import stretched
from tests.scraping.browser.hostile import MEGABYTE, Seen, endless, raw_server, redirect, text, web_server
from victoryline.lib import chromium

pytestmark = [pytest.mark.slow, pytest.mark.fault]

T = TypeVar("T")
FAULTS_ONLY = pytest.mark.faults_only


class Browser:
    """A browser host and its sessions on a loop thread, as in a worker."""

    def __init__(self) -> None:
        program = chromium.find(chosen=None, var_dir=Path("var"))
        assert program is not None
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        options = BrowserOptions(
            executable=program,
            owner=f"proxy-{uuid.uuid4().hex[:8]}",
            timeouts=Timeouts(
                page_seconds=stretched(5), navigation_seconds=stretched(5), selector_seconds=stretched(2)
            ),
        )
        self.sessions = self.run(self._start(options))

    async def _start(self, options: BrowserOptions) -> Sessions:
        return Sessions(BrowserHost(options))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout=stretched(60))

    def close(self) -> None:
        self.run(self.sessions.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=stretched(10))
        self.loop.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    running = Browser()
    yield running
    running.close()


class Listener(asyncio.DatagramProtocol):
    """Records UDP packets."""

    def __init__(self) -> None:
        self.packets = 0

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.packets += 1


@asynccontextmanager
async def ground(page: str, **more: Any) -> AsyncIterator[tuple[Seen, Seen, Seen]]:
    """A site with this page, and two servers that it must not reach: on another address, and on its own host.

    A page that has tried everything requests /done.
    """
    async with web_server({}, host="127.0.0.2") as other, web_server({}) as neighbour:
        body = page.replace("OTHER", f"127.0.0.2:{other.port}").replace("NEIGHBOUR", f"127.0.0.1:{neighbour.port}")
        routes = {"/": text(body, "text/html"), "/done": text("{}"), **more}
        async with web_server(routes) as server:
            yield server, other, neighbour


async def visit(browser: Browser, server: Seen, path: str = "/") -> Reading:
    site = Site("s", server.url, allows_private=True)
    session = await browser.sessions.get(site)
    try:
        return await session.visit(RefInfo("1", f"{server.url}{path}"), (Endpoint("done", DONE),))
    finally:
        browser.sessions.drop(session)


DONE = re.compile("/done$")
SCRIPT = "<script>var quiet = (f) => { try { return f() } catch (e) {} };"
DONE_SOON = "setTimeout(() => fetch('/done'), 400);</script>"
PAGES = {
    "image": "<img src=http://OTHER/a><img src=http://NEIGHBOUR/a><script>fetch('/done')</script>",
    "script": "<script src=http://OTHER/a></script><script src=http://NEIGHBOUR/a></script><script>fetch('/done')</script>",
    "frame": "<iframe src=http://OTHER/a></iframe><iframe src=http://NEIGHBOUR/a></iframe>" + SCRIPT + DONE_SOON,
    "fetch": SCRIPT
    + "Promise.allSettled(['OTHER', 'NEIGHBOUR', 'localhost:1', '[::1]:1'].flatMap((host) => ["
    "fetch(`http://${host}/a`), fetch(`https://${host}/a`), fetch(`http://${host}/a`, {mode: 'no-cors', "
    "method: 'POST', body: 'x'})])).then(() => fetch('/done'));</script>",
    "beacon": SCRIPT + "navigator.sendBeacon('http://OTHER/a', 'x'); navigator.sendBeacon('http://NEIGHBOUR/a', 'x');"
    + DONE_SOON,
    "socket": SCRIPT + "for (const host of ['OTHER', 'NEIGHBOUR']) for (const kind of ['ws', 'wss']) "
    "quiet(() => new WebSocket(`${kind}://${host}/a`));" + DONE_SOON,
    "events": SCRIPT + "new EventSource('http://OTHER/a'); new EventSource('http://NEIGHBOUR/a');" + DONE_SOON,
    "worker": SCRIPT + "new Worker(URL.createObjectURL(new Blob([`fetch('http://OTHER/a', {mode: 'no-cors'}); "
    "fetch('http://NEIGHBOUR/a', {mode: 'no-cors'})`])));" + DONE_SOON,
    "link": "<link rel=preconnect href=http://OTHER><link rel=dns-prefetch href=http://OTHER><link rel=prefetch "
    "href=http://OTHER/a><link rel=preload as=script href=http://NEIGHBOUR/a>" + SCRIPT + DONE_SOON,
    "form": "<form method=post action=http://OTHER/a target=f></form><iframe name=f></iframe>" + SCRIPT
    + "document.forms[0].submit();" + DONE_SOON,
    "popup": SCRIPT + "window.open('http://OTHER/a'); window.open('http://NEIGHBOUR/a');" + DONE_SOON,
}  # fmt: skip


@pytest.mark.fault_number(23)
class TestEgress:
    @pytest.mark.parametrize("kind", ["all at once", *(pytest.param(one, marks=FAULTS_ONLY) for one in PAGES)])
    def test_refuses_subresources_of_a_page(self, browser: Browser, kind: str) -> None:
        async def go() -> None:
            page = PAGES.get(kind) or "".join(PAGES.values())
            async with ground(page) as (server, other, neighbour):
                await visit(browser, server)
                assert "/done" in server.paths, "the page did not run to its end, so the test proves nothing"
                assert (other.paths, neighbour.paths) == ([], [])

        browser.run(go())

    @pytest.mark.parametrize(
        "status", [302, pytest.param(301, marks=FAULTS_ONLY), pytest.param(307, marks=FAULTS_ONLY)]
    )
    def test_refuses_redirects_of_a_page(self, browser: Browser, status: int) -> None:
        async def go() -> None:
            async with ground("") as (_, other, neighbour):
                for there in (other, neighbour):
                    async with web_server({"/": redirect(f"{there.url}/secret", status)}) as server:
                        with pytest.raises(EgressRefused, match="leads elsewhere"):
                            await visit(browser, server)
                        assert server.paths == ["/"]
                    assert there.paths == []

        browser.run(go())

    def test_refuses_redirects_to_https(self, browser: Browser) -> None:
        async def go() -> None:
            async with web_server({}, host="127.0.0.2") as other:
                async with web_server({"/": redirect(f"https://127.0.0.2:{other.port}/")}) as server:
                    with pytest.raises(EgressRefused, match="leads elsewhere"):
                        await visit(browser, server)
                assert other.requests == []

        browser.run(go())

    def test_refuses_redirects_of_subresources(self, browser: Browser) -> None:
        async def go() -> None:
            page = "<script>fetch('/away').catch(() => 0).then(() => fetch('/done'))</script>"
            async with web_server({}, host="127.0.0.2") as other:
                routes = {
                    "/": text(page, "text/html"),
                    "/done": text("{}"),
                    "/away": redirect(f"{other.url}/secret"),
                }
                async with web_server(routes) as server:
                    await visit(browser, server)
                    assert "/away" in server.paths
                    assert "/done" in server.paths
                assert other.paths == []

        browser.run(go())

    @pytest.mark.parametrize(
        "page",
        [
            "<meta http-equiv=refresh content='0;url=http://OTHER/a'>",
            "<script>location = 'http://NEIGHBOUR/a'</script>",
            pytest.param("<script>location = 'http://169.254.169.254/latest/meta-data/'</script>", marks=FAULTS_ONLY),
            pytest.param("<script>location = 'file:///etc/passwd'</script>", marks=FAULTS_ONLY),
        ],
        ids=["meta refresh", "script", "metadata", "file"],
    )
    def test_refuses_navigation_by_a_page(self, browser: Browser, page: str) -> None:
        async def go() -> None:
            async with ground(page) as (server, other, neighbour):
                try:
                    reading = await visit(browser, server)
                    assert "root:" not in reading.documents[PAGE].text()
                except ScrapingError:
                    pass
                assert server.paths[0] == "/"
                assert (other.paths, neighbour.paths) == ([], [])

        browser.run(go())

    def test_refuses_webrtc(self, browser: Browser) -> None:
        """WebRTC uses UDP, which bypasses proxies; 127.0.0.1 is the only address that Chromium resolves."""

        async def go() -> None:
            loop = asyncio.get_running_loop()
            transport, listener = await loop.create_datagram_endpoint(Listener, local_addr=("127.0.0.1", 0))
            try:
                port = transport.get_extra_info("sockname")[1]
                page = (
                    f"<script>const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}}]}});"
                    "peer.createDataChannel('x'); peer.createOffer().then((offer) => peer.setLocalDescription(offer));"
                    "setTimeout(() => fetch('/done'), 1000);</script>"
                )
                async with ground(page) as (server, _, _):
                    await visit(browser, server)
                    assert "/done" in server.paths
                assert listener.packets == 0
            finally:
                transport.close()

        browser.run(go())

    def test_refuses_other_schemes(self, browser: Browser) -> None:
        async def go() -> None:
            async with ground("") as (server, other, _):
                session = await browser.sessions.get(Site("s", server.url, allows_private=True))
                for url in (f"{other.url}/", "file:///etc/passwd", "chrome://version", "http://127.0.0.1:1/"):
                    with pytest.raises(EgressRefused):
                        await session.visit(RefInfo("1", url), ())
                browser.sessions.drop(session)
                assert (server.requests, other.requests) == ([], [])

        browser.run(go())

    def test_a_context_without_the_proxy_resolves_no_host(self, browser: Browser) -> None:
        async def go() -> None:
            chrome, _ = await browser.sessions.host.browser()
            async with web_server({}, host="127.0.0.2") as other:
                context = await chrome.new_context()
                page = await context.new_page()
                for url in (f"{other.url}/", "http://localhost/", "http://example.com/", "http://169.254.169.254/"):
                    with pytest.raises(Exception, match="ERR_NAME_NOT_RESOLVED"):
                        await page.goto(url)
                await context.close()
                assert other.requests == []

        browser.run(go())


class TestForwarding:
    def test_allows_and_counts_the_sites_own_hosts(self, browser: Browser) -> None:
        async def socket(request: web.BaseRequest) -> web.StreamResponse:
            answer = web.WebSocketResponse()
            await answer.prepare(request)
            await answer.send_str(await answer.receive_str())
            await answer.close()
            return answer

        async def go() -> None:
            page = (
                "<script>(async () => { const got = await (await fetch('http://127.0.0.2:PORT/api')).text();"
                "const line = new WebSocket(`ws://${location.host}/socket`); line.onopen = () => line.send('ball');"
                "line.onmessage = (said) => { document.title = got + said.data; fetch('/done') } })()</script>"
            )
            cross = {"Access_Control_Allow_Origin": "*"}
            async with web_server({"/api": text("x" * 50_000, **cross)}, host="127.0.0.2") as api:
                routes = {
                    "/": text(page.replace("PORT", str(api.port)), "text/html"),
                    "/done": text("{}"),
                    "/socket": socket,
                }
                async with web_server(routes) as server:
                    site = Site("s", server.url, allows_private=True, api_hosts=(f"127.0.0.2:{api.port}",))
                    session = await browser.sessions.get(site)
                    reading = await session.visit(RefInfo("1", f"{server.url}/"), (Endpoint("done", DONE),))
                    assert "xball</title>" in reading.documents[PAGE].text()
                    traffic = session.forward_proxy.traffic
                    assert 50_000 < traffic.bytes < 70_000
                    assert traffic.refused == 0
                    browser.sessions.drop(session)

        browser.run(go())

    @pytest.mark.faults_only
    @pytest.mark.fault_number(22)
    def test_a_page_of_a_gigabyte_is_cut_off(self, browser: Browser) -> None:
        async def go() -> None:
            async with raw_server(endless) as server:
                session = await browser.sessions.get(Site("big", server.url, allows_private=True))
                session.forward_proxy.limits = TrafficLimits(connection_bytes=4 * MEGABYTE)
                with pytest.raises(Transient):
                    await session.visit(RefInfo("1", f"{server.url}/"), ())
                assert 4 * MEGABYTE < session.forward_proxy.traffic.bytes < 8 * MEGABYTE
                assert server.sent < 200 * MEGABYTE
                browser.sessions.drop(session)

        browser.run(go())


class TestRobots:
    def test_a_forbidden_page_is_not_opened(self, browser: Browser) -> None:
        async def go() -> list[str]:
            async with web_server({"/robots.txt": text("User-agent: *\nDisallow: /")}) as server:
                site = Site("closed", server.url, allows_private=True)
                reader = Reader(browser.sessions, browser.run)
                reading = asyncio.get_running_loop().run_in_executor(None, reader.match_list, site, adapter_for("crex"))
                with pytest.raises(RobotsRefused, match="nothing was sent"):
                    await reading
                return server.paths

        assert browser.run(go()) == ["/robots.txt"]
