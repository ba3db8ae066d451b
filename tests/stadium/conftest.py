"""A stadium with a test clock, and a client that behaves like a browser."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from aiohttp import ClientResponse, CookieJar, web
from aiohttp.test_utils import TestClient, TestServer

from stadium.access import fnv1a
from stadium.config import StadiumConfig
from stadium.context import STADIUM
from stadium.matches.simulation import Simulation
from stadium.server import build_app

T = TypeVar("T")
START = 1_800_000_000.0
SCRIPT_COOKIES = {"crex": "cxjs", "sofascore": "sfclr"}


class Wall:
    """A test clock for wall time."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Visitor:
    def __init__(self, client: TestClient[Any, Any], wall: Wall, simulation: Simulation) -> None:
        self.client, self.wall, self.simulation = client, wall, simulation

    async def enter(self, site: str, path: str | None = None) -> str:
        """Loads a page, sets the cookie that its script would set, and returns the page."""
        response = await self.client.get(path or f"/{site}/")
        html = await response.text()
        found = re.search(r'<meta name="(?:cx|sf)-n" content="([^"]+)">', html)
        assert found, html[:300]
        name = SCRIPT_COOKIES[site]
        self.client.session.cookie_jar.update_cookies(
            {name: f"{found[1]}.{fnv1a(found[1])}"}, self.client.make_url(f"/{site}/")
        )
        return html

    async def get(self, path: str) -> Any:
        response = await self.client.get(path)
        assert response.status == 200, (response.status, await response.text())
        return await response.json()

    async def post(self, path: str, body: object, status: int = 200) -> Any:
        response = await self.client.post(path, json=body)
        assert response.status == status, (response.status, await response.text())
        return await response.json()

    async def ask(self, path: str) -> ClientResponse:
        return await self.client.get(path)

    async def feed(self, key: str, before: int | str = "") -> Any:
        body = {"matchKey": key, "lastDocId": before, "filters": [], "lang": "en"}
        return await self.post("/crex/commentary/v2/getBallFeeds", body)

    async def whole_feed(self, key: str) -> list[dict[str, Any]]:
        """All pages, oldest first."""
        items: list[dict[str, Any]] = []
        page = await self.feed(key)
        while page:
            items += page
            page = await self.feed(key, page[-1]["id"])
        return items[::-1]

    async def first(self, site: str, status: str = "live") -> dict[str, Any]:
        """Returns the first match with this status in the ground truth."""
        matches = await self.get("/truth/matches")
        return next(match for match in matches if (match["site"], match["status"]) == (site, status))


Scenario = Callable[..., Awaitable[T]]  # of a visitor
Visit = Callable[..., Any]


@pytest.fixture
def visit() -> Visit:
    """Runs a scenario against a stadium: `visit(scenario, programme="demo", pace=10)`."""

    def run(scenario: Scenario[T], **settings: Any) -> T:
        return asyncio.run(_visit(scenario, StadiumConfig(**settings)))

    return run


def visiting(**settings: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Runs a coroutine test whose argument `visitor` visits a stadium: `@visiting(programme="demo", pace=10)`."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            asyncio.run(_visit(functools.partial(test, *args, **fixtures), StadiumConfig(**settings)))

        signature = inspect.signature(test)
        fixtures = [one for one in signature.parameters.values() if one.name != "visitor"]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


async def _visit(scenario: Scenario[T], config: StadiumConfig) -> T:
    wall = Wall()
    app: web.Application = build_app(config, Simulation(config, wall))
    server = TestServer(app)
    async with TestClient(server, cookie_jar=CookieJar(unsafe=True)) as client:
        return await scenario(visitor=Visitor(client, wall, app[STADIUM].simulation))
