"""Sites that accept only a browser's requests refuse the same requests of any other client."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator

import pytest

from stadium.client_check import hello_suspicion, parse_hello
from tests.stadium.certificate import Certificate, make_certificate
from tests.stadium_process import StadiumProcess

from .conftest import Visitor, visiting

PATH = "/espncricinfo/live-cricket-score"
CHROMIUM = {
    "Host": "127.0.0.1",
    "Connection": "keep-alive",
    "sec-ch-ua-platform": '"Linux"',
    "User-Agent": "Mozilla/5.0",
    "Accept": "*/*",
    "Sec-Fetch-Site": "same-origin",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Dest": "empty",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Accept-Language": "en-GB",
}


async def ask(port: int, headers: dict[str, str], *, version: str = "1.1", tls: ssl.SSLContext | None = None) -> str:
    """Sends headers as they are, in their order; returns the head of the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"GET {PATH} HTTP/{version}\r\n{lines}\r\n".encode())
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def port_of(visitor: Visitor) -> int:
    port = visitor.client.server.port
    assert port is not None
    return port


class TestHeaders:
    @visiting(browser_only=("espncricinfo",))
    async def test_of_a_browser_are_accepted(self, visitor: Visitor) -> None:
        assert " 200 " in await ask(port_of(visitor), CHROMIUM)

    @pytest.mark.parametrize("name", ["Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Connection"])
    @visiting(browser_only=("espncricinfo",))
    async def test_that_are_missing_are_noticed(self, visitor: Visitor, name: str) -> None:
        found = await ask(port_of(visitor), {key: value for key, value in CHROMIUM.items() if key != name})
        assert " 403 " in found
        assert f"no {name.lower()} header" in found

    @visiting(browser_only=("espncricinfo",))
    async def test_in_another_order_are_noticed(self, visitor: Visitor) -> None:
        found = await ask(port_of(visitor), dict(sorted(CHROMIUM.items())))
        assert " 403 " in found
        assert " before " in found

    @visiting(browser_only=("espncricinfo",))
    async def test_without_brotli_are_noticed(self, visitor: Visitor) -> None:
        assert "no brotli" in await ask(port_of(visitor), {**CHROMIUM, "Accept-Encoding": "gzip, deflate"})

    @visiting(browser_only=("espncricinfo",))
    async def test_of_another_http_version_are_noticed(self, visitor: Visitor) -> None:
        assert "HTTP/1.0" in await ask(port_of(visitor), CHROMIUM, version="1.0")


class TestControl:
    @visiting()
    async def test_switches_the_check_of_one_site(self, visitor: Visitor) -> None:
        assert (await visitor.client.get(PATH)).status == 200
        on = await visitor.post("/control/browser_only", {"site": "espncricinfo"})
        assert on == {"browser_only": ["espncricinfo"]}
        assert (await visitor.client.get(PATH)).status == 403
        assert (await visitor.client.get("/espn/robots.txt")).status == 200
        assert await visitor.post("/control/browser_only", {"site": "espncricinfo", "on": False}) == {
            "browser_only": []
        }
        assert (await visitor.client.get(PATH)).status == 200

    @visiting(browser_only=("crex",))
    async def test_a_reset_restores_the_sites_of_the_command_line(self, visitor: Visitor) -> None:
        await visitor.post("/control/browser_only", {"site": "crex", "on": False})
        await visitor.post("/control/reset", {})
        assert (await visitor.client.get("/crex/")).status == 403


class TestClientHello:
    def test_of_openssl_is_no_browsers(self) -> None:
        ciphers, extensions = parse_hello(openssl_hello())
        assert ciphers
        assert 0 in extensions  # server name
        assert hello_suspicion(openssl_hello()) == "no GREASE in the ClientHello"

    @pytest.mark.parametrize("size", [0, 40, 100])
    def test_that_is_cut_is_no_browsers(self, size: int) -> None:
        assert hello_suspicion(openssl_hello()[:size]) == "no complete ClientHello"


def openssl_hello() -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="stadium.test")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()[5:]  # without the record header


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def arena(certificate: Certificate) -> Iterator[StadiumProcess]:
    with StadiumProcess(browser_only=("espncricinfo",), tls=certificate.file) as running:
        yield running


@pytest.mark.slow
def test_over_tls_the_headers_of_a_browser_do_not_suffice(arena: StadiumProcess, certificate: Certificate) -> None:
    found = asyncio.run(ask(arena.port, CHROMIUM, tls=ssl.create_default_context(cafile=certificate.file)))
    assert " 403 " in found
    assert "no GREASE in the ClientHello" in found
