"""robots.txt, read from real servers by the direct client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from aiohttp import web

from scraping.browser.direct_client import DirectClient
from scraping.errors import Blocked, EgressRefused, ErrorClass, RobotsRefused, Transient
from scraping.policies.retry import Failure, Retry, RetryPolicy, decide
from scraping.reading.access import KEPT_SECONDS, RETRY_SECONDS, STALE_SECONDS, Robots
from scraping.readings import Site
from tests.scraping.browser.hostile import Handler, Seen, drip, raw_server, redirect, text, web_server
from tests.scraping.browser.loops import on_a_loop

RULES = "User-agent: *\nDisallow: /private\nAllow: /private/shown\nCrawl-delay: 7\n\nUser-agent: Other\nDisallow: /\n"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def reading(server: Seen, policy: str = "obey") -> AsyncIterator[tuple[Robots, Site, DirectClient, Clock]]:
    clock = Clock()
    site = Site("s", server.url, allows_private=True, robots_policy=policy)
    client = DirectClient(site, max_body_bytes=8_000_000, user_agent="U", language="en")
    try:
        yield Robots(clock=clock), site, client, clock
    finally:
        await client.close()


def changing(*answers: tuple[int, str]) -> Handler:
    """Gives the responses in turn, the last one repeatedly."""
    left = list(answers)

    async def answer(_: web.BaseRequest) -> web.Response:
        status, body = left.pop(0) if len(left) > 1 else left[0]
        return web.Response(status=status, text=body)

    return answer


class TestObey:
    @on_a_loop
    async def test_forbidden_paths_are_not_read(self) -> None:
        async with web_server({"/robots.txt": text(RULES)}) as server, reading(server) as (robots, site, client, _):
            await robots.check(client, site, f"{server.url}/live", f"{server.url}/private/shown")
            with pytest.raises(RobotsRefused, match="forbids /private/x: nothing was sent") as refused:
                await robots.check(client, site, f"{server.url}/live", f"{server.url}/private/x?y=1")
            assert refused.value.retry_after_seconds == 3600
            assert server.paths == ["/robots.txt"]

    @on_a_loop
    async def test_it_is_fetched_once_an_hour(self) -> None:
        routes = {"/robots.txt": changing((200, RULES), (200, ""))}
        async with web_server(routes) as server, reading(server) as (robots, site, client, clock):
            urls = [f"{server.url}/{number}" for number in range(20)]
            await asyncio.gather(*(robots.check(client, site, url) for url in urls))
            clock.now += KEPT_SECONDS - 1
            with pytest.raises(RobotsRefused):
                await robots.check(client, site, f"{server.url}/private")
            assert len(server.requests) == 1
            clock.now += 2
            await robots.check(client, site, f"{server.url}/private")
            assert len(server.requests) == 2

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
    def test_a_missing_file_allows_everything(self, status: int) -> None:
        @on_a_loop
        async def check() -> None:
            routes = {"/robots.txt": changing((status, "no"))}
            async with web_server(routes) as server, reading(server) as (robots, site, client, _):
                await robots.check(client, site, f"{server.url}/private")
                await robots.check(client, site, f"{server.url}/private")
                assert len(server.requests) == 1

        check()

    @on_a_loop
    async def test_an_empty_file_allows_everything(self) -> None:
        async with web_server({"/robots.txt": text("")}) as server, reading(server) as (robots, site, client, _):
            await robots.check(client, site, f"{server.url}/private")

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_nothing_is_read_while_it_is_unavailable(self, status: int) -> None:
        @on_a_loop
        async def check() -> None:
            routes = {"/robots.txt": changing((status, ""), (200, RULES))}
            async with web_server(routes) as server, reading(server) as (robots, site, client, clock):
                for _ in range(3):  # and it is not requested with every poll
                    with pytest.raises(Transient, match=f"answered {status}"):
                        await robots.check(client, site, f"{server.url}/live")
                assert len(server.requests) == 1
                clock.now += RETRY_SECONDS
                await robots.check(client, site, f"{server.url}/live")
                assert len(server.requests) == 2

        check()

    @on_a_loop
    async def test_the_last_rules_are_used_while_it_is_unavailable(self) -> None:
        routes = {"/robots.txt": changing((200, RULES), (500, ""))}
        async with web_server(routes) as server, reading(server) as (robots, site, client, clock):
            await robots.check(client, site, f"{server.url}/live")
            clock.now += KEPT_SECONDS
            await robots.check(client, site, f"{server.url}/live")
            with pytest.raises(RobotsRefused):
                await robots.check(client, site, f"{server.url}/private")
            clock.now += STALE_SECONDS
            with pytest.raises(Transient):
                await robots.check(client, site, f"{server.url}/live")

    @on_a_loop
    async def test_an_unreachable_server_is_transient(self) -> None:
        async with raw_server(drip) as gone:
            pass
        async with reading(gone) as (robots, site, client, _):
            with pytest.raises(Transient):
                await robots.check(client, site, f"{gone.url}/live")

    @on_a_loop
    async def test_its_redirects_to_other_hosts_are_refused(self) -> None:
        async with web_server({"/robots.txt": text("")}, host="127.0.0.2") as other:
            routes = {"/robots.txt": redirect(f"{other.url}/robots.txt")}
            async with web_server(routes) as server, reading(server) as (robots, site, client, _):
                with pytest.raises(EgressRefused):
                    await robots.check(client, site, f"{server.url}/live")
            assert other.requests == []

    def test_a_crawl_delay_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        @on_a_loop
        async def check() -> None:
            async with web_server({"/robots.txt": text(RULES)}) as server, reading(server) as (robots, site, client, _):
                await robots.check(client, site, f"{server.url}/live")

        with caplog.at_level(logging.WARNING, logger="scraping.reading.access"):
            check()
        assert "7 s between two requests" in caplog.text


class TestOtherPolicies:
    def test_warn_reads_and_logs_once(self, caplog: pytest.LogCaptureFixture) -> None:
        @on_a_loop
        async def check() -> None:
            routes = {"/robots.txt": text("User-agent: *\nDisallow: /")}
            async with web_server(routes) as server, reading(server, "warn") as (robots, site, client, _):
                for number in range(3):
                    await robots.check(client, site, f"{server.url}/{number}")

        with caplog.at_level(logging.WARNING, logger="scraping.reading.access"):
            check()
        assert [record.getMessage() for record in caplog.records] == [
            "robots.txt of s forbids /0; it is read because of the source's robots policy"
        ]

    @on_a_loop
    async def test_warn_does_not_wait_for_it(self) -> None:
        routes = {"/robots.txt": changing((503, ""))}
        async with web_server(routes) as server, reading(server, "warn") as (robots, site, client, _):
            await robots.check(client, site, f"{server.url}/live")

    @on_a_loop
    async def test_ignore_does_not_fetch_it(self) -> None:
        routes = {"/robots.txt": text("User-agent: *\nDisallow: /")}
        async with web_server(routes) as server, reading(server, "ignore") as (robots, site, client, _):
            await robots.check(client, site, f"{server.url}/live")
            assert server.requests == []


def test_a_refused_read_is_retried_after_an_hour() -> None:
    error = RobotsRefused("no", retry_after_seconds=KEPT_SECONDS)
    assert isinstance(error, Blocked)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    failure = Failure(ErrorClass.BLOCKED, "no", 1, 0, error.retry_after_seconds)
    decision = decide(failure, RetryPolicy(5, 1, 16), now, Random(1))
    assert isinstance(decision, Retry)
    assert decision.at >= now + timedelta(hours=1)
