"""The forward proxy with hand-written requests. With a real Chromium: test_forward_proxy_in_browser.py."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from scraping.browser.egress.connection import TrafficLimits
from scraping.browser.egress.forward_proxy import ForwardProxy, ProxyCredentials
from scraping.readings import Site
from tests.scraping.browser.hostile import (
    MEGABYTE,
    Names,
    Seen,
    drip,
    endless,
    raw_server,
    saying,
    text,
    web_server,
)
from tests.scraping.browser.loops import on_a_loop


def site_of(server: Seen, *hosts: str, **about: Any) -> Site:
    return Site("s", **{"base_url": server.url, "allows_private": True, "api_hosts": hosts, **about})


@asynccontextmanager
async def running_proxy(names: Names | None = None, **limits: Any) -> AsyncIterator[ForwardProxy]:
    proxy = ForwardProxy(TrafficLimits(**limits), resolver=names)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()


def credentials(entry: ProxyCredentials) -> str:
    encoded = base64.b64encode(f"{entry.username}:{entry.password}".encode()).decode()
    return f"Proxy-Authorization: Basic {encoded}\r\n"


async def say(proxy: ForwardProxy, request: str, *, then: bytes = b"", seconds: float = 10) -> bytes:
    """Sends a request to the proxy; returns its whole response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        writer.write(request.encode("latin-1") + then)
        return await asyncio.wait_for(reader.read(-1), seconds)
    except ConnectionError:  # cut, not closed
        return b""
    finally:
        writer.close()


async def get(proxy: ForwardProxy, url: str, entry: ProxyCredentials, **more: Any) -> bytes:
    return await say(proxy, f"GET {url} HTTP/1.1\r\nHost: wrong.example\r\n{credentials(entry)}\r\n", **more)


