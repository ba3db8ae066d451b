"""Direct reads against hostile servers: each stays within its limits and reaches no other host."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from scraping.browser import request_trace
from scraping.browser.direct_client import MAX_GZIP_MEMBERS, DirectClient
from scraping.browser.request_trace import TraceLevel
from scraping.errors import EgressRefused, ReadTimeout, SchemaBreak, ScrapingError, Transient
from scraping.readings import Document, Request, Site
from tests.scraping.browser.hostile import (
    MEGABYTE,
    Names,
    Raw,
    Seen,
    bomb,
    compressed,
    drip,
    endless,
    raw_server,
    redirect,
    reset,
    saying,
    text,
    web_server,
)
from tests.scraping.browser.loops import on_a_loop

HALF_GZIP = compressed(b"x" * 99)[:20]


@asynccontextmanager
async def client_to(
    server: Seen, *hosts: str, names: Names | None = None, trace: TraceLevel = "none", **site: Any
) -> AsyncIterator[DirectClient]:
    about = Site("s", api_hosts=hosts, **{"allows_private": True, "base_url": server.url, **site})
    made = DirectClient(about, max_body_bytes=MEGABYTE, user_agent="U", language="en", resolver=names, trace=trace)
    try:
        yield made
    finally:
        await made.close()


async def fetch(client: DirectClient, url: str, *, seconds: float = 10, **request: Any) -> Document:
    return await client.fetch(Request("live", url, **request), seconds=seconds)


class TestResponses:
    @on_a_loop
    async def test_compressed_bodies_are_decompressed(self) -> None:
        body = json.dumps({"balls": list(range(5000))}).encode()
        raw = zlib.compressobj(wbits=-15)
        routes = {
            "/plain": text(body),
            "/gzip": text(compressed(body), Content_Encoding="gzip"),
            "/in-two": text(compressed(body[:100]) + compressed(body[100:]), Content_Encoding="gzip"),
            "/deflate": text(zlib.compress(body), Content_Encoding="deflate"),
            "/raw-deflate": text(raw.compress(body) + raw.flush(), Content_Encoding="deflate"),
        }
        async with web_server(routes) as server, client_to(server) as client:
            for path in routes:
                document = await fetch(client, f"{server.url}{path}")
                assert document.body == body, path
            assert server.requests[0].headers["Accept-Encoding"] == "gzip, deflate"

    @on_a_loop
    async def test_bytes_are_counted_as_sent(self) -> None:
        body = b"a" * 500_000
        async with (
            web_server({"/": text(compressed(body), Content_Encoding="gzip")}) as server,
            client_to(server) as client,
        ):
            document = await fetch(client, f"{server.url}/")
            assert len(document.body) == 500_000
            assert len(compressed(body)) < document.wire_bytes < len(compressed(body)) + 1000

    @pytest.mark.fault_number(19)
    @pytest.mark.parametrize(
        ("_kind", "behave"),
        [
            ("half a body", saying(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")),
            ("half a chunk", saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf")),
            ("a connection that is reset", reset),
            ("no body", saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
            ("no answer", saying(b"")),
            ("half a gzip stream", saying(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + HALF_GZIP)),
            ("not compressed at all", saying(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nhello")),
            ("another protocol", saying(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")),
        ],
    )  # fmt: skip
    def test_corrupt_bodies_are_transient(self, _kind: str, behave: Raw) -> None:
        @on_a_loop
        async def read() -> None:
            async with raw_server(behave) as server, client_to(server) as client:
                with pytest.raises(Transient):
                    await fetch(client, f"{server.url}/")

        read()

    @on_a_loop
    async def test_an_encoding_that_was_not_requested_is_a_schema_break(self) -> None:
        async with web_server({"/": text(b"?", Content_Encoding="br")}) as server, client_to(server) as client:
            with pytest.raises(SchemaBreak, match="br"):
                await fetch(client, f"{server.url}/")

    @on_a_loop
    async def test_an_empty_body_is_allowed_where_expected(self) -> None:
        async with web_server({"/": text(b"")}) as server, client_to(server) as client:
            document = await client.fetch(Request("robots", f"{server.url}/"), seconds=5, may_be_empty=True)
            assert (document.status, document.body) == (200, b"")


@pytest.mark.fault
@pytest.mark.fault_number(22)
class TestLimits:
    @on_a_loop
    async def test_a_gigabyte_is_not_read(self) -> None:
        async with raw_server(endless) as server, client_to(server) as client:
            with pytest.raises(Transient, match="larger than"):
                await fetch(client, f"{server.url}/")
            assert server.sent < 64 * MEGABYTE  # bytes in the socket buffers

    @on_a_loop
    async def test_a_large_content_length_is_not_read(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"
        async with raw_server(saying(head + b"x" * 1000)) as server, client_to(server) as client:
            with pytest.raises(Transient, match="larger than"):
                await fetch(client, f"{server.url}/")

    @pytest.mark.parametrize("encoding", ["gzip", "deflate"])
    def test_a_compression_bomb_costs_no_more_than_the_limit(self, encoding: str) -> None:
        compressed_bomb = bomb(50, is_gzip=encoding == "gzip")
        assert len(compressed_bomb) < MEGABYTE / 2

        @on_a_loop
        async def read() -> None:
            routes = {"/": text(compressed_bomb, Content_Encoding=encoding)}
            async with web_server(routes) as server, client_to(server) as client:
                tracemalloc.start()
                try:
                    with pytest.raises(Transient, match="larger than"):
                        await fetch(client, f"{server.url}/")
                    _, peak = tracemalloc.get_traced_memory()
                finally:
                    tracemalloc.stop()
            assert peak < 5 * MEGABYTE

        read()

    @on_a_loop
    async def test_thousands_of_empty_gzip_members_are_refused(self) -> None:
        routes = {"/": text(compressed(b"") * 1000, Content_Encoding="gzip")}
        async with web_server(routes) as server, client_to(server) as client:
            with pytest.raises(Transient, match=f"more than {MAX_GZIP_MEMBERS} parts"):
                await fetch(client, f"{server.url}/")

    @on_a_loop
    async def test_a_slow_drip_times_out(self) -> None:
        async with raw_server(drip) as server, client_to(server) as client:
            began = time.monotonic()
            with pytest.raises(ReadTimeout, match=r"longer than 0\.4 s"):
                await fetch(client, f"{server.url}/", seconds=0.4)
            assert time.monotonic() - began < 10

    @on_a_loop
    async def test_endless_redirects_are_stopped(self) -> None:
        async with web_server({"/": redirect("/")}) as server, client_to(server) as client:
            with pytest.raises(Transient, match="more than 3 redirects"):
                await fetch(client, f"{server.url}/")
            assert len(server.requests) == 4

    @pytest.mark.parametrize(
        "head",
        [
            b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000 + b"\r\n\r\nx",
            b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: x\r\n" % n for n in range(500)) + b"\r\nx",
        ],
        ids=["one long line", "many lines"],
    )
    def test_large_heads_are_refused(self, head: bytes) -> None:
        @on_a_loop
        async def read() -> None:
            async with raw_server(saying(head)) as server, client_to(server) as client:
                with pytest.raises(Transient):
                    await fetch(client, f"{server.url}/")

        read()

    @on_a_loop
    async def test_no_connection_stays_open(self) -> None:
        async with raw_server(drip) as server, client_to(server) as client:
            with pytest.raises(ReadTimeout):
                await fetch(client, f"{server.url}/", seconds=0.1)
            connector = client._client.connector
            assert connector is not None
            assert not connector._acquired
            assert not connector._conns


@pytest.mark.fault
@pytest.mark.fault_number(23)
class TestEgress:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_refuses_redirects_to_other_servers(self, status: int) -> None:
        @on_a_loop
        async def read() -> None:
            async with web_server({}, host="127.0.0.2") as forbidden:
                routes = {"/": redirect(f"{forbidden.url}/secret", status)}
                async with web_server(routes) as server, client_to(server) as client:
                    with pytest.raises(EgressRefused, match=r"127\.0\.0\.2 is not a host"):
                        await fetch(client, f"{server.url}/")
                    assert server.paths == ["/"]
                assert forbidden.requests == []

        read()

    @pytest.mark.parametrize(
        "to",
        [
            "http://169.254.169.254/latest/meta-data/",
            "http://[::ffff:169.254.169.254]/",
            "http://localhost/",
            "//127.0.0.2/",
            "http://2130706433/",
            "file:///etc/passwd",
            "http://a:b@127.0.0.1/",
            "http://127.0.0.1:1/",
            "http://[::1/",
        ],
    )
    def test_refuses_redirects_to_other_schemes_and_ports(self, to: str) -> None:
        @on_a_loop
        async def read() -> None:
            async with web_server({"/": redirect(to)}) as server, client_to(server) as client:
                with pytest.raises(EgressRefused):
                    await fetch(client, f"{server.url}/")
                assert len(server.requests) == 1

        read()

    @pytest.mark.parametrize(
        ("_kind", "answers"),
        [
            ("loopback", ["127.0.0.1"]),
            ("a public address and loopback", ["93.184.216.34", "127.0.0.1"]),
            ("loopback inside IPv6", ["::ffff:127.0.0.1"]),
            ("metadata", ["169.254.169.254"]),
            ("a private network", ["192.168.1.1"]),
        ],
    )
    def test_refuses_names_that_resolve_to_private_addresses(self, _kind: str, answers: list[str]) -> None:
        @on_a_loop
        async def read() -> None:
            names = Names(good_example=[answers])
            async with web_server({}) as inside:
                base = f"http://good.example:{inside.port}"
                async with client_to(inside, names=names, base_url=base, allows_private=False) as client:
                    with pytest.raises(EgressRefused, match="nothing was sent"):
                        await fetch(client, f"{base}/")
                assert inside.requests == []
                assert names.asked == ["good.example"]

        read()

    @on_a_loop
    async def test_connects_to_the_checked_address(self) -> None:
        """A name is resolved once: a second response, which may differ, is never used."""
        names = Names(good_example=[["127.0.0.1"], ["127.0.0.2"]])
        async with web_server({"/": text("{}")}) as good, raw_server(drip, host="127.0.0.2") as other:
            base = f"http://good.example:{good.port}"
            async with client_to(good, names=names, base_url=base) as client:
                for _ in range(3):
                    await fetch(client, f"{base}/")
            assert (len(good.requests), other.connections, names.asked) == (3, 0, ["good.example"])

    @on_a_loop
    async def test_a_source_on_this_machine_needs_permission(self) -> None:
        async with web_server({"/": text("{}")}) as server:
            async with client_to(server, allows_private=False) as client:
                with pytest.raises(EgressRefused, match="not a public address"):
                    await fetch(client, f"{server.url}/")
            assert server.requests == []


class TestSecrets:
    @on_a_loop
    async def test_cookies_and_passwords_are_not_sent_to_another_host(self) -> None:
        async with web_server({"/": text("{}")}, host="127.0.0.2") as other:
            routes = {"/": redirect(f"{other.url}/"), "/cookie": text("{}", Set_Cookie="sid=s3cret")}
            async with web_server(routes) as server:
                async with client_to(server, f"127.0.0.2:{other.port}") as client:
                    await fetch(client, f"{server.url}/cookie")
                    headers = {"authorization": "Bearer s3cret", "x-requested-with": "fetch"}
                    await fetch(client, f"{server.url}/", headers=headers)
                first, second = server.requests[-1].headers, other.requests[-1].headers
                assert (first["Authorization"], first["Cookie"]) == ("Bearer s3cret", "sid=s3cret")
                assert second["x-requested-with"] == "fetch"
                assert "s3cret" not in str(second)

    @on_a_loop
    async def test_passwords_are_sent_again_to_their_own_host(self) -> None:
        async with web_server({"/": redirect("/there"), "/there": text("{}")}) as server, client_to(server) as client:
            await fetch(client, f"{server.url}/", headers={"authorization": "Bearer s3cret"})
            assert server.requests[-1].headers["Authorization"] == "Bearer s3cret"

    @on_a_loop
    async def test_a_form_body_is_not_sent_after_a_303(self) -> None:
        async def answer(request: web.BaseRequest) -> web.Response:
            return web.json_response({"method": request.method, "body": (await request.read()).decode()})

        async with web_server({"/": redirect("/there", 303), "/there": answer}) as server, client_to(server) as client:
            document = await fetch(client, f"{server.url}/", method="POST", body=b"x=1")
            assert document.json() == {"method": "GET", "body": ""}

    @pytest.mark.requirement("FS-5")
    @on_a_loop
    async def test_errors_do_not_contain_the_proxys_password(self) -> None:
        async with raw_server(saying(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")) as proxy:
            site = Site("s", "https://good.example")
            upstream = f"http://user:s3cret@127.0.0.1:{proxy.port}"
            client = DirectClient(site, max_body_bytes=MEGABYTE, user_agent="U", language="en", upstream=upstream)
            try:
                with pytest.raises(Transient) as caught:
                    await fetch(client, "https://good.example/")
                assert "s3cret" not in str(caught.value)
                with pytest.raises(EgressRefused):
                    await fetch(client, "https://evil.example/")
                assert proxy.connections == 1
            finally:
                await client.close()


@on_a_loop
async def test_concurrent_requests_do_not_affect_each_other() -> None:
    """Good responses arrive in time beside a bomb, a drip and a gigabyte."""
    routes = {"/": text("{}"), "/bomb": text(bomb(20), Content_Encoding="gzip")}
    async with (
        raw_server(drip) as slow,
        raw_server(endless) as big,
        web_server(routes) as server,
        client_to(server, f"127.0.0.1:{slow.port}", f"127.0.0.1:{big.port}") as client,
    ):
        bad = [f"{slow.url}/", f"{big.url}/", f"{server.url}/bomb"] * 3
        asked = [fetch(client, url, seconds=1) for url in bad]
        good = [fetch(client, f"{server.url}/", seconds=3) for _ in range(50)]
        found = await asyncio.gather(*asked, *good, return_exceptions=True)
    assert all(isinstance(one, ScrapingError) for one in found[: len(bad)])
    assert [one.body for one in found[len(bad) :] if isinstance(one, Document)] == [b"{}"] * 50


@pytest.mark.requirement("NFR-020")
class TestTrace:
    @pytest.mark.parametrize(
        ("level", "paths"),
        [
            ("none", []),
            ("failed", ["/gone", "/broken"]),
            ("slow", ["/gone", "/broken", "/slow"]),
            ("all", ["/good", "/gone", "/broken", "/slow"]),
        ],
    )
    def test_logs_the_requests_of_its_level(
        self, level: TraceLevel, paths: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def run() -> None:
            answers = {"/good": text(b"{}"), "/gone": web.Response(status=404, body=b"no"), "/slow": text(b"{}")}
            async with web_server(answers) as server, client_to(server, trace=level) as client:
                monkeypatch.setattr(request_trace, "SLOW_SECONDS", 1e9)
                await fetch(client, f"{server.url}/good?token=s3cr3t")
                await fetch(client, f"{server.url}/gone")
                with pytest.raises(ScrapingError):
                    await client.fetch(Request("live", "http://elsewhere.example/broken"), seconds=5)
                monkeypatch.setattr(request_trace, "SLOW_SECONDS", 0.0)
                await fetch(client, f"{server.url}/slow")

        with caplog.at_level("INFO"):
            asyncio.run(asyncio.wait_for(run(), 60))
        found = [record for record in caplog.records if getattr(record, "action", "") == "source_request"]
        assert [urlsplit(record.url).path for record in found] == paths  # type: ignore[attr-defined]
        assert "s3cr3t" not in caplog.text
        if level == "all":
            good = found[0]
            assert (good.source, good.method, good.status, good.document) == ("s", "GET", 200, "live")  # type: ignore[attr-defined]
            assert good.ms >= 0 and good.bytes >= 2  # type: ignore[attr-defined]  # noqa: PT018
