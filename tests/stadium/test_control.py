from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from .conftest import Visitor, visiting


class TestClockControl:
    @visiting()
    async def test_health_shows_time_and_pace(self, visitor: Visitor) -> None:
        visitor.wall.now += 2
        health = await visitor.get("/control/health")
        assert (health["status"], health["pace"]) == ("ok", 10)
        assert health["simulated_time"] == pytest.approx(20)
        await visitor.post("/control/pace", {"pace": 100})
        visitor.wall.now += 1
        assert (await visitor.get("/control/health"))["simulated_time"] == pytest.approx(120)

    @visiting()
    async def test_skip_jumps_ahead_and_keeps_ids_in_order(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        before = await visitor.whole_feed("138Z")
        await visitor.post("/control/skip", {"seconds": 1200})
        after = await visitor.whole_feed("138Z")
        ids = [item["id"] for item in after]
        assert after[: len(before)] == before
        assert len(after) > len(before) + 20
        assert ids == sorted(set(ids))

    @pytest.mark.parametrize("body", [{}, {"pace": "fast"}, {"pace": -1}, {"pace": 5000}, [1]])
    @visiting()
    async def test_refuses_an_invalid_pace(self, visitor: Visitor, body: object) -> None:
        assert (await visitor.post("/control/pace", body, 400))["error"]


class TestIndexPage:
    @visiting()
    async def test_links_to_every_match(self, visitor: Visitor) -> None:
        html = await (await visitor.ask("/")).text()
        for match in await visitor.get("/truth/matches"):
            assert f"/truth/matches/{match['site']}/{match['key']}" in html


class TestCounters:
    @visiting()
    async def test_count_by_match_where_the_address_names_one(self, visitor: Visitor) -> None:
        match = await visitor.first("sofascore")
        await visitor.enter("sofascore", urlsplit(match["url"]).path)
        for _ in range(2):
            await visitor.get(f"/sofascore/api/v1/event/{match['key']}")
        counted = (await visitor.get("/control/requests"))["sites"]["sofascore"]["matches"]
        assert counted == {match["key"]: {"live": 2, "page": 1}}

    @visiting()
    async def test_latest_requests_are_listed_until_reset(self, visitor: Visitor) -> None:
        await visitor.ask("/crex/api/v3/getSV3?key=138Z")
        await visitor.enter("crex")
        await visitor.get("/crex/api/v3/getSV3?key=138Z")
        latest = await visitor.get("/control/requests/latest")
        assert [one[1:] for one in latest] == [
            ["crex", "live", "138Z", 403],
            ["crex", "list", "", 200],
            ["crex", "live", "138Z", 200],
        ]
        assert latest[0][0] <= latest[1][0] <= latest[2][0]
        await visitor.post("/control/reset", {})
        assert await visitor.get("/control/requests/latest") == []

    @visiting()
    async def test_count_by_site_and_target_until_reset(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        for _ in range(3):
            await visitor.get("/crex/api/v3/getSV3?key=138Z")
        await visitor.ask("/sofascore/api/v1/event/15010285")
        counted = await visitor.get("/control/requests")
        assert counted["sites"]["crex"]["targets"] == {"list": 1, "live": 3}
        assert counted["sites"]["crex"]["concurrent"] == 0
        assert counted["sites"]["sofascore"]["total"] == 1
        assert counted["statuses"] == {"200": 4, "403": 1}
        await visitor.post("/control/faults", {"kind": "hang"}, 201)
        await visitor.post("/control/reset", {})
        assert (await visitor.get("/control/requests"))["total"] == 0
        assert await visitor.get("/control/faults") == []
