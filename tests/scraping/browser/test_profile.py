"""The profile of a session: the same in page scripts, request headers and direct reads."""

from __future__ import annotations

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from aiohttp import web

from scraping.browser.egress.upstream_proxies import ProxyPlan
from scraping.browser.profile import (
    COUNTRIES,
    VIEWPORTS,
    WEBGL_RENDERER,
    is_known_country,
    profile_for,
    user_agent_of,
)
from scraping.browser.sessions import Sessions
from tests.scraping.browser.local_servers import LIVE, LocalProxy, LocalSite, Worker

REPORT = """<!doctype html><title>who</title><script>
(async () => {
    const hints = await navigator.userAgentData.getHighEntropyValues(['fullVersionList', 'architecture']);
    const found = Intl.DateTimeFormat().resolvedOptions();
    const canvas = document.createElement('canvas').getContext('webgl');
    const info = canvas && canvas.getExtension('WEBGL_debug_renderer_info');
    const said = {
        userAgent: navigator.userAgent, webdriver: navigator.webdriver, languages: navigator.languages,
        language: navigator.language, platform: navigator.platform, plugins: navigator.plugins.length,
        brands: navigator.userAgentData.brands, mobile: navigator.userAgentData.mobile,
        hinted: navigator.userAgentData.platform, versions: hints.fullVersionList,
        timeZone: found.timeZone, locale: found.locale, chrome: typeof window.chrome,
        viewport: [innerWidth, innerHeight], screen: [screen.width, screen.height], scale: devicePixelRatio,
        renderer: info && canvas.getParameter(info.UNMASKED_RENDERER_WEBGL),
    };
    const form = {method: 'POST', body: JSON.stringify(said), headers: {'content-type': 'application/json'}};
    await fetch('/report', form);
    await fetch('/api/live.json?key=1');
})();
</script>"""


class TestCountries:
    @pytest.mark.requirement("FS-14")
    @pytest.mark.parametrize("code", sorted(COUNTRIES))
    def test_every_country_has_a_language_of_its_own_and_a_time_zone_that_exists(self, code: str) -> None:
        locale, timezone = COUNTRIES[code]
        assert locale.endswith(f"-{code.upper()}")
        assert ZoneInfo(timezone).key == timezone

    @pytest.mark.parametrize(("code", "known"), [("de", True), ("DE", True), ("uk", True), ("xx", False), ("", False)])
    def test_is_known_country(self, code: str, known: bool) -> None:
        assert is_known_country(code) is known

    @pytest.mark.requirement("FS-6")
    def test_the_user_agent_is_that_of_a_browser_with_a_window(self) -> None:
        assert user_agent_of("156.0.8078.79").endswith(" Chrome/156.0.0.0 Safari/537.36")
        assert "Headless" not in user_agent_of("156.0.8078.79")

    @pytest.mark.requirement("FS-14")
    @pytest.mark.parametrize(
        ("country", "locale", "zone"),
        [
            ("de", "de-DE", "Europe/Berlin"),
            ("UK", "en-GB", "Europe/London"),
            ("", "en-GB", "UTC"),
            ("xx", "en-GB", "UTC"),
        ],
    )
    def test_follows_the_proxys_country(self, country: str, locale: str, zone: str) -> None:
        profile = profile_for("s", version="156.0", country=country)
        assert (profile.locale, profile.timezone) == (locale, zone)

    def test_is_stable_for_a_session_and_differs_between_sessions(self) -> None:
        made = [profile_for(f"s{number}", version="156.0", country="de") for number in range(40)]
        assert made[0] == profile_for("s0", version="156.0", country="de")
        assert {(one.viewport["width"], one.viewport["height"]) for one in made} == set(VIEWPORTS)


def report_of(worker: Worker, sessions: Sessions, site: LocalSite) -> dict[str, Any]:
    """Returns what a page's script sees of its browser, and the headers of its request."""
    said: dict[str, Any] = {}

    def keep(request: web.Request) -> web.StreamResponse:
        said["headers"] = dict(request.headers)
        return web.Response(status=204)

    site.answers["/match"] = lambda _: web.Response(text=REPORT, content_type="text/html")
    site.answers["/report"] = keep
    bodies: list[bytes] = []

    async def visit() -> None:
        session = await sessions.get(site.as_source("who"), is_visit=True)
        page, _ = await session.open_page()
        page.on("request", lambda request: bodies.append(request.post_data_buffer or b""))
        async with page.expect_response("**/api/live.json?key=1"):
            await session.goto(page, site.match.url, 5)
        await session.close_page(page)
        await session.visit(site.match, (LIVE,))
        await session.request(site.match, (site.request,))

    worker.run(visit())
    said["page"] = json.loads(next(body for body in bodies if body))
    return said


def assert_agrees(said: dict[str, Any], site: LocalSite, *, version: str, locale: str, zone: str) -> None:
    page, headers = said["page"], {key.lower(): value for key, value in said["headers"].items()}
    major = version.partition(".")[0]
    assert page["userAgent"] == headers["user-agent"] == user_agent_of(version)
    assert not page["webdriver"]
    assert page["platform"].startswith("Linux")
    assert (page["hinted"], page["mobile"]) == ("Linux", False)
    assert {"brand": "Chromium", "version": major} in page["brands"]
    assert f'"Chromium";v="{major}"' in headers["sec-ch-ua"]
    assert {"brand": "Chromium", "version": version} in page["versions"]
    assert "Headless" not in json.dumps(said)
    assert page["languages"][0] == page["language"] == page["locale"] == locale
    assert headers["accept-language"].split(",")[0] == locale
    assert page["timeZone"] == zone
    assert tuple(page["viewport"]) in VIEWPORTS
    assert (page["screen"], page["scale"]) == (page["viewport"], 1)
    assert page["plugins"] > 0
    assert page["chrome"] == "object"


@pytest.mark.slow
@pytest.mark.requirement("FS-6", "FS-14")
class TestInTheBrowser:
    def test_scripts_and_headers_agree_with_the_proxys_country(
        self, browser_worker: Worker, local_site: LocalSite, local_proxies: list[LocalProxy]
    ) -> None:
        sessions = browser_worker.sessions(ProxyPlan((local_proxies[0].proxy,)))
        said = report_of(browser_worker, sessions, local_site)
        version = browser_worker.run(browser_worker.host.browser())[0].version
        assert_agrees(said, local_site, version=version, locale="de-DE", zone="Europe/Berlin")
        # The direct read has the same headers: it belongs to the same session.
        page, direct = local_site.seen[-2].headers, local_site.seen[-1].headers
        assert local_site.seen[-1].path == "/api/live.json"
        for name in ("user-agent", "accept-language"):
            assert direct[name] == page[name]

    def test_without_a_proxy_it_uses_the_home_settings(self, browser_worker: Worker, local_site: LocalSite) -> None:
        said = report_of(browser_worker, browser_worker.sessions(), local_site)
        version = browser_worker.run(browser_worker.host.browser())[0].version
        assert_agrees(said, local_site, version=version, locale="en-GB", zone="UTC")

    def test_stealth_agrees_with_the_profile(self, chromium_program: Any, local_site: LocalSite) -> None:
        worker = Worker(chromium_program, has_stealth=True)
        try:
            said = report_of(worker, worker.sessions(), local_site)
            version = worker.run(worker.host.browser())[0].version
        finally:
            worker.close()
        assert_agrees(said, local_site, version=version, locale="en-GB", zone="UTC")
        assert said["page"]["renderer"] == WEBGL_RENDERER, "it was not applied"