async def connect(proxy: ForwardProxy, where: str, entry: ProxyCredentials, **more: Any) -> bytes:
    return await say(proxy, f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{credentials(entry)}\r\n", **more)


class TestForwarding:
    @on_a_loop
    async def test_a_request_is_forwarded_without_proxy_headers(self) -> None:
        async with web_server({"/live": text('{"runs": 12}')}) as server, running_proxy() as proxy:
            entry = proxy.register("a", site_of(server))
            answer = await get(proxy, f"{server.url}/live?x=%2F", entry)
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(b'{"runs": 12}')
            assert b"Connection: close" in answer
            (request,) = server.requests
            assert request.path_qs == "/live?x=%2F"
            assert request.headers["Host"] == f"127.0.0.1:{server.port}"
            assert "Proxy-Authorization" not in request.headers

    @on_a_loop
    async def test_a_body_is_forwarded(self) -> None:
        async def echo(request: web.BaseRequest) -> web.Response:
            return web.Response(body=await request.read())

        async with web_server({"/": echo}) as server, running_proxy() as proxy:
            entry = proxy.register("a", site_of(server))
            head = f"POST {server.url}/ HTTP/1.1\r\nContent-Length: 5\r\n{credentials(entry)}\r\n"
            assert (await say(proxy, head, then=b"helloGET http://evil/")).endswith(b"\r\n\r\nhello")
            assert len(server.requests) == 1

    @on_a_loop
    async def test_a_tunnel_copies_and_counts_bytes(self) -> None:
        async with web_server({"/": text("{}")}) as server, running_proxy() as proxy:
            entry = proxy.register("a", site_of(server))
            inner = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            answer = await connect(proxy, f"127.0.0.1:{server.port}", entry, then=inner)
            opened, _, rest = answer.partition(b"\r\n\r\n")
            assert opened.startswith(b"HTTP/1.1 200")
            assert rest.endswith(b"{}")
            traffic = proxy.traffic("a")
            assert (traffic.bytes_in, traffic.bytes_out) == (len(rest), len(inner))

    @on_a_loop
    async def test_traffic_is_counted_per_session(self) -> None:
        async with web_server({"/": text("x" * 1000)}) as server, running_proxy() as proxy:
            first, second = proxy.register("a", site_of(server)), proxy.register("b", site_of(server))
            await get(proxy, f"{server.url}/", first)
            before = proxy.traffic("a")
            await get(proxy, f"{server.url}/", second)
            assert 1000 < before.bytes_in < 1500
            assert proxy.traffic("a") == before
            assert proxy.traffic("b") == before
            assert proxy.traffic("c").bytes_in == 0

    @on_a_loop
    async def test_an_unreachable_site_is_a_502(self) -> None:
        async with raw_server(drip) as gone:
            pass
        async with running_proxy() as proxy:
            entry = proxy.register("a", site_of(gone))
            assert (await get(proxy, f"{gone.url}/", entry)).startswith(b"HTTP/1.1 502")
            assert (await connect(proxy, f"127.0.0.1:{gone.port}", entry)).startswith(b"HTTP/1.1 502")

    @on_a_loop
    async def test_a_response_that_is_not_http_is_a_502(self) -> None:
        async with raw_server(saying(b"SSH-2.0-OpenSSH\r\n\r\n")) as server, running_proxy() as proxy:
            entry = proxy.register("a", site_of(server))
            assert (await get(proxy, f"{server.url}/", entry)).startswith(b"HTTP/1.1 502")


@pytest.mark.fault
@pytest.mark.fault_number(23)
class TestRefusals:
    @pytest.mark.parametrize(
        "url",
        [
            "http://127.0.0.2:{port}/secret",
            "http://localhost:{port}/secret",
            "http://127.0.0.1:1/",
            "http://[::1]:{port}/",
            "http://169.254.169.254/latest/meta-data/",
            "http://evil.example/",
            "http://127.0.0.1@evil.example/",
            "http://user:pw@127.0.0.1:{port}/",
            "http://2130706433:{port}/",
        ],
    )
    def test_refuses_other_hosts(self, url: str) -> None:
        @on_a_loop
        async def ask() -> None:
            async with web_server({}) as server, raw_server(drip, host="127.0.0.2") as other, running_proxy() as proxy:
                entry = proxy.register("a", site_of(server))
                answer = await get(proxy, url.format(port=other.port if ".2" in url else server.port), entry)
                assert answer.startswith(b"HTTP/1.1 403")
                assert b"x-victoryline-gate" in answer
                assert (server.requests, other.connections) == ([], 0)
                assert proxy.traffic("a").refused == 1

        ask()

    @pytest.mark.parametrize("where", ["127.0.0.2:{port}", "evil.example:443", "127.0.0.1:22", "[::1]:{port}"])
    def test_refuses_tunnels_to_other_hosts(self, where: str) -> None:
        @on_a_loop
        async def ask() -> None:
            async with (
                raw_server(drip) as server,
                raw_server(drip, host="127.0.0.2") as other,
                running_proxy() as proxy,
            ):
                entry = proxy.register("a", site_of(server))
                answer = await connect(proxy, where.format(port=other.port), entry)
                assert answer.startswith(b"HTTP/1.1 403")
                assert (server.connections, other.connections) == (0, 0)

        ask()

    @on_a_loop
    async def test_refuses_names_that_resolve_to_private_addresses(self) -> None:
        names = Names(good_example=[["127.0.0.1"]], mixed_example=[["93.184.216.34", "10.0.0.1"]])
        async with raw_server(drip) as inside, running_proxy(names) as proxy:
            about = {"base_url": f"http://good.example:{inside.port}", "allows_private": False}
            entry = proxy.register("a", site_of(inside, f"mixed.example:{inside.port}", **about))
            for host in ("good.example", "mixed.example"):
                assert (await get(proxy, f"http://{host}:{inside.port}/", entry)).startswith(b"HTTP/1.1 403")
                assert (await connect(proxy, f"{host}:{inside.port}", entry)).startswith(b"HTTP/1.1 403")
            assert inside.connections == 0
            assert len(names.asked) == 4

    @on_a_loop
    async def test_connects_to_the_checked_address(self) -> None:
        """A name is resolved once per connection: a second response, which may differ, is never used."""
        names = Names(good_example=[["127.0.0.1"], ["127.0.0.2"]])
        async with web_server({"/": text("{}")}) as server, running_proxy(names) as proxy:
            entry = proxy.register("a", site_of(server, base_url=f"http://good.example:{server.port}"))
            assert (await get(proxy, f"http://good.example:{server.port}/", entry)).endswith(b"{}")
            assert names.asked == ["good.example"]
            assert server.requests[0].headers["Host"] == f"good.example:{server.port}"

    @on_a_loop
    async def test_requires_credentials(self) -> None:
        async with web_server({"/": text("{}")}) as server, running_proxy() as proxy:
            entry = proxy.register("a", site_of(server))
            attempts = [
                "",
                credentials(ProxyCredentials("", "a", "wrong")),
                credentials(ProxyCredentials("", "b", entry.password)),
                "Proxy-Authorization: Basic !!!\r\n",
                "Proxy-Authorization: Bearer x\r\n",
            ]
            for line in attempts:
                answer = await say(proxy, f"GET {server.url}/ HTTP/1.1\r\n{line}\r\n")
                assert answer.startswith(b"HTTP/1.1 407")
            assert server.requests == []

    @on_a_loop
    async def test_an_unregistered_session_loses_access_and_connections(self) -> None:
        async with raw_server(drip) as server, running_proxy() as proxy:
            entry = proxy.register("a", site_of(server))
            running = asyncio.ensure_future(connect(proxy, f"127.0.0.1:{server.port}", entry))
            await until(lambda: server.connections == 1)
            proxy.unregister("a")
            await running
            assert (await get(proxy, f"{server.url}/", entry)).startswith(b"HTTP/1.1 407")
            assert not proxy._connections

    @pytest.mark.parametrize(
        "request_line",
        [
            "GET / HTTP/1.1",
            "GET https://127.0.0.1/ HTTP/1.1",
            "GET ftp://127.0.0.1/ HTTP/1.1",
            "CONNECT 127.0.0.1 HTTP/1.1",
            "CONNECT 127.0.0.1:80/x HTTP/1.1",
            "CONNECT 127.0.0.1:99999 HTTP/1.1",
            "GET http://[::1/ HTTP/1.1",
        ],
    )
    def test_refuses_requests_that_are_not_for_a_proxy(self, request_line: str) -> None:
        @on_a_loop
        async def ask() -> None:
            async with raw_server(drip) as server, running_proxy() as proxy:
                entry = proxy.register("a", site_of(server))
                answer = await say(proxy, f"{request_line}\r\n{credentials(entry)}\r\n")
                assert answer.startswith(b"HTTP/1.1 400")
                assert server.connections == 0

        ask()

    @pytest.mark.parametrize(
        "lines",
        ["Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: -1\r\n", "Transfer-Encoding: chunked\r\n"],
    )
    def test_refuses_contradicting_or_missing_lengths(self, lines: str) -> None:
        @on_a_loop
        async def ask() -> None:
            async with web_server({}) as server, running_proxy() as proxy:
                entry = proxy.register("a", site_of(server))
                answer = await say(proxy, f"POST {server.url}/ HTTP/1.1\r\n{lines}{credentials(entry)}\r\n")
                assert answer[9:12] in (b"400", b"411")
                assert server.requests == []

        ask()

    def test_a_refused_host_is_logged_once_without_its_path(self, caplog: pytest.LogCaptureFixture) -> None:
        @on_a_loop
        async def ask() -> None:
            async with raw_server(drip) as server, running_proxy() as proxy:
                entry = proxy.register("a", site_of(server))
                for number in range(3):
                    await get(proxy, f"http://user:pw@evil.example/secret{number}?token=1", entry)
                    await get(proxy, "http://other.example/secret", entry)

        with caplog.at_level(logging.WARNING, logger="scraping.browser"):
            ask()
        assert len(caplog.records) == 2
        log = caplog.text
        assert "evil.example" in log
        assert "other.example" in log
        assert "secret" not in log
        assert "token" not in log
        assert "pw" not in log


@pytest.mark.fault
@pytest.mark.fault_number(22)
class TestLimits:
    @on_a_loop
    async def test_a_gigabyte_is_cut_off(self) -> None:
        async with raw_server(endless) as server, running_proxy(connection_bytes=MEGABYTE) as proxy:
            entry = proxy.register("a", site_of(server))
            await get(proxy, f"{server.url}/", entry)
            assert proxy.traffic("a").bytes_in < 3 * MEGABYTE
            await connect(proxy, f"127.0.0.1:{server.port}", entry, then=b"GET / HTTP/1.1\r\n\r\n")
            assert proxy.traffic("a").bytes_in < 6 * MEGABYTE
            assert server.sent < 100 * MEGABYTE

    @on_a_loop
    async def test_the_limit_per_minute_covers_all_connections(self) -> None:
        limits = {"connection_bytes": 2 * MEGABYTE, "minute_bytes": 5 * MEGABYTE}
        async with raw_server(endless) as server, running_proxy(**limits) as proxy:
            entry = proxy.register("a", site_of(server))
            await asyncio.gather(*(get(proxy, f"{server.url}/", entry) for _ in range(20)))
            assert proxy.traffic("a").bytes_in < 8 * MEGABYTE

    @on_a_loop
    async def test_an_idle_connection_is_closed(self) -> None:
        async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter, __: Seen) -> None:
            await reader.read(-1)

        async with raw_server(silent) as server, running_proxy(idle_seconds=0.2) as proxy:
            entry = proxy.register("a", site_of(server))
            assert (await get(proxy, f"{server.url}/", entry, seconds=5)).startswith(b"HTTP/1.1 504")
            await connect(proxy, f"127.0.0.1:{server.port}", entry, seconds=5)
            assert not proxy._connections

    @on_a_loop
    async def test_traffic_in_one_direction_keeps_a_connection_open(self) -> None:
        async with raw_server(drip) as server, running_proxy(idle_seconds=0.2, connection_seconds=0.8) as proxy:
            entry = proxy.register("a", site_of(server))
            began = asyncio.get_running_loop().time()
            await connect(proxy, f"127.0.0.1:{server.port}", entry, then=b"GET / HTTP/1.1\r\n\r\n", seconds=10)
            assert asyncio.get_running_loop().time() - began >= 0.7

    @on_a_loop
    async def test_an_endless_head_is_refused(self) -> None:
        async with raw_server(drip) as server, running_proxy(head_seconds=0.2) as proxy:
            proxy.register("a", site_of(server))
            assert await say(proxy, "GET http://x/ HTTP/1.1\r\n", seconds=5) == b""
            answer = await say(proxy, "GET http://x/ HTTP/1.1\r\nX: " + "x" * 200_000)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400")  # closed while sending, or refused
            await until(lambda: not proxy._connections)

    @on_a_loop
    async def test_a_browser_that_disconnects_ends_the_connection(self) -> None:
        async with raw_server(drip) as server, running_proxy() as proxy:
            entry = proxy.register("a", site_of(server))
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(f"GET {server.url}/ HTTP/1.1\r\n{credentials(entry)}\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            assert proxy._connections
            writer.close()
            await until(lambda: not proxy._connections)

    @on_a_loop
    async def test_stop_closes_every_connection(self) -> None:
        async with raw_server(drip) as server:
            async with running_proxy() as proxy:
                entry = proxy.register("a", site_of(server))
                running = asyncio.ensure_future(connect(proxy, f"127.0.0.1:{server.port}", entry))
                await until(lambda: server.connections == 1)
            await running
            assert not proxy._connections
            with pytest.raises(OSError, match="Connect"):
                await say(proxy, "GET / HTTP/1.1\r\n\r\n")


class TestUpstreamProxy:
    @on_a_loop
    async def test_tunnels_and_requests_use_it_with_names(self) -> None:
        async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Seen) -> None:
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            if heads[-1].startswith("CONNECT"):
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                writer.write(b"echo:" + await reader.read(100))
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        heads: list[str] = []
        async with raw_server(proxy) as server, running_proxy(Names()) as proxy:
            upstream = f"http://us%40er:s3cret@127.0.0.1:{server.port}"
            entry = proxy.register("a", Site("s", "https://good.example"), upstream)
            assert (await get(proxy, "http://good.example/x?y=1", entry)).endswith(b"{}")
            assert (await connect(proxy, "good.example:443", entry, then=b"hello")).endswith(b"echo:hello")
            encoded = base64.b64encode(b"us@er:s3cret").decode()
            assert heads[0].startswith("GET http://good.example/x?y=1 HTTP/1.1\r\n")
            assert heads[1].startswith("CONNECT good.example:443 HTTP/1.1\r\n")
            for head in heads:
                assert head.count("Proxy-Authorization") == 1
                assert f"Proxy-Authorization: Basic {encoded}" in head
                assert entry.password not in head
            for where in ("evil.example:443", "169.254.169.254:80"):
                assert (await connect(proxy, where, entry)).startswith(b"HTTP/1.1 403")
            assert server.connections == 2

    @pytest.mark.requirement("FS-5")
    @pytest.mark.parametrize(("status", "forwarded"), [("407", "502"), ("403", "403"), ("429", "429"), ("500", "502")])
    def test_its_own_refusals_are_translated(self, status: str, forwarded: str) -> None:
        @on_a_loop
        async def ask() -> None:
            answer = f"HTTP/1.1 {status} No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n".encode()
            async with raw_server(saying(answer)) as server, running_proxy() as proxy:
                upstream = f"http://u:s3cret@{server.host}:{server.port}"
                entry = proxy.register("a", Site("s", "https://good.example"), upstream)
                found = await connect(proxy, "good.example:443", entry)
                assert found.startswith(f"HTTP/1.1 {forwarded}".encode())
                assert b"s3cret" not in found
                assert b"Proxy-Authenticate" not in found

        ask()


async def until(condition: Any, seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)
