"""Faults with hostile responses: endless bodies, gzip bombs, redirects to other hosts."""

from __future__ import annotations

import zlib

from .conftest import Visit, Visitor, visiting
from .test_faults import LIVE, inject


@visiting()
async def test_a_flood_is_longer_than_a_client_reads(visitor: Visitor) -> None:
    await visitor.enter("crex")
    await inject(visitor, kind="flood", target="live")
    response = await visitor.ask(LIVE)
    assert len(await response.content.readexactly(5_000_000)) == 5_000_000
    response.close()


def test_a_bomb_is_small_and_decompresses_to_a_gigabyte(visit: Visit) -> None:
    async def scenario(visitor: Visitor) -> None:
        await visitor.enter("crex")
        await inject(visitor, kind="bomb", target="live")
        response = await visitor.ask(LIVE)
        assert response.headers["Content-Encoding"] == "gzip"
        assert int(response.headers["Content-Length"]) < 2_000_000
        response.close()

    visit(scenario)
    from stadium.fault_responses import _gzip_bomb

    assert len(zlib.decompressobj(31).decompress(_gzip_bomb()[:100_000])) > 50_000_000


@visiting()
async def test_redirects_in_a_loop_and_to_another_host(visitor: Visitor) -> None:
    await visitor.enter("crex")
    await inject(visitor, kind="loop", target="live", count=1)
    await inject(visitor, kind="lead_away", value=40000, target="list", count=1)
    there = await visitor.client.get(LIVE, allow_redirects=False)
    assert (there.status, there.headers["Location"]) == (302, LIVE)
    away = await visitor.client.get("/crex/api/v3/getLiveMatches", allow_redirects=False)
    assert away.headers["Location"] == "http://127.0.0.2:40000/secret"


@visiting()
async def test_robots_txt_allows_the_sites_and_not_the_controls(visitor: Visitor) -> None:
    text = await (await visitor.ask("/robots.txt")).text()
    assert "Allow: /\n" in text
    assert "Disallow: /control" in text
