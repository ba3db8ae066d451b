from __future__ import annotations

import asyncio
import re

from aiohttp import ClientWebSocketResponse

from .conftest import Visitor, visiting


async def next_markup(socket: ClientWebSocketResponse, kind: str) -> str:
    """Returns the next pushed markup for this part of the page."""
    async with asyncio.timeout(5):
        while True:
            text = await socket.receive_str()
            if text[0] == kind:
                return text[1:]


async def first_path(visitor: Visitor) -> tuple[str, str]:
    match = (await visitor.get("/truth/matches"))[0]
    return match["key"], re.sub(r"^https?://[^/]+", "", match["url"])


class TestPages:
    @visiting(programme="board:3")
    async def test_every_card_links_to_a_page_with_its_score(self, visitor: Visitor) -> None:
        html = await (await visitor.ask("/board/")).text()
        links = re.findall(r'href="(/board/match/[^"]+)"', html)
        assert len(links) == 3
        for link in links:
            truth = await visitor.get(f"/truth/matches/board/{link.rpartition('-')[2]}")
            side = truth["score"]["team_a"]
            page = await (await visitor.ask(link)).text()
            assert f"{side['runs']}/{side['wickets']} ({side['overs']} ov)" in page

    @visiting(programme="board:1")
    async def test_all_referenced_assets_exist(self, visitor: Visitor) -> None:
        _, path = await first_path(visitor)
        html = await (await visitor.ask(path)).text()
        for file in set(re.findall(r'(?:src|href)="(/board/assets/[^"]+)"', html)):
            assert (await visitor.ask(file)).status == 200, file
        assert "Disallow: /board/private" in await (await visitor.ask("/board/robots.txt")).text()

    @visiting(programme="board:1")
    async def test_requests_without_a_token_are_refused(self, visitor: Visitor) -> None:
        _, path = await first_path(visitor)
        assert (await visitor.ask("/board/match/a-v-b-ZZZZ")).status == 404
        assert (await visitor.ask(f"{path}?before=x")).status == 400
        assert (await visitor.ask("/board/push/ZZZZ")).status == 404


class TestPush:
    @visiting(programme="board:1", pace=10)
    async def test_pushes_new_markup_and_the_clock(self, visitor: Visitor) -> None:
        key, path = await first_path(visitor)
        async with visitor.client.ws_connect(f"/board/push/{key}") as socket:
            shown = await next_markup(socket, "b")
            assert shown in await (await visitor.ask(path)).text()
            first = await next_markup(socket, "c")
            visitor.wall.now += 2
            assert await next_markup(socket, "c") != first
            visitor.wall.now += 10
            assert await next_markup(socket, "b") != shown

    @visiting(programme="board:1", pace=0)
    async def test_a_layout_fault_changes_open_pages(self, visitor: Visitor) -> None:
        key, _ = await first_path(visitor)
        async with visitor.client.ws_connect(f"/board/push/{key}") as socket:
            assert 'class="sb-total-a"' in await next_markup(socket, "b")
            await visitor.post("/control/faults", {"site": "board", "kind": "layout", "value": 2}, 201)
            assert 'data-part="total-a"' in await next_markup(socket, "b")
            await visitor.post("/control/faults", {"site": "board", "kind": "layout"}, 201)
            await visitor.client.delete("/control/faults/f1")
            assert "total-a" not in await next_markup(socket, "b")

    @visiting(programme="board:1", pace=10)
    async def test_a_hang_fault_silences_the_socket(self, visitor: Visitor) -> None:
        key, _ = await first_path(visitor)
        async with visitor.client.ws_connect(f"/board/push/{key}") as socket:
            await next_markup(socket, "c")
            await visitor.post("/control/faults", {"site": "board", "target": "live", "kind": "hang"}, 201)
            visitor.wall.now += 60
            try:
                text = await socket.receive_str(timeout=0.8)
            except TimeoutError:
                return
            raise AssertionError(text)
