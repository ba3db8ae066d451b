"""Faults hit the match that they name, at every site that shows it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from .conftest import Visit, Visitor, visiting

SITES = {
    "crex": "pair:2",
    "crexpro": "members:2",
    "board": "board:2",
    "espncricinfo": "pair:2",
    "espn": "many:2",
    "espnsoccer": "many:2",
    "sofascore": "many:2",
    "sofascorecricket": "many:2",
}


async def addresses(visitor: Visitor, site: str) -> dict[str, str]:
    """Returns the addresses of a site's matches by key."""
    listed: list[dict[str, Any]] = await visitor.get("/truth/matches")
    found = [match for match in listed if match["site"] == site]
    return {match["key"]: urlsplit(match["url"])._replace(scheme="", netloc="").geturl() for match in found}


@pytest.mark.parametrize("site", SITES)
class TestEverySite:
    def test_hits_one_match_only(self, visit: Visit, site: str) -> None:
        async def scenario(visitor: Visitor) -> None:
            struck, spared = list((await addresses(visitor, site)).items())[:2]
            await visitor.post(
                "/control/faults", {"site": site, "match": struck[0], "kind": "status", "value": 503}, 201
            )
            assert (await visitor.ask(struck[1])).status == 503
            assert (await visitor.ask(spared[1])).status == 200

        visit(scenario, programme=SITES[site])

    def test_counts_requests_by_match(self, visit: Visit, site: str) -> None:
        async def scenario(visitor: Visitor) -> None:
            key, address = next(iter((await addresses(visitor, site)).items()))
            assert (await visitor.ask(address)).status == 200
            latest = await visitor.get("/control/requests/latest")
            assert [(one[1], one[3]) for one in latest] == [(site, key)]

        visit(scenario, programme=SITES[site])

    def test_malformed_and_layout_change_the_response(self, visit: Visit, site: str) -> None:
        async def scenario(visitor: Visitor) -> None:
            _, address = next(iter((await addresses(visitor, site)).items()))
            whole = await (await visitor.ask(address)).text()
            for kind in ("malformed", "layout", "empty", "challenge"):
                await visitor.post("/control/faults", {"site": site, "kind": kind}, 201)
                assert await (await visitor.ask(address)).text() != whole
                await visitor.client.delete("/control/faults")

        visit(scenario, programme=SITES[site])


class TestHalfListFault:
    @visiting(programme="pair:1")
    async def test_balls_in_a_pages_state_are_lost(self, visitor: Visitor) -> None:
        visitor.wall.now += 60
        (_, address), *_ = (await addresses(visitor, "espncricinfo")).items()
        page = address.replace("live-cricket-score", "ball-by-ball-commentary")
        whole = await self._comments(visitor, page)
        await visitor.post("/control/faults", {"site": "espncricinfo", "kind": "half_list"}, 201)
        assert len(whole) > 10
        assert await self._comments(visitor, page) == whole[::2]

    async def _comments(self, visitor: Visitor, page: str) -> list[Any]:
        html = await (await visitor.ask(page)).text()
        text = html.partition('<script id="__NEXT_DATA__"')[2].partition(">")[2].partition("</script>")[0]
        comments: list[Any] = json.loads(text)["props"]["appPageProps"]["data"]["content"]["comments"]
        return comments

    @visiting(programme="many:1")
    async def test_plays_of_an_answer_are_lost(self, visitor: Visitor) -> None:
        visitor.wall.now += 60
        (_, address), *_ = (await addresses(visitor, "espn")).items()
        plays = address.replace("/summary", "/playbyplay")
        whole = (await visitor.get(plays))["commentary"]["items"]
        await visitor.post("/control/faults", {"site": "espn", "kind": "half_list"}, 201)
        assert len(whole) > 10
        assert (await visitor.get(plays))["commentary"]["items"] == whole[::2]
