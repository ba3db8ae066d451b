"""Crexpro: open pages, a token service, and live endpoints that need its tokens."""

from __future__ import annotations

from typing import Any

import pytest
from yarl import URL

from stadium.access import CREDENTIAL, LIFETIME_SECONDS

from .conftest import Visitor, visiting

SERVICE = "/crexpro/token/generate-token"
FEED = "/crexpro/commentary/v2/getBallFeeds"


async def key_of(visitor: Visitor) -> str:
    return str((await visitor.first("crexpro"))["key"])


async def token_of(visitor: Visitor) -> str:
    return str((await visitor.post(SERVICE, {"api_key": CREDENTIAL}))["token"])


async def live(visitor: Visitor, key: str, authorization: str = "") -> int:
    headers = {"Authorization": authorization} if authorization else {}
    answer = await visitor.client.get(f"/crexpro/api/v3/getSV3?key={key}", headers=headers)
    return answer.status


class TestTokens:
    @visiting(programme="members:2")
    async def test_live_endpoints_need_a_token(self, visitor: Visitor) -> None:
        key = await key_of(visitor)
        refused = await visitor.client.post(FEED, json={"matchKey": key})
        assert (await live(visitor, key), refused.status) == (401, 401)
        assert refused.headers["WWW-Authenticate"] == "Bearer"
        bearer = f"Bearer {await token_of(visitor)}"
        assert await live(visitor, key, bearer) == 200
        answer = await visitor.client.post(FEED, json={"matchKey": key}, headers={"Authorization": bearer})
        assert [item["mfkey"] for item in await answer.json()][:1] == [key]

    @visiting(programme="members:2")
    async def test_scorecard_needs_a_token_and_squads_and_tabs_do_not(self, visitor: Visitor) -> None:
        key = await key_of(visitor)
        card = f"/crexpro/api/v3/getSC4?key={key}"
        assert (await visitor.ask(card)).status == 401
        bearer = f"Bearer {await token_of(visitor)}"
        answer = await visitor.client.get(card, headers={"Authorization": bearer})
        squads = await visitor.get(f"/crexpro/api/v3/getIV4?key={key}")
        first = (await answer.json())[0]
        assert first["c"] in squads["t"].split("-")
        tab = await visitor.ask(f"/crexpro/cricket-live-score/any-match-updates-{key}/match-details")
        assert tab.status == 200
        assert "getSC4" not in await tab.text()

    @pytest.mark.parametrize("body", [{}, {"api_key": "guessed"}, [], None])
    @visiting(programme="members:1")
    async def test_need_a_valid_credential(self, visitor: Visitor, body: object) -> None:
        assert await visitor.post(SERVICE, body, status=401) == {"error": "unknown credential"}

    @visiting(programme="members:1")
    async def test_end(self, visitor: Visitor) -> None:
        key, bearer = await key_of(visitor), f"Bearer {await token_of(visitor)}"
        visitor.wall.now += LIFETIME_SECONDS - 1
        assert await live(visitor, key, bearer) == 200
        visitor.wall.now += 2
        assert await live(visitor, key, bearer) == 401

    @visiting(programme="members:1")
    async def test_can_be_short_and_can_be_revoked(self, visitor: Visitor) -> None:
        key = await key_of(visitor)
        assert (await visitor.post("/control/tokens", {"seconds": 3}))["seconds"] == 3
        answer = await visitor.post(SERVICE, {"api_key": CREDENTIAL})
        assert answer["expires_in"] == 3
        visitor.wall.now += 1
        assert await live(visitor, key, f"Bearer {answer['token']}") == 200
        await visitor.post("/control/tokens", {"revoke": True})
        assert await live(visitor, key, f"Bearer {answer['token']}") == 401
        assert await live(visitor, key, f"Bearer {await token_of(visitor)}") == 200
        await visitor.post("/control/reset", {})
        assert (await visitor.post(SERVICE, {"api_key": CREDENTIAL}))["expires_in"] == LIFETIME_SECONDS

    @pytest.mark.parametrize("body", [{}, {"colour": "red"}, {"seconds": "long"}])
    @visiting(programme="members:1")
    async def test_invalid_options_are_refused(self, visitor: Visitor, body: dict[str, Any]) -> None:
        assert "error" in await visitor.post("/control/tokens", body, status=400)

    @pytest.mark.parametrize("forged", ["Bearer x", "Bearer e30.e30.x", "Bearer ..", "Basic e30.e30.", "Bearer"])
    @visiting(programme="members:1")
    async def test_forged_tokens_are_refused(self, visitor: Visitor, forged: str) -> None:
        assert await live(visitor, await key_of(visitor), forged) == 401

    @visiting(programme="members:1")
    async def test_the_token_service_can_fail(self, visitor: Visitor) -> None:
        fault = {"site": "crexpro", "target": "token", "kind": "status", "value": 503}
        await visitor.post("/control/faults", fault, status=201)
        assert (await visitor.client.post(SERVICE, json={"api_key": CREDENTIAL})).status == 503
        assert await live(visitor, await key_of(visitor)) == 401  # all else goes on


class TestPublic:
    @visiting(programme="members:1")
    async def test_score_without_players_and_balls(self, visitor: Visitor) -> None:
        key = await key_of(visitor)
        public = await visitor.get(f"/crexpro/api/v3/public/getSV3?key={key}")
        bearer = {"Authorization": f"Bearer {await token_of(visitor)}"}
        whole = await (await visitor.client.get(f"/crexpro/api/v3/getSV3?key={key}", headers=bearer)).json()
        assert public.items() < whole.items()
        assert {"a", "j", "k", "B"} <= public.keys()
        assert not {"p", "b", "rb", "m"} & public.keys()

    @visiting(programme="members:1")
    async def test_pages_are_open_and_have_public_data_only(self, visitor: Visitor) -> None:
        shown = await visitor.first("crexpro")
        html = await (await visitor.ask(URL(shown["url"]).path)).text()
        assert "getBallFeeds" not in html
        assert 'src="/crexpro/assets/app.js"' in html
        assert "/crex/" not in html
        assert 'name="cx-t"' not in html
        listed = await (await visitor.ask("/crexpro/cricket-live-score")).text()
        assert f"-match-updates-{shown['key']}" in listed
        assert shown["key"] in await visitor.get("/crexpro/api/v3/getLiveMatches")
        assert "/crex/" not in await (await visitor.ask("/crexpro/assets/app.js")).text()
        assert (await visitor.ask("/crexpro/assets/nothing.js")).status == 404
        assert (await visitor.ask("/crexpro/cricket-live-score/x-match-updates-ZZZZ")).status == 404

    @visiting(programme="members:1")
    async def test_pages_can_contain_a_token(self, visitor: Visitor) -> None:
        key = await key_of(visitor)
        await visitor.post("/control/tokens", {"in_pages": True})
        html = await (await visitor.ask("/crexpro/")).text()
        token = html.partition('name="cx-t" content="')[2].partition('"')[0]
        assert await live(visitor, key, f"Bearer {token}") == 200


@visiting(programme="members:3")
async def test_its_matches_are_not_at_other_sites(visitor: Visitor) -> None:
    shown = await visitor.get("/truth/matches")
    assert {match["site"] for match in shown} == {"crexpro"}
    assert await visitor.get(f"/truth/matches/crexpro/{shown[0]['key']}")
    assert (await visitor.ask(f"/truth/matches/crex/{shown[0]['key']}")).status == 404
    assert (await visitor.ask(f"/crex/cricket-live-score/x-match-updates-{shown[0]['key']}")).status == 404
