from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest

from .conftest import Visit, Visitor, visiting
from .test_crex import part, state_of

LIVE = "/crex/api/v3/getSV3?key=138Z"
OTHER = "/crex/api/v3/getSV3?key=L79F"
PAGE = "/crex/cricket-live-score/any-match-updates-138Z"
EVENT = "/sofascore/api/v1/event/15010285"
GONE = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError)


async def inject(visitor: Visitor, **fault: Any) -> str:
    return str((await visitor.post("/control/faults", fault, 201))["id"])


async def hits(visitor: Visitor) -> list[int]:
    return [fault["hits"] for fault in await visitor.get("/control/faults")]


class TestKinds:
    @visiting()
    async def test_status_answers_that_status(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await inject(visitor, site="crex", target="live", kind="status", value=429)
        response = await visitor.ask(LIVE)
        assert (response.status, response.headers["Retry-After"]) == (429, "5")
        assert (await visitor.ask("/crex/api/v3/getLiveMatches")).status == 200

    @visiting()
    async def test_latency_delays_and_then_answers(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await inject(visitor, target="live", kind="latency", value=0.3)
        began = time.monotonic()
        assert (await visitor.ask(LIVE)).status == 200
        assert time.monotonic() - began >= 0.3

    @visiting()
    async def test_malformed_cuts_the_response_in_half(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await inject(visitor, kind="malformed")
        with pytest.raises(json.JSONDecodeError):
            json.loads(await (await visitor.ask(LIVE)).text())
        html = await (await visitor.ask(PAGE)).text()
        assert "app-root-state" in html
        assert "</html>" not in html

    @visiting()
    async def test_hang_responds_only_after_its_removal(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        identity = await inject(visitor, kind="hang", target="live")
        waiting = asyncio.create_task(visitor.ask(LIVE))
        done, _ = await asyncio.wait({waiting}, timeout=0.3)
        assert not done
        assert (await visitor.client.delete(f"/control/faults/{identity}")).status == 200
        assert (await asyncio.wait_for(waiting, 5)).status == 200

    @visiting()
    async def test_hang_ends_when_the_client_disconnects(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await inject(visitor, kind="hang", target="live")
        with pytest.raises(TimeoutError):
            await visitor.client.get(LIVE, timeout=aiohttp.ClientTimeout(total=0.2))
        deadline = time.monotonic() + 5
        while (await visitor.get("/control/requests"))["sites"]["crex"]["concurrent"]:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)

    @visiting()
    async def test_layout_renames_classes_and_keys_and_drops_the_blob(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await inject(visitor, site="crex", kind="layout")
        html = await (await visitor.ask(PAGE)).text()
        assert "app-root-state" not in html
        assert 'class="nx-team-inning"' in html
        assert 'class="team-inning' not in html
        live = await visitor.get(LIVE)
        assert "j" not in live
        assert "v2_j" in live

    @visiting()
    async def test_empty_is_nothing_with_status_200(self, visitor: Visitor) -> None:
        await inject(visitor, kind="empty")
        response = await visitor.ask(PAGE)
        assert (response.status, await response.text()) == (200, "")

    @visiting()
    async def test_challenge_has_the_format_of_the_site(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await visitor.enter("sofascore")
        await inject(visitor, kind="challenge")
        response = await visitor.ask(LIVE)
        assert (response.status, response.content_type) == (200, "text/html")
        assert "challenge" in await response.text()
        response = await visitor.ask(EVENT)
        assert (response.status, await response.json()) == (403, {"error": {"code": 403, "reason": "challenge"}})

    @visiting()
    async def test_login_is_a_page_to_sign_in_whatever_was_asked_for(self, visitor: Visitor) -> None:
        await inject(visitor, kind="login")
        for path in (PAGE, LIVE, EVENT):
            response = await visitor.ask(path)
            assert (response.status, response.content_type) == (200, "text/html")
            assert 'type="password"' in await response.text()

    @visiting()
    async def test_reset_cuts_the_connection(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await inject(visitor, kind="reset", target="live")
        with pytest.raises(GONE):
            await visitor.ask(LIVE)
        assert (await visitor.get("/control/requests"))["sites"]["crex"]["concurrent"] == 0

    @visiting()
    async def test_drip_sends_the_right_bytes_slowly(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        right = await visitor.get(LIVE)
        await inject(visitor, kind="drip", target="live", value=0.4)
        began = time.monotonic()
        assert await visitor.get(LIVE) == right
        assert time.monotonic() - began >= 0.3

    @visiting()
    async def test_wrong_match_serves_another_match(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await visitor.enter("sofascore")
        right, feed = await visitor.get(LIVE), await visitor.feed("138Z")
        await inject(visitor, kind="wrong_match")
        assert (await visitor.get(LIVE))["a"] != right["a"]
        assert (await visitor.feed("138Z"))[0]["mfkey"] != feed[0]["mfkey"]
        assert (await visitor.get(EVENT))["event"]["id"] != 15010285

    @visiting()
    async def test_half_list_loses_items(self, visitor: Visitor) -> None:
        html = await visitor.enter("crex")
        await visitor.enter("sofascore")
        feed, listed = await visitor.feed("138Z"), await visitor.get("/crex/api/v3/getLiveMatches")
        incidents = await visitor.get(f"{EVENT}/incidents")
        await inject(visitor, kind="half_list")
        assert await visitor.feed("138Z") == feed[::2]
        assert list(await visitor.get("/crex/api/v3/getLiveMatches")) == list(listed)[::2]
        halved = await (await visitor.ask("/crex/")).text()
        page = await (await visitor.ask(PAGE)).text()
        assert part(state_of(page), "getBallFeeds") == feed[::2]
        assert halved.count('class="live-card"') == -(-html.count('class="live-card"') // 2)
        assert (await visitor.get(f"{EVENT}/incidents"))["incidents"] == incidents["incidents"][::2]
        assert (await visitor.get(EVENT))["event"]["id"] == 15010285

    @pytest.mark.parametrize("kind", ["malformed", "layout", "half_list"])
    @visiting()
    async def test_changed_content_leaves_images_unchanged(self, visitor: Visitor, kind: str) -> None:
        await inject(visitor, kind=kind)
        assert (await visitor.ask("/crex/assets/logo.png")).status == 200


class TestSelection:
    @visiting()
    async def test_hits_only_the_selected_match(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await inject(visitor, match="138Z", kind="status", value=500)
        assert (await visitor.ask(LIVE)).status == 500
        assert (await visitor.ask(PAGE)).status == 500
        body = {"matchKey": "138Z", "lastDocId": ""}
        assert (await visitor.client.post("/crex/commentary/v2/getBallFeeds", json=body)).status == 500
        assert (await visitor.ask(OTHER)).status == 200
        assert await hits(visitor) == [3]

    @visiting()
    async def test_matches_by_path(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await inject(visitor, path=r"/api/v3/get\w+$", kind="status", value=502)
        assert (await visitor.ask(LIVE)).status == 502
        assert (await visitor.ask(PAGE)).status == 200

    @visiting()
    async def test_a_sofascore_page_is_selected_by_event_id(self, visitor: Visitor) -> None:
        match = await visitor.first("sofascore")
        path = match["url"][match["url"].index("/sofascore") :]
        await inject(visitor, site="sofascore", target="page", match=match["key"], kind="status", value=500)
        assert (await visitor.ask(path)).status == 500

    @visiting()
    async def test_ends_after_its_count_or_its_time(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        await inject(visitor, target="live", kind="status", count=2)
        assert [(await visitor.ask(LIVE)).status for _ in range(3)] == [503, 503, 200]
        await inject(visitor, target="live", kind="status", seconds=10)
        assert (await visitor.ask(LIVE)).status == 503
        visitor.wall.now += 11
        assert (await visitor.ask(LIVE)).status == 200
        assert [fault["active"] for fault in await visitor.get("/control/faults")] == [False, False]

    def test_probability_is_seeded(self, visit: Visit) -> None:
        async def scenario(visitor: Visitor) -> list[int]:
            await visitor.enter("crex")
            await inject(visitor, target="live", kind="status", probability=0.5)
            return [(await visitor.ask(LIVE)).status for _ in range(40)]

        statuses = visit(scenario)
        assert set(statuses) == {200, 503}
        assert visit(scenario) == statuses
        assert visit(scenario, seed=7) == statuses

    @visiting()
    async def test_does_not_hit_the_controls(self, visitor: Visitor) -> None:
        await inject(visitor, kind="status")
        assert (await visitor.ask("/control/health")).status == 200
        assert (await visitor.client.delete("/control/faults")).status == 200
        assert await visitor.get("/control/faults") == []
        assert (await visitor.client.delete("/control/faults/f1")).status == 404


class TestRefusals:
    @pytest.mark.parametrize(
        ("fault", "field"),
        [
            ({}, "kind"),
            ({"kind": "explode"}, "kind"),
            ({"kind": "hang", "site": "nowhere"}, "site"),
            ({"kind": "hang", "target": "cellar"}, "target"),
            ({"kind": "status", "value": 200}, "value"),
            ({"kind": "latency", "value": "long"}, "value"),
            ({"kind": "latency", "value": -1}, "value"),
            ({"kind": "hang", "count": 0}, "count"),
            ({"kind": "hang", "seconds": True}, "seconds"),
            ({"kind": "hang", "probability": 2}, "probability"),
            ({"kind": "hang", "path": "("}, "path"),
            ({"kind": "hang", "colour": "red"}, "colour"),
            (["hang"], "object"),
        ],
    )
    @visiting()
    async def test_names_the_field_that_is_wrong(self, visitor: Visitor, fault: Any, field: str) -> None:
        answer = await visitor.post("/control/faults", fault, 400)
        assert field in answer["error"]
