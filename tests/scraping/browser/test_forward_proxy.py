"""The forward proxy with hand-written connections. With a real Chromium: test_forward_proxy_in_browser.py."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from scraping.browser.egress.forward_proxy import ForwardProxy, TrafficLimits
from scraping.readings import Site
from tests.patience import stretched
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

GREETING, GREETED = b"\x05\x01\x00", b"\x05\x00"
CONNECTED, REFUSED, UNREACHABLE = (GREETED + bytes((5, code, 0, 1)) + bytes(6) for code in (0, 2, 4))
GET = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def site_of(server: Seen, *hosts: str, **about: Any) -> Site:
    return Site("s", **{"base_url": server.url, "allows_private": True, "api_hosts": hosts, **about})


@asynccontextmanager
async def proxy_to(
    site: Site, upstream: str | None = None, names: Names | None = None, **limits: Any
) -> AsyncIterator[ForwardProxy]:
    proxy = ForwardProxy(site, upstream, limits=TrafficLimits(**limits), resolver=names)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()


async def port_of(proxy: ForwardProxy) -> int:
    return int((await proxy.start()).rpartition(":")[2])


async def say(proxy: ForwardProxy, data: bytes, *, seconds: float = 10) -> bytes:
    """Sends bytes to the proxy; returns its whole response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", await port_of(proxy))
    try:
        writer.write(data)
        return await asyncio.wait_for(reader.read(-1), seconds)
    except ConnectionError:  # cut, not closed
        return b""
    finally:
        writer.close()


def request_for(host: str, port: int) -> bytes:
    return GREETING + b"\x05\x01\x00\x03" + bytes((len(host),)) + host.encode() + port.to_bytes(2)


async def connect(proxy: ForwardProxy, host: str, port: int, then: bytes = b"", seconds: float = 10) -> bytes:
    return await say(proxy, request_for(host, port) + then, seconds=seconds)


class TestForwarding:
    @on_a_loop
    async def test_copies_and_counts_bytes(self) -> None:
        async with web_server({"/": text("{}")}) as server, proxy_to(site_of(server)) as proxy:
            answer = await connect(proxy, "127.0.0.1", server.port, GET)
            assert answer.startswith(CONNECTED + b"HTTP/1.1 200")
            assert answer.endswith(b"{}")
            assert proxy.traffic.bytes == len(answer) - len(CONNECTED) + len(GET)

    @pytest.mark.parametrize("address", [b"\x01" + socket.inet_aton("127.0.0.1"), b"\x03\x09127.0.0.1"])
    def test_accepts_addresses_and_names(self, address: bytes) -> None:
        @on_a_loop
        async def ask() -> None:
            async with web_server({"/": text("{}")}) as server, proxy_to(site_of(server)) as proxy:
                request = GREETING + b"\x05\x01\x00" + address + server.port.to_bytes(2)
                assert (await say(proxy, request + GET)).endswith(b"{}")

        ask()

    @on_a_loop
    async def test_reports_an_unreachable_site(self) -> None:
        async with raw_server(drip) as gone:
            pass
        async with proxy_to(site_of(gone)) as proxy:
            assert await connect(proxy, "127.0.0.1", gone.port) == UNREACHABLE


