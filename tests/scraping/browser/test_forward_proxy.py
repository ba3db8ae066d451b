"""The gate by hand: what passes, what does not, what it costs. With a real Chromium: test_gate_in_browser.py."""

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
async def open_gate(names: Names | None = None, **limits: Any) -> AsyncIterator[ForwardProxy]:
    gate = ForwardProxy(TrafficLimits(**limits), resolver=names)
    await gate.start()
    try:
        yield gate
    finally:
        await gate.stop()


def credentials(entry: ProxyCredentials) -> str:
    told = base64.b64encode(f"{entry.username}:{entry.password}".encode()).decode()
    return f"Proxy-Authorization: Basic {told}\r\n"


async def say(gate: ForwardProxy, request: str, *, then: bytes = b"", seconds: float = 10) -> bytes:
    """One connection to the gate, and everything that it answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    try:
        writer.write(request.encode("latin-1") + then)
        return await asyncio.wait_for(reader.read(-1), seconds)
    except ConnectionError:  # cut, not closed
        return b""
    finally:
        writer.close()


async def get(gate: ForwardProxy, url: str, entry: ProxyCredentials, **more: Any) -> bytes:
    return await say(gate, f"GET {url} HTTP/1.1\r\nHost: wrong.example\r\n{credentials(entry)}\r\n", **more)


async def connect(gate: ForwardProxy, where: str, entry: ProxyCredentials, **more: Any) -> bytes:
    return await say(gate, f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{credentials(entry)}\r\n", **more)


class TestPassing:
    @on_a_loop
    async def test_a_request_is_passed_on_without_the_gates_own_lines(self) -> None:
        async with web_server({"/live": text('{"runs": 12}')}) as server, open_gate() as gate:
            entry = gate.register("a", site_of(server))
            answer = await get(gate, f"{server.url}/live?x=%2F", entry)
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(b'{"runs": 12}')
            assert b"Connection: close" in answer
            (request,) = server.requests
            assert request.path_qs == "/live?x=%2F"
            assert request.headers["Host"] == f"127.0.0.1:{server.port}"
            assert "Proxy-Authorization" not in request.headers

    @on_a_loop
    async def test_a_body_goes_with_it(self) -> None:
        async def echo(request: web.BaseRequest) -> web.Response:
            return web.Response(body=await request.read())

        async with web_server({"/": echo}) as server, open_gate() as gate:
            entry = gate.register("a", site_of(server))
            head = f"POST {server.url}/ HTTP/1.1\r\nContent-Length: 5\r\n{credentials(entry)}\r\n"
            assert (await say(gate, head, then=b"helloGET http://evil/")).endswith(b"\r\n\r\nhello")
            assert len(server.requests) == 1

    @on_a_loop
    async def test_a_tunnel_is_bytes_in_and_bytes_out(self) -> None:
        async with web_server({"/": text("{}")}) as server, open_gate() as gate:
            entry = gate.register("a", site_of(server))
            inner = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            answer = await connect(gate, f"127.0.0.1:{server.port}", entry, then=inner)
            opened, _, rest = answer.partition(b"\r\n\r\n")
            assert opened.startswith(b"HTTP/1.1 200")
            assert rest.endswith(b"{}")
            traffic = gate.traffic("a")
            assert (traffic.bytes_in, traffic.bytes_out) == (len(rest), len(inner))

    @on_a_loop
    async def test_each_session_has_its_own_account(self) -> None:
        async with web_server({"/": text("x" * 1000)}) as server, open_gate() as gate:
            first, second = gate.register("a", site_of(server)), gate.register("b", site_of(server))
            await get(gate, f"{server.url}/", first)
            before = gate.traffic("a")
            await get(gate, f"{server.url}/", second)
            assert 1000 < before.bytes_in < 1500
            assert gate.traffic("a") == before
            assert gate.traffic("b") == before
            assert gate.traffic("c").bytes_in == 0

    @on_a_loop
    async def test_nobody_listens_there(self) -> None:
        async with raw_server(drip) as gone:
            pass
        async with open_gate() as gate:
            entry = gate.register("a", site_of(gone))
            assert (await get(gate, f"{gone.url}/", entry)).startswith(b"HTTP/1.1 502")
            assert (await connect(gate, f"127.0.0.1:{gone.port}", entry)).startswith(b"HTTP/1.1 502")

    @on_a_loop
    async def test_what_answers_is_no_web_server(self) -> None:
        async with raw_server(saying(b"SSH-2.0-OpenSSH\r\n\r\n")) as server, open_gate() as gate:
            entry = gate.register("a", site_of(server))
            assert (await get(gate, f"{server.url}/", entry)).startswith(b"HTTP/1.1 502")


@pytest.mark.fault
@pytest.mark.fault_number(23)
class TestRefusing:
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
    def test_other_hosts_are_not_reached(self, url: str) -> None:
        @on_a_loop
        async def ask() -> None:
            async with web_server({}) as server, raw_server(drip, host="127.0.0.2") as other, open_gate() as gate:
                entry = gate.register("a", site_of(server))
                answer = await get(gate, url.format(port=other.port if ".2" in url else server.port), entry)
                assert answer.startswith(b"HTTP/1.1 403")
                assert b"x-victoryline-gate" in answer
                assert (server.requests, other.connections) == ([], 0)
                assert gate.traffic("a").refused == 1

        ask()

    @pytest.mark.parametrize("where", ["127.0.0.2:{port}", "evil.example:443", "127.0.0.1:22", "[::1]:{port}"])
    def test_nor_through_a_tunnel(self, where: str) -> None:
        @on_a_loop
        async def ask() -> None:
            async with raw_server(drip) as server, raw_server(drip, host="127.0.0.2") as other, open_gate() as gate:
                entry = gate.register("a", site_of(server))
                answer = await connect(gate, where.format(port=other.port), entry)
                assert answer.startswith(b"HTTP/1.1 403")
                assert (server.connections, other.connections) == (0, 0)

        ask()

    @on_a_loop
    async def test_a_name_server_cannot_lead_us_inside(self) -> None:
        names = Names(good_example=[["127.0.0.1"]], mixed_example=[["93.184.216.34", "10.0.0.1"]])
        async with raw_server(drip) as inside, open_gate(names) as gate:
            about = {"base_url": f"http://good.example:{inside.port}", "allows_private": False}
            entry = gate.register("a", site_of(inside, f"mixed.example:{inside.port}", **about))
            for host in ("good.example", "mixed.example"):
                assert (await get(gate, f"http://{host}:{inside.port}/", entry)).startswith(b"HTTP/1.1 403")
                assert (await connect(gate, f"{host}:{inside.port}", entry)).startswith(b"HTTP/1.1 403")
            assert inside.connections == 0
            assert len(names.asked) == 4

    @on_a_loop
    async def test_it_connects_to_the_address_that_it_has_looked_at(self) -> None:
        """Asked once a connection: a second answer, which could be another one, is never used."""
        names = Names(good_example=[["127.0.0.1"], ["127.0.0.2"]])
        async with web_server({"/": text("{}")}) as server, open_gate(names) as gate:
            entry = gate.register("a", site_of(server, base_url=f"http://good.example:{server.port}"))
            assert (await get(gate, f"http://good.example:{server.port}/", entry)).endswith(b"{}")
            assert names.asked == ["good.example"]
            assert server.requests[0].headers["Host"] == f"good.example:{server.port}"

    @on_a_loop
    async def test_a_stranger_is_asked_who_it_is(self) -> None:
        async with web_server({"/": text("{}")}) as server, open_gate() as gate:
            entry = gate.register("a", site_of(server))
            told = [
                "",
                credentials(ProxyCredentials("", "a", "wrong")),
                credentials(ProxyCredentials("", "b", entry.password)),
                "Proxy-Authorization: Basic !!!\r\n",
                "Proxy-Authorization: Bearer x\r\n",
            ]
            for line in told:
                answer = await say(gate, f"GET {server.url}/ HTTP/1.1\r\n{line}\r\n")
                assert answer.startswith(b"HTTP/1.1 407")
            assert server.requests == []

    @on_a_loop
    async def test_a_forgotten_session_is_a_stranger_and_its_connections_are_cut(self) -> None:
        async with raw_server(drip) as server, open_gate() as gate:
            entry = gate.register("a", site_of(server))
            running = asyncio.ensure_future(connect(gate, f"127.0.0.1:{server.port}", entry))
            await until(lambda: server.connections == 1)
            gate.unregister("a")
            await running
            assert (await get(gate, f"{server.url}/", entry)).startswith(b"HTTP/1.1 407")
            assert not gate._connections

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
    def test_what_is_no_request_to_a_proxy(self, request_line: str) -> None:
        @on_a_loop
        async def ask() -> None:
            async with raw_server(drip) as server, open_gate() as gate:
                entry = gate.register("a", site_of(server))
                answer = await say(gate, f"{request_line}\r\n{credentials(entry)}\r\n")
                assert answer.startswith(b"HTTP/1.1 400")
                assert server.connections == 0

        ask()

    @pytest.mark.parametrize(
        "lines",
        ["Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: -1\r\n", "Transfer-Encoding: chunked\r\n"],
    )
    def test_a_body_of_two_lengths_or_none(self, lines: str) -> None:
        @on_a_loop
        async def ask() -> None:
            async with web_server({}) as server, open_gate() as gate:
                entry = gate.register("a", site_of(server))
                answer = await say(gate, f"POST {server.url}/ HTTP/1.1\r\n{lines}{credentials(entry)}\r\n")
                assert answer[9:12] in (b"400", b"411")
                assert server.requests == []

        ask()

    def test_it_is_told_once_a_host_and_without_the_path(self, caplog: pytest.LogCaptureFixture) -> None:
        @on_a_loop
        async def ask() -> None:
            async with raw_server(drip) as server, open_gate() as gate:
                entry = gate.register("a", site_of(server))
                for number in range(3):
                    await get(gate, f"http://user:pw@evil.example/secret{number}?token=1", entry)
                    await get(gate, "http://other.example/secret", entry)

        with caplog.at_level(logging.WARNING, logger="scraping.browser"):
            ask()
        assert len(caplog.records) == 2
        told = caplog.text
        assert "evil.example" in told
        assert "other.example" in told
        assert "secret" not in told
        assert "token" not in told
        assert "pw" not in told


@pytest.mark.fault
@pytest.mark.fault_number(22)
class TestLimits:
    @on_a_loop
    async def test_a_gigabyte_is_cut(self) -> None:
        async with raw_server(endless) as server, open_gate(connection_bytes=MEGABYTE) as gate:
            entry = gate.register("a", site_of(server))
            await get(gate, f"{server.url}/", entry)
            assert gate.traffic("a").bytes_in < 3 * MEGABYTE
            await connect(gate, f"127.0.0.1:{server.port}", entry, then=b"GET / HTTP/1.1\r\n\r\n")
            assert gate.traffic("a").bytes_in < 6 * MEGABYTE
            assert server.sent < 100 * MEGABYTE

    @on_a_loop
    async def test_many_connections_are_no_way_around_it(self) -> None:
        limits = {"connection_bytes": 2 * MEGABYTE, "minute_bytes": 5 * MEGABYTE}
        async with raw_server(endless) as server, open_gate(**limits) as gate:
            entry = gate.register("a", site_of(server))
            await asyncio.gather(*(get(gate, f"{server.url}/", entry) for _ in range(20)))
            assert gate.traffic("a").bytes_in < 8 * MEGABYTE

    @on_a_loop
    async def test_what_stands_still_is_cut(self) -> None:
        async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter, __: Seen) -> None:
            await reader.read(-1)

        async with raw_server(silent) as server, open_gate(idle_seconds=0.2) as gate:
            entry = gate.register("a", site_of(server))
            assert (await get(gate, f"{server.url}/", entry, seconds=5)).startswith(b"HTTP/1.1 504")
            await connect(gate, f"127.0.0.1:{server.port}", entry, seconds=5)
            assert not gate._connections

    @on_a_loop
    async def test_what_moves_in_one_direction_only_is_not(self) -> None:
        async with raw_server(drip) as server, open_gate(idle_seconds=0.2, connection_seconds=0.8) as gate:
            entry = gate.register("a", site_of(server))
            began = asyncio.get_running_loop().time()
            await connect(gate, f"127.0.0.1:{server.port}", entry, then=b"GET / HTTP/1.1\r\n\r\n", seconds=10)
            assert asyncio.get_running_loop().time() - began >= 0.7

    @on_a_loop
    async def test_a_head_that_never_ends(self) -> None:
        async with raw_server(drip) as server, open_gate(head_seconds=0.2) as gate:
            gate.register("a", site_of(server))
            assert await say(gate, "GET http://x/ HTTP/1.1\r\n", seconds=5) == b""
            answer = await say(gate, "GET http://x/ HTTP/1.1\r\nX: " + "x" * 200_000)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400")  # cut while it still talks, or told
            await until(lambda: not gate._connections)

    @on_a_loop
    async def test_a_browser_that_hangs_up_ends_it(self) -> None:
        async with raw_server(drip) as server, open_gate() as gate:
            entry = gate.register("a", site_of(server))
            reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
            writer.write(f"GET {server.url}/ HTTP/1.1\r\n{credentials(entry)}\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            assert gate._connections
            writer.close()
            await until(lambda: not gate._connections)

    @on_a_loop
    async def test_a_stopped_gate_leaves_nothing_open(self) -> None:
        async with raw_server(drip) as server:
            async with open_gate() as gate:
                entry = gate.register("a", site_of(server))
                running = asyncio.ensure_future(connect(gate, f"127.0.0.1:{server.port}", entry))
                await until(lambda: server.connections == 1)
            await running
            assert not gate._connections
            with pytest.raises(OSError, match="Connect"):
                await say(gate, "GET / HTTP/1.1\r\n\r\n")


class TestBehindAProxy:
    @on_a_loop
    async def test_tunnels_and_requests_go_through_it_by_name(self) -> None:
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
        async with raw_server(proxy) as server, open_gate(Names()) as gate:
            upstream = f"http://us%40er:s3cret@127.0.0.1:{server.port}"
            entry = gate.register("a", Site("s", "https://good.example"), upstream)
            assert (await get(gate, "http://good.example/x?y=1", entry)).endswith(b"{}")
            assert (await connect(gate, "good.example:443", entry, then=b"hello")).endswith(b"echo:hello")
            told = base64.b64encode(b"us@er:s3cret").decode()
            assert heads[0].startswith("GET http://good.example/x?y=1 HTTP/1.1\r\n")
            assert heads[1].startswith("CONNECT good.example:443 HTTP/1.1\r\n")
            for head in heads:
                assert head.count("Proxy-Authorization") == 1
                assert f"Proxy-Authorization: Basic {told}" in head
                assert entry.password not in head
            for where in ("evil.example:443", "169.254.169.254:80"):
                assert (await connect(gate, where, entry)).startswith(b"HTTP/1.1 403")
            assert server.connections == 2

    @pytest.mark.requirement("FS-5")
    @pytest.mark.parametrize(("told", "passed_on"), [("407", "502"), ("403", "403"), ("429", "429"), ("500", "502")])
    def test_its_own_refusal(self, told: str, passed_on: str) -> None:
        @on_a_loop
        async def ask() -> None:
            answer = f"HTTP/1.1 {told} No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n".encode()
            async with raw_server(saying(answer)) as server, open_gate() as gate:
                upstream = f"http://u:s3cret@{server.host}:{server.port}"
                entry = gate.register("a", Site("s", "https://good.example"), upstream)
                found = await connect(gate, "good.example:443", entry)
                assert found.startswith(f"HTTP/1.1 {passed_on}".encode())
                assert b"s3cret" not in found
                assert b"Proxy-Authenticate" not in found

        ask()


async def until(condition: Any, seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)
