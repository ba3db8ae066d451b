from __future__ import annotations

import pytest

from .conftest import Visitor, visiting

GATED = {
    "crex": "/crex/api/v3/getSV3?key=138Z",
    "sofascore": "/sofascore/api/v1/event/15010285",
}
REFUSALS = {"crex": {"error": "Forbidden"}, "sofascore": {"error": {"code": 403, "reason": "challenge"}}}


@pytest.mark.parametrize("site", GATED)
class TestSessionCheck:
    @visiting()
    async def test_refuses_requests_without_cookies(self, visitor: Visitor, site: str) -> None:
        response = await visitor.ask(GATED[site])
        assert (response.status, await response.json()) == (403, REFUSALS[site])

    @visiting()
    async def test_refuses_clients_that_did_not_run_the_script(self, visitor: Visitor, site: str) -> None:
        response = await visitor.ask(f"/{site}/")
        assert "HttpOnly" in response.headers["Set-Cookie"]
        assert (await visitor.ask(GATED[site])).status == 403

    @visiting(session_seconds=60)
    async def test_allows_a_browser_until_its_session_expires(self, visitor: Visitor, site: str) -> None:
        await visitor.enter(site)
        assert (await visitor.ask(GATED[site])).status == 200
        visitor.wall.now += 59
        assert (await visitor.ask(GATED[site])).status == 200
        visitor.wall.now += 2
        assert (await visitor.ask(GATED[site])).status == 403
        await visitor.enter(site)
        assert (await visitor.ask(GATED[site])).status == 200

    @visiting()
    async def test_sessions_can_be_revoked_and_shortened(self, visitor: Visitor, site: str) -> None:
        await visitor.enter(site)
        visitor.wall.now += 1
        await visitor.post("/control/sessions", {"revoke": True})
        assert (await visitor.ask(GATED[site])).status == 403
        await visitor.enter(site)
        assert (await visitor.ask(GATED[site])).status == 200
        visitor.wall.now += 5
        await visitor.post("/control/sessions", {"seconds": 4})
        assert (await visitor.ask(GATED[site])).status == 403

    @visiting()
    async def test_refuses_forged_cookies(self, visitor: Visitor, site: str) -> None:
        await visitor.enter(site)
        jar = visitor.client.session.cookie_jar
        names = [cookie.key for cookie in jar]
        for name in names:
            good = next(cookie.value for cookie in jar if cookie.key == name)
            jar.update_cookies({name: "1800000000000.0123456789abcdef.00"}, visitor.client.make_url(f"/{site}/"))
            assert (await visitor.ask(GATED[site])).status == 403
            jar.update_cookies({name: good}, visitor.client.make_url(f"/{site}/"))
        assert (await visitor.ask(GATED[site])).status == 200