@pytest.mark.fault
@pytest.mark.fault_number(23)
class TestRefusals:
    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.2",
            "localhost",
            "::1",
            "[::1]",
            "169.254.169.254",
            "evil.example",
            "2130706433",
            "127.0.0.1@evil.example",
        ],
    )
    def test_refuses_other_hosts(self, host: str) -> None:
        @on_a_loop
        async def ask() -> None:
            async with raw_server(drip) as server, raw_server(drip, host="127.0.0.2") as other:
                async with proxy_to(site_of(server)) as proxy:
                    port = other.port if host == "127.0.0.2" else server.port
                    assert await connect(proxy, host, port) == REFUSED
                    assert proxy.traffic.refused == 1
                    assert host.strip("[]") in proxy.traffic.last_refusal
                assert (server.connections, other.connections) == (0, 0)

        ask()

    @on_a_loop
    async def test_refuses_other_ports(self) -> None:
        async with raw_server(drip) as server, raw_server(drip) as other, proxy_to(site_of(server)) as proxy:
            assert await connect(proxy, "127.0.0.1", other.port) == REFUSED
            assert other.connections == 0

    @on_a_loop
    async def test_refuses_names_that_resolve_to_private_addresses(self) -> None:
        names = Names(good_example=[["127.0.0.1"]], mixed_example=[["93.184.216.34", "10.0.0.1"]])
        async with raw_server(drip) as inside:
            about = {"base_url": f"http://good.example:{inside.port}", "allows_private": False}
            async with proxy_to(site_of(inside, f"mixed.example:{inside.port}", **about), names=names) as proxy:
                for host in ("good.example", "mixed.example"):
                    assert await connect(proxy, host, inside.port) == REFUSED
            assert inside.connections == 0
            assert len(names.asked) == 2

    @on_a_loop
    async def test_connects_to_the_checked_address(self) -> None:
        """A name is resolved once per connection: a second response, which may differ, is never used."""
        names = Names(good_example=[["127.0.0.1"], ["127.0.0.2"]])
        async with web_server({"/": text("{}")}) as server:
            site = site_of(server, base_url=f"http://good.example:{server.port}")
            async with proxy_to(site, names=names) as proxy:
                assert (await connect(proxy, "good.example", server.port, GET)).endswith(b"{}")
            assert names.asked == ["good.example"]

    @on_a_loop
    async def test_refuses_programs_of_other_users(self) -> None:
        async with web_server({"/": text("{}")}) as server, proxy_to(site_of(server)) as proxy:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "geteuid", lambda: 12345)
                assert await connect(proxy, "127.0.0.1", server.port, GET) == b""
            assert server.requests == []
            assert (await connect(proxy, "127.0.0.1", server.port, GET)).endswith(b"{}")

    @pytest.mark.parametrize(
        "data",
        [
            b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n",
            b"\x04\x01\x00\x50\x7f\x00\x00\x01u\x00",  # SOCKS4
            b"\x05\x01\x02",  # with a password only
            GREETING + b"\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50",  # BIND
            GREETING + b"\x05\x01\x00\x09",
            GREETING + b"\x05\x01\x00\x03\x02\xff\xfe\x00\x50",
        ],
    )
    def test_refuses_other_protocols(self, data: bytes) -> None:
        @on_a_loop
        async def ask() -> None:
            async with raw_server(drip) as server, proxy_to(site_of(server)) as proxy:
                assert await say(proxy, data, seconds=5) in (b"", GREETED)
                assert server.connections == 0

        ask()

    def test_logs_a_refused_host_once(self, caplog: pytest.LogCaptureFixture) -> None:
        @on_a_loop
        async def ask() -> None:
            async with raw_server(drip) as server, proxy_to(site_of(server)) as proxy:
                for _ in range(3):
                    await connect(proxy, "evil.example", 80)
                    await connect(proxy, "other.example", 443)

        with caplog.at_level(logging.WARNING, logger="scraping.browser"):
            ask()
        assert ["evil.example" in caplog.text, "other.example" in caplog.text, len(caplog.records)] == [True, True, 2]


