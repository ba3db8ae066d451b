"""Requests inside an open page: they are Chromium's own, and have the limits of direct ones."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web

from scraping.browser.egress.forward_proxy import TrafficLimits
from scraping.browser.request_page import RequestPage
from scraping.browser.session import Session
from scraping.browser.sessions import Sessions
from scraping.errors import EgressRefused, PageCrashed, ReadTimeout, RobotsRefused, ScrapingError, Transient
from scraping.reading.access import Robots
from scraping.readings import Document, Reading, ReadMode, Request
from tests.scraping.browser.local_servers import LIVE, LocalSite, Worker

pytestmark = [pytest.mark.slow, pytest.mark.fault]

MANY = 50


@pytest.fixture
def sessions(browser_worker: Worker) -> Sessions:
    return browser_worker.sessions()


@pytest.fixture
def session(browser_worker: Worker, sessions: Sessions, local_site: LocalSite) -> Session:
    return browser_worker.run(sessions.get(local_site.as_source()))


@pytest.fixture
def foreign_site() -> Iterator[LocalSite]:
    site = LocalSite()
    yield site
    site.close()


def requested(site: LocalSite, path: str, **fields: Any) -> Request:
    return Request("live", f"{site.url}{path}", **fields)


async def read(session: Session, site: LocalSite, *requests: Request) -> Reading:
    return await session.request(site.match, requests or (site.request,), mode=ReadMode.IN_PAGE)


async def document(session: Session, site: LocalSite, path: str = "/api/live.json", **fields: Any) -> Document:
    return (await read(session, site, requested(site, path, **fields))).documents["live"]


class TestRequests:
    def test_are_those_of_the_browser(self, browser_worker: Worker, session: Session, local_site: LocalSite) -> None:
        own = {"x-own": "1", "sec-fetch-site": "none", "user-agent": "forged"}
        reading = browser_worker.run(read(session, local_site, requested(local_site, "/api/live.json", headers=own)))
        assert (reading.mode, reading.documents["live"].json()) == (ReadMode.IN_PAGE, {"score": "92/1"})
        sent = local_site.last("/api/live.json").headers
        assert sent["x-own"] == "1"
        assert (sent["sec-fetch-site"], sent["sec-fetch-mode"], sent["sec-fetch-dest"]) == (
            *("same-origin", "cors", "empty"),
        )
        assert "Chrome/" in sent["user-agent"]
        assert "br" in sent["accept-encoding"]

    def test_load_nothing_else_of_the_source(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        for _ in range(2):
            browser_worker.run(read(session, local_site))
        assert local_site.paths() == ["/api/live.json"] * 2
        assert session.page_count == 1
        assert not session.has_attached_pages

    def test_have_the_cookies_of_a_visit(self, browser_worker: Worker, session: Session, local_site: LocalSite) -> None:
        cookie = {"set-cookie": "sid=7; HttpOnly; Path=/"}
        local_site.answers["/match"] = lambda _: web.Response(
            text="<script src=/app.js></script>", content_type="text/html", headers=cookie
        )

        async def visit_and_read() -> None:
            await session.visit(local_site.match, (LIVE,))
            await read(session, local_site)

        browser_worker.run(visit_and_read())
        assert local_site.last("/api/live.json").headers["cookie"] == "sid=7"

    def test_can_have_a_body(self, browser_worker: Worker, session: Session, local_site: LocalSite) -> None:
        async def echo(request: web.Request) -> web.Response:
            return web.Response(body=await request.read(), content_type="application/json")

        local_site.answers["/echo"] = echo
        body = '{"key": "é"}'.encode()
        found = browser_worker.run(
            document(session, local_site, "/echo", method="POST", body=body, headers={"content-type": "text/plain"})
        )
        assert found.body == body

    def test_of_many_matches_are_answered_as_they_arrive(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        all_asked = asyncio.Event()

        async def slow(_: web.Request) -> web.Response:
            await all_asked.wait()
            return web.json_response({"score": "slow"})

        def echo(request: web.Request) -> web.Response:
            if local_site.paths().count("/echo") == MANY:
                all_asked.set()
            return web.json_response({"n": request.query["n"]})

        local_site.answers["/slow"] = slow
        local_site.answers["/echo"] = echo
        order: list[str] = []

        async def one(path: str) -> str:
            request = requested(local_site, path)
            found = await session.request(local_site.match, (request,), mode=ReadMode.IN_PAGE, timeout_factor=10)
            order.append(path)
            return str(found.documents["live"].json().get("n"))

        async def all_of_them() -> list[str]:
            return await asyncio.gather(one("/slow"), *(one(f"/echo?n={n}") for n in range(MANY)))

        found = browser_worker.run(all_of_them())
        assert found[1:] == [str(n) for n in range(MANY)]
        assert order.index("/slow") > MANY / 2

    def test_errors_of_the_source_are_documents(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        local_site.answers["/no"] = lambda _: web.Response(status=429, headers={"retry-after": "7"}, text="slowly")
        found = browser_worker.run(document(session, local_site, "/no"))
        assert (found.status, found.retry_after_seconds, found.text()) == (429, 7.0, "slowly")

    def test_of_robots_txt_replace_refused_direct_ones(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        def robots(request: web.Request) -> web.Response:
            is_browser = "sec-fetch-mode" in request.headers
            return web.Response(text="User-agent: *\nDisallow: /private") if is_browser else web.Response(status=403)

        local_site.answers["/robots.txt"] = robots
        site, checks = session.site, Robots()
        browser_worker.run(checks.check(session, site, f"{local_site.url}/public"))
        with pytest.raises(RobotsRefused):
            browser_worker.run(checks.check(session, site, f"{local_site.url}/private"))
        assert local_site.paths() == ["/robots.txt"] * 2

    def test_of_robots_txt_stay_direct_where_that_is_set(
        self, browser_worker: Worker, sessions: Sessions, local_site: LocalSite
    ) -> None:
        local_site.answers["/robots.txt"] = lambda _: web.Response(status=403)
        site = local_site.as_source(read_way="direct")
        session = browser_worker.run(sessions.get(site))
        browser_worker.run(Robots().check(session, site, f"{local_site.url}/public"))
        assert local_site.paths() == ["/robots.txt"]
        assert not session.page_count


class TestLimits:
    def failure(self, worker: Worker, session: Session, site: LocalSite, path: str) -> ScrapingError:
        with pytest.raises(ScrapingError) as caught:
            worker.run(document(session, site, path))
        # The page is as good as before.
        assert worker.run(document(session, site)).status == 200
        return caught.value

    def test_of_size(self, browser_worker: Worker, session: Session, local_site: LocalSite) -> None:
        local_site.answers["/large"] = lambda _: web.Response(body=b"x" * 300_000)
        error = self.failure(browser_worker, session, local_site, "/large")
        assert (type(error), error.http_status) == (Transient, 200)
        assert "larger than 200000 bytes" in str(error)

    def test_of_size_after_decompression(self, browser_worker: Worker, session: Session, local_site: LocalSite) -> None:
        bomb = gzip.compress(b"x" * 50_000_000)
        local_site.answers["/bomb"] = lambda _: web.Response(body=bomb, headers={"content-encoding": "gzip"})
        assert "larger than" in str(self.failure(browser_worker, session, local_site, "/bomb"))

    @pytest.mark.parametrize("path", ["/head", "/body"])
    def test_of_time(self, browser_worker: Worker, session: Session, local_site: LocalSite, path: str) -> None:
        async def slowly(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            if path == "/body":
                await response.prepare(request)
                await response.write(b"{")
            await asyncio.sleep(4)
            return response

        local_site.answers[path] = slowly
        assert isinstance(self.failure(browser_worker, session, local_site, path), ReadTimeout)

    def test_of_the_forward_proxy_do_not_grow_by_a_stated_length(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        async def state_length(request: web.Request) -> web.Response:
            assert request.transport is not None
            request.transport.write(b"HTTP/1.1 204 No Content\r\nContent-Length: 999999999999\r\n\r\n")  # type: ignore[attr-defined]
            await asyncio.sleep(0.2)
            return web.Response(status=204)

        local_site.answers["/none"] = state_length
        reading = browser_worker.run(read(session, local_site, requested(local_site, "/none")))
        assert reading.documents["live"].status == 204
        assert reading.bytes_in <= 200_000
        assert session.forward_proxy.traffic.requested <= 200_000

    def test_of_content(self, browser_worker: Worker, session: Session, local_site: LocalSite) -> None:
        local_site.answers["/empty"] = lambda _: web.Response()
        assert "empty body" in str(self.failure(browser_worker, session, local_site, "/empty"))

    def test_hosts_outside_the_list_are_not_requested(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        with pytest.raises(EgressRefused):
            browser_worker.run(read(session, local_site, Request("live", "http://elsewhere.test/live")))
        assert not session.page_count

    def test_a_redirect_to_a_foreign_host_is_refused(
        self, browser_worker: Worker, session: Session, local_site: LocalSite, foreign_site: LocalSite
    ) -> None:
        there = f"http://localhost:{foreign_site.port}/api/live.json"
        local_site.answers["/away"] = lambda _: web.Response(status=302, headers={"location": there})
        error = self.failure(browser_worker, session, local_site, "/away")
        assert isinstance(error, EgressRefused)
        assert "/away leads elsewhere: localhost is not a host of" in str(error)
        assert not foreign_site.seen

    def test_of_the_forward_proxy_are_not_used_up_by_many_responses(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        limits = TrafficLimits(connection_bytes=200_000, connection_bytes_a_second=0, minute_bytes=300_000)
        session.forward_proxy.limits = limits
        local_site.answers["/list"] = lambda _: web.Response(body=b"x" * 50_000)

        async def read_many() -> None:
            for _ in range(20):  # one after the other, over one connection
                assert (await document(session, local_site, "/list")).status == 200

        browser_worker.run(read_many())
        assert session.forward_proxy.traffic.bytes > 1_000_000

    def test_a_redirect_within_the_source_is_followed(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        local_site.answers["/moved"] = lambda _: web.Response(status=302, headers={"location": "/api/live.json"})
        assert browser_worker.run(document(session, local_site, "/moved")).json() == {"score": "92/1"}

    def test_a_connection_that_is_cut_is_an_error_of_the_network(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        def cut(request: web.Request) -> web.Response:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        local_site.answers["/cut"] = cut
        assert type(self.failure(browser_worker, session, local_site, "/cut")) is Transient


class TestLoss:
    def test_of_a_response_to_a_bug_ends_the_wait_for_it(
        self, browser_worker: Worker, session: Session, local_site: LocalSite, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def wait() -> None:
            with monkeypatch.context() as patched:
                patched.setattr(RequestPage, "_document", Mock(side_effect=OverflowError))
                with pytest.raises(OverflowError):
                    await asyncio.wait_for(read(session, local_site), 5)
            assert (await document(session, local_site)).status == 200

        browser_worker.run(wait())

    def test_of_the_page_fails_the_requests_under_way_and_the_next_one_opens_another(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        async def never(_: web.Request) -> web.Response:
            await asyncio.sleep(4)
            return web.Response()

        local_site.answers["/never"] = never

        async def crash() -> None:
            await read(session, local_site)
            pending = asyncio.ensure_future(document(session, local_site, "/never"))
            await asyncio.sleep(0.2)
            page = session.request_page.page
            assert page is not None
            with contextlib.suppress(Exception):
                await asyncio.wait_for(page.goto("chrome://crash"), 5)
            with pytest.raises(PageCrashed):
                await pending
            assert (await document(session, local_site)).status == 200
            assert session.page_count == 1

        browser_worker.run(crash())

    def test_of_the_script_is_no_fault_of_the_source(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        async def reload() -> None:
            await read(session, local_site)
            page = session.request_page.page
            assert page is not None
            await page.goto("about:blank")
            with pytest.raises(PageCrashed):
                await read(session, local_site)
            assert (await document(session, local_site)).status == 200

        browser_worker.run(reload())

    def test_while_nothing_is_requested_opens_another(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        async def lose() -> None:
            await read(session, local_site)
            page = session.request_page.page
            assert page is not None
            await page.close()
            assert (await document(session, local_site)).status == 200
            assert session.page_count == 1

        browser_worker.run(lose())

    def test_of_the_context_after_a_visit_that_timed_out_moves_the_page(
        self, browser_worker: Worker, session: Session, local_site: LocalSite
    ) -> None:
        async def retire() -> None:
            await read(session, local_site)
            first = session.request_page.page
            assert first is not None
            session.retire_context(first)
            await read(session, local_site)
            assert session.request_page.page is not first
            assert session.page_count == 1
            assert len(session._pages_in) == 1

        browser_worker.run(retire())

    def test_of_the_session_fails_requests_and_opens_nothing(
        self, browser_worker: Worker, sessions: Sessions, session: Session, local_site: LocalSite
    ) -> None:
        browser_worker.run(read(session, local_site))
        browser_worker.run(sessions.close_all())
        with pytest.raises(PageCrashed, match="closed"):
            browser_worker.run(read(session, local_site))
        assert not session.page_count
        assert not session.is_open
