"""Interception, blocking and traffic of pages in Chromium, against a small site."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from aiohttp import web

from scraping.browser.blocking import is_blocked, is_blocked_host
from scraping.browser.sessions import Sessions
from scraping.browser.visit import Interception, fetch_metadata
from scraping.errors import Transient
from scraping.readings import Endpoint, Reading, Site
from tests.scraping.browser.local_servers import LIVE, LocalSite, Worker

SITE = Site("s", "https://www.scores.example", api_hosts=("api.scores.example", "www.youtube.com"))


@pytest.mark.requirement("FS-3")
class TestIsBlocked:
    @pytest.mark.parametrize("kind", ["image", "media", "font", "stylesheet"])
    def test_blocks_media_and_styles(self, kind: str) -> None:
        assert is_blocked(kind, "https://www.scores.example/x", SITE)

    @pytest.mark.parametrize(
        ("kind", "url"),
        [
            ("script", "https://www.googletagmanager.com/gtm.js"),
            ("xhr", "https://stats.g.doubleclick.net/collect"),
            ("fetch", "https://www.google-analytics.com/g/collect?v=2"),
            ("fetch", "https://a.tile.openstreetmap.org/5/3/1.png"),
            ("fetch", "https://maps.googleapis.com/maps/api/js"),
            ("fetch", "https://www.scores.example/video/part1.m4s?token=1"),
            ("xhr", "https://www.scores.example/tiles/5/16/11"),
            ("document", "https://player.vimeo.com/video/1"),
        ],
    )
    def test_trackers_maps_and_videos(self, kind: str, url: str) -> None:
        assert is_blocked(kind, url, SITE)

    @pytest.mark.parametrize(
        ("kind", "url"),
        [
            ("document", "https://www.scores.example/match/1"),
            ("script", "https://www.scores.example/app.js"),
            ("fetch", "https://api.scores.example/v1/live?image=x.png"),
            ("script", "https://www.youtube.com/needed.js"),  # one of the source's own hosts
            ("script", "https://notdoubleclick.net/x.js"),
            ("script", "https://cdn.elsewhere.example/react.js"),  # left to the forward proxy
        ],
    )
    def test_allows_everything_else(self, kind: str, url: str) -> None:
        assert not is_blocked(kind, url, SITE)

    def test_own_hosts_only_blocks_all_others(self) -> None:
        assert is_blocked("script", "https://cdn.elsewhere.example/react.js", SITE, own_hosts_only=True)
        assert not is_blocked("script", "https://api.scores.example/a.js", SITE, own_hosts_only=True)

    @pytest.mark.parametrize(
        ("host", "known"),
        [("doubleclick.net", True), ("AD.doubleclick.NET.", True), ("doubleclick.net.example", False), ("net", False)],
    )
    def test_a_blocked_host_includes_its_subdomains(self, host: str, known: bool) -> None:
        assert is_blocked_host(host) is known


@pytest.mark.requirement("FS-6")
@pytest.mark.parametrize(
    ("url", "page", "site"),
    [
        ("https://www.a.example/x", "https://www.a.example/", "same-origin"),
        ("https://api.a.example/x", "https://www.a.example/", "same-site"),
        ("https://api.a.co.uk/x", "https://www.a.co.uk/", "same-site"),
        ("https://b.co.uk/x", "https://www.a.co.uk/", "cross-site"),
        ("https://b.example/x", "https://www.a.example/", "cross-site"),
        ("http://api.a.example/x", "http://www.a.example/", None),
    ],
)
def test_fetch_metadata_is_that_of_the_page(url: str, page: str, site: str | None) -> None:
    assert fetch_metadata(url, page).get("sec-fetch-site") == site


@pytest.mark.requirement("FS-7")
@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://www.scores.example/api/live.json", {"live"}),
        ("https://API.scores.example/api/live.json?key=1", {"live"}),
        ("https://api.scores.example/other?next=/api/live.json", set()),
        ("https://evil.example/api/live.json", set()),
        ("https://api.scores.example.evil.example/api/live.json", set()),
        ("https://api.scores.example@evil.example/api/live.json", set()),
    ],
)
def test_the_whitelist_has_hosts_and_paths(url: str, kept: set[str]) -> None:
    """Called as by the page: in a browser the forward proxy would already stop another host."""
    asked = SimpleNamespace(method="GET", headers={}, post_data_buffer=None)
    response = SimpleNamespace(url=url, status=200, headers={"content-type": "application/json"}, request=asked)

    async def see() -> set[str]:
        interception = Interception((LIVE,), SITE, max_body_bytes=1000)
        interception.on_response(response)
        found = set(interception._found)
        interception.close()
        return found

    assert asyncio.run(see()) == kept


def script(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/javascript")


@pytest.mark.slow
@pytest.mark.requirement("FS-7")
class TestInterception:
    @pytest.fixture
    def sessions(self, browser_worker: Worker) -> Sessions:
        return browser_worker.sessions()

    def read(self, worker: Worker, sessions: Sessions, site: LocalSite, *endpoints: Endpoint) -> Reading:
        async def visit() -> Reading:
            session = await sessions.get(site.as_source(), is_visit=True)
            return await session.visit(site.match, endpoints or (LIVE,))

        return worker.run(visit())

    def test_keeps_the_pages_requests_and_responses(
        self, browser_worker: Worker, sessions: Sessions, local_site: LocalSite
    ) -> None:
        local_site.answers["/app.js"] = lambda _: script(
            "fetch('/api/live.json', {method: 'POST', body: 'a=1', headers: {'x-own': 'yes'}})"
        )
        reading = self.read(browser_worker, sessions, local_site, replace(LIVE, method="POST"))
        asked = reading.requests["live"]
        assert (asked.method, asked.body, reading.documents["live"].json()) == ("POST", b"a=1", {"score": "92/1"})
        sent = local_site.last("/api/live.json").headers
        wanted = {"x-own", "user-agent", "accept-language", "sec-ch-ua", "sec-ch-ua-platform", "sec-ch-ua-mobile"}
        wanted |= {"referer", "origin", "accept", "content-type", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"}
        assert {name: asked.headers.get(name) for name in wanted} == {name: sent[name] for name in wanted}
        assert not asked.headers.keys() & {"cookie", "host", "connection", "accept-encoding", "proxy-authorization"}

    @pytest.mark.parametrize(
        ("kind", "method"),
        [
            pytest.param("text/html", "GET", id="another kind of content"),
            pytest.param("application/json", "POST", id="another method"),
        ],
    )
    def test_keeps_no_other_responses(
        self, browser_worker: Worker, sessions: Sessions, local_site: LocalSite, kind: str, method: str
    ) -> None:
        local_site.answers["/api/live.json"] = lambda _: web.Response(text="{}", content_type=kind)
        local_site.answers["/app.js"] = lambda _: script(f"fetch('/api/live.json', {{method: '{method}'}})")
        reading = self.read(browser_worker, sessions, local_site, replace(LIVE, is_required=False))
        assert "/api/live.json" in local_site.paths()
        assert set(reading.documents) == {"page"}

    @pytest.mark.faults_only
    def test_ignores_other_paths_that_contain_the_pattern(
        self, browser_worker: Worker, sessions: Sessions, local_site: LocalSite
    ) -> None:
        local_site.answers["/elsewhere"] = lambda _: web.json_response({"score": "fake"})
        local_site.answers["/app.js"] = lambda _: script("fetch('/elsewhere#/api/live.json')")
        loose = Endpoint("live", re.compile(r"/api/live\.json"), is_required=False)
        assert set(self.read(browser_worker, sessions, local_site, loose).documents) == {"page"}

    def test_keeps_the_content_types_of_the_endpoint(
        self, browser_worker: Worker, sessions: Sessions, local_site: LocalSite
    ) -> None:
        local_site.answers["/api/live.json"] = lambda _: web.Response(text="a^b", content_type="text/plain")
        reading = self.read(browser_worker, sessions, local_site, replace(LIVE, content_types=("text/plain",)))
        assert reading.documents["live"].text() == "a^b"

    def test_keeps_errors_of_any_content_type(
        self, browser_worker: Worker, sessions: Sessions, local_site: LocalSite
    ) -> None:
        local_site.answers["/api/live.json"] = lambda _: web.Response(status=403, text="no", content_type="text/html")
        assert self.read(browser_worker, sessions, local_site).documents["live"].status == 403

    @pytest.mark.faults_only
    def test_keeps_the_last_good_response(
        self, browser_worker: Worker, sessions: Sessions, local_site: LocalSite
    ) -> None:
        numbers = iter(range(1, 10))

        def answer(_: web.Request) -> web.Response:
            number = next(numbers)
            return web.json_response({"number": number}, status=500 if number == 3 else 200)

        local_site.answers["/api/live.json"] = answer
        local_site.answers["/app.js"] = lambda _: script(
            "(async () => { for (let n = 0; n < 3; n++) await fetch('/api/live.json');"
            " await fetch('/api/last.json'); })()"
        )
        local_site.answers["/api/last.json"] = lambda _: web.json_response({})
        last = Endpoint("last", re.compile(r"^/api/last\.json$"))
        reading = self.read(browser_worker, sessions, local_site, LIVE, last)
        assert reading.documents["live"].json() == {"number": 2}

    @pytest.mark.faults_only
    def test_discards_bodies_above_the_limit(
        self, browser_worker: Worker, sessions: Sessions, local_site: LocalSite
    ) -> None:
        large = b'"' + b"x" * 250_000 + b'"'
        local_site.answers["/api/live.json"] = lambda _: web.Response(body=large, content_type="application/json")
        assert set(self.read(browser_worker, sessions, local_site).documents) == {"page"}
        local_site.answers["/match"] = lambda _: web.Response(body=large, content_type="text/html")
        with pytest.raises(Transient, match="larger"):
            self.read(browser_worker, sessions, local_site)


@pytest.mark.slow
@pytest.mark.requirement("FS-3")
class TestPageTraffic:
    def test_is_counted_by_page_while_visits_overlap(self, browser_worker: Worker, local_site: LocalSite) -> None:
        sessions, source = browser_worker.sessions(), local_site.as_source()
        other = replace(local_site.match, url=f"{local_site.url}/other")
        page = "<img src=/1.png><img src=/2.png><script src=/app.js></script>" + "x" * 5000
        local_site.answers["/other"] = lambda _: web.Response(text=page, content_type="text/html")

        async def both() -> list[Reading]:
            session = await sessions.get(source, is_visit=True)
            return await asyncio.gather(session.visit(local_site.match, (LIVE,)), session.visit(other, (LIVE,)))

        for reading, images, size in zip(browser_worker.run(both()), (1, 2), (299, 5200), strict=True):
            assert reading.requests_by_type == {"document": 1, "script": 1, "fetch": 1}
            assert reading.blocked_by_type == ({"image": 1, "stylesheet": 1} if images == 1 else {"image": 2})
            assert (reading.requests_made, reading.requests_blocked) == (3, 2)
            assert size * 0.9 < reading.bytes_in < size * 1.1
        assert not [path for path in local_site.paths() if path.endswith((".png", ".css"))]

    def test_a_response_without_a_length_is_measured(self, browser_worker: Worker, local_site: LocalSite) -> None:
        def streamed(request: web.Request) -> web.Response:
            answer = web.Response(text="x" * 20_000, content_type="text/html")
            answer.enable_chunked_encoding()
            return answer

        local_site.answers["/match"] = streamed
        sessions = browser_worker.sessions()

        async def visit() -> Reading:
            session = await sessions.get(local_site.as_source(), is_visit=True)
            return await session.visit(local_site.match, ())

        assert 20_000 <= browser_worker.run(visit()).bytes_in < 21_000