@pytest.mark.fault
@pytest.mark.fault_number(22)
class TestLimits:
    @on_a_loop
    async def test_cuts_off_a_gigabyte(self) -> None:
        async with raw_server(endless) as server, proxy_to(site_of(server), connection_bytes=MEGABYTE) as proxy:
            await connect(proxy, "127.0.0.1", server.port, GET)
            assert proxy.traffic.bytes < 3 * MEGABYTE
            assert server.sent < 100 * MEGABYTE

    @on_a_loop
    async def test_the_limit_per_minute_covers_all_connections(self) -> None:
        limits = {"connection_bytes": 2 * MEGABYTE, "minute_bytes": 5 * MEGABYTE}
        async with raw_server(endless) as server, proxy_to(site_of(server), **limits) as proxy:
            await asyncio.gather(*(connect(proxy, "127.0.0.1", server.port, GET) for _ in range(20)))
            assert proxy.traffic.bytes < 8 * MEGABYTE

    @on_a_loop
    async def test_closes_an_idle_connection(self) -> None:
        async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter, __: Seen) -> None:
            await reader.read(-1)

        async with raw_server(silent) as server, proxy_to(site_of(server), idle_seconds=0.2) as proxy:
            await connect(proxy, "127.0.0.1", server.port, seconds=5)
            assert not proxy._connections

    @on_a_loop
    async def test_traffic_in_one_direction_keeps_a_connection_open(self) -> None:
        limits = {"idle_seconds": 0.2, "connection_seconds": 0.8}
        async with raw_server(drip) as server, proxy_to(site_of(server), **limits) as proxy:
            began = asyncio.get_running_loop().time()
            await connect(proxy, "127.0.0.1", server.port, GET)
            assert asyncio.get_running_loop().time() - began >= 0.7

    @on_a_loop
    async def test_closes_an_unfinished_request(self) -> None:
        async with raw_server(drip) as server, proxy_to(site_of(server), request_seconds=0.2) as proxy:
            assert await say(proxy, GREETING + b"\x05", seconds=5) in (b"", GREETED)
            await until(lambda: not proxy._connections)

    @on_a_loop
    async def test_a_browser_that_disconnects_ends_the_connection(self) -> None:
        async with raw_server(drip) as server, proxy_to(site_of(server)) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", await port_of(proxy))
            writer.write(request_for("127.0.0.1", server.port) + GET)
            await reader.readexactly(len(CONNECTED) + 1)
            assert proxy._connections
            writer.close()
            await until(lambda: not proxy._connections)

    @on_a_loop
    async def test_stop_closes_every_connection(self) -> None:
        async with raw_server(drip) as server:
            async with proxy_to(site_of(server)) as proxy:
                port = await port_of(proxy)
                running = asyncio.ensure_future(connect(proxy, "127.0.0.1", server.port, GET))
                await until(lambda: server.connections == 1)
            await running
            assert not proxy._connections
            with pytest.raises(OSError, match="Connect"):
                await asyncio.open_connection("127.0.0.1", port)


class TestUpstreamProxy:
    @on_a_loop
    async def test_gets_a_tunnel_request_with_the_name(self) -> None:
        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Seen) -> None:
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            writer.write(b"echo:" + await reader.read(100))
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        heads: list[str] = []
        async with raw_server(tunnel) as server:
            upstream = f"http://us%40er:s3cret@127.0.0.1:{server.port}"
            async with proxy_to(Site("s", "https://good.example"), upstream, Names()) as proxy:
                for port in (80, 443):
                    assert await connect(proxy, "good.example", port, b"hello") == CONNECTED + b"echo:hello"
                encoded = base64.b64encode(b"us@er:s3cret").decode()
                assert heads[1].startswith("CONNECT good.example:443 HTTP/1.1\r\nHost: good.example:443\r\n")
                assert heads[1].endswith(f"\r\nProxy-Authorization: Basic {encoded}\r\n\r\n")
                for host, port in (("evil.example", 443), ("169.254.169.254", 80)):
                    assert await connect(proxy, host, port) == REFUSED
            assert server.connections == 2

    @pytest.mark.requirement("FS-5")
    @pytest.mark.parametrize(
        "response",
        [b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n", b"HTTP/1.1 403 No\r\n\r\n", b"SSH-2.0\r\n\r\n", b""],
    )
    def test_that_refuses_is_unreachable(self, response: bytes) -> None:
        @on_a_loop
        async def ask() -> None:
            async with raw_server(saying(response)) as server:
                upstream = f"http://u:s3cret@{server.host}:{server.port}"
                async with proxy_to(Site("s", "https://good.example"), upstream) as proxy:
                    assert await connect(proxy, "good.example", 443) == UNREACHABLE

        ask()


async def until(condition: Any, seconds: float = 5) -> None:
    async with asyncio.timeout(stretched(seconds)):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)
