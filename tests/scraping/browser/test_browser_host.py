"""Reads through a real Chromium and Playwright's driver against the stadium's pages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Page
from prometheus_client import REGISTRY

from scraping import readings
from scraping.browser.visit import take_screenshot
from scraping.errors import Blocked, Drift, Gone, ReadTimeout, Transient
from scraping.reading.reader import Reader, Target
from scraping.readings import AttemptEvidence, ReadMode, RefInfo
from scraping.sources import adapter_for
from tests.patience import stretched
from tests.scraping.hosted_browser import Hosted, assert_true, find_program, impatient, site_at, target_of
from tests.stadium_process import StadiumProcess

pytestmark = pytest.mark.slow

PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def program() -> Path:
    return find_program()


@pytest.fixture(scope="module")
def arena() -> Iterator[StadiumProcess]:
    """A stadium with paused matches, so that a reading can be compared with the truth."""
    with StadiumProcess(pace=0) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_faults(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "arena" in request.fixturenames:
        request.getfixturevalue("arena").clear()


@pytest.fixture
def hosted(program: Path) -> Iterator[Hosted]:
    """A browser for one test that breaks it."""
    running = Hosted(impatient(program))
    yield running
    running.close()


@pytest.fixture(scope="module")
def shared_browser(program: Path) -> Iterator[Hosted]:
    running = Hosted(impatient(program))
    yield running
    running.close()


@pytest.fixture
def reader(shared_browser: Hosted) -> Reader:
    """One browser for all tests that only read; each test begins without sessions."""
    shared_browser.run(shared_browser.sessions.close_all())
    return Reader(shared_browser.sessions, shared_browser.run)


@pytest.mark.parametrize("site", ["crex", "sofascore"])
class TestReads:
    def test_a_visit_and_direct_reads_after_it_return_the_truth(
        self, reader: Reader, arena: StadiumProcess, site: str
    ) -> None:
        target = target_of(arena, site)
        modes = []
        for _ in range(3):
            reading, payload = reader.scorecard(target)
            modes.append(reading.mode)
            assert_true(payload, arena)
        assert modes == [ReadMode.VISIT, ReadMode.DIRECT, ReadMode.DIRECT]

    def test_a_direct_read_costs_the_source_no_page(self, reader: Reader, arena: StadiumProcess, site: str) -> None:
        target = target_of(arena, site)
        reader.scorecard(target)
        arena.clear()
        reading, _ = reader.scorecard(target)
        assert reading.mode is ReadMode.DIRECT
        assert "page" not in reading.documents
        assert not arena.requests()["sites"][site]["targets"].get("page", 0)

    def test_one_visit_restores_refused_direct_reads(self, reader: Reader, arena: StadiumProcess, site: str) -> None:
        target = target_of(arena, site)
        reader.scorecard(target)
        arena.ask("/control/sessions", {"revoke": True})
        reading, payload = reader.scorecard(target)
        assert reading.mode is ReadMode.VISIT
        assert_true(payload, arena)
        assert reader.scorecard(target)[0].mode is ReadMode.DIRECT

    def test_requests_of_other_matches_are_derived_from_one_visit(
        self, reader: Reader, arena: StadiumProcess, site: str
    ) -> None:
        shown = [match for match in arena.matches() if (match["site"], match["status"]) == (site, "live")]
        targets = [
            Target(number, site_at(arena, site), RefInfo(one["key"], one["url"]), adapter_for(site))
            for number, one in enumerate(shown, 1)
        ]
        assert len(targets) > 1
        for target in targets:
            reading, payload = reader.scorecard(target)
            assert (reading.mode is ReadMode.VISIT) == (target is targets[0])
            assert_true(payload, arena)

    def test_lists_the_matches(self, reader: Reader, arena: StadiumProcess, site: str) -> None:
        adapter, base_url = adapter_for(site), f"{arena.url}/{site}"
        found = adapter.parse_list(reader.match_list(site_at(arena, site), adapter), base_url)
        shown = {match["key"]: match["status"] for match in arena.matches() if match["site"] == site}
        assert {match.source_event_id: match.status.value for match in found} == shown


class TestOlderEvents:
    def test_return_the_whole_match(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        pages = reader.older_events(target, is_enough=lambda page: False)
        truth = arena.truth("crex", target.ref.source_event_id)
        assert {event.id for page in pages for event in page.events} == {event["id"] for event in truth["events"]}

    def test_stop_at_the_first_sufficient_page(self, reader: Reader, arena: StadiumProcess) -> None:
        assert len(reader.older_events(target_of(arena, "crex"), is_enough=lambda page: True)) == 1


class TestResponses:
    @pytest.mark.parametrize(
        ("status", "kind"), [(500, Transient), (503, Transient), (429, Blocked), (404, Gone), (410, Gone)]
    )
    def test_a_status_becomes_its_error(
        self, reader: Reader, arena: StadiumProcess, status: int, kind: type[Exception]
    ) -> None:
        target = target_of(arena, "crex")
        arena.fault(site="crex", target="*", kind="status", value=status)
        with pytest.raises(kind):
            reader.scorecard(target)

    def test_a_broken_connection_is_transient(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        arena.fault(site="crex", target="page", kind="reset")
        with pytest.raises(Transient):
            reader.scorecard(target)

    def test_images_fonts_and_styles_are_not_fetched(self, reader: Reader, arena: StadiumProcess) -> None:
        reading, _ = reader.scorecard(target_of(arena, "crex"))
        assert reading.requests_blocked > 0
        assert reading.bytes_in > 0


@pytest.mark.requirement("FS-10")
def test_a_reading_reports_its_stages(reader: Reader, arena: StadiumProcess) -> None:
    target, seen = target_of(arena, "crex"), []
    context = copy_context()
    context.run(readings.stage_listener.set, seen.append)
    context.run(reader.scorecard, target)
    assert seen == ["BROWSER_READY", "NAVIGATING", "INTERCEPTING"]
    seen.clear()
    context.run(reader.scorecard, target)
    assert seen == ["BROWSER_READY", "INTERCEPTING"], "a direct reading opens no page"


@pytest.mark.requirement("FR-019")
class TestEvidence:
    """An error carries evidence: the page, the documents, and a screenshot of a suspicious page."""

    def seen(self, reader: Reader, target: Target, kind: type[Exception]) -> AttemptEvidence:
        with pytest.raises(kind) as caught:
            reader.scorecard(target)
        return readings.evidence_of(caught.value)

    def test_a_challenge_gets_a_screenshot_at_once(self, reader: Reader, arena: StadiumProcess) -> None:
        arena.fault(site="crex", target="*", kind="challenge")
        sight = self.seen(reader, target_of(arena, "crex"), Blocked)
        assert "challenge" in sight.documents[0].text().lower()
        assert sight.screenshot.startswith(PNG)

    @pytest.mark.requirement("US1.4", "EC-1")
    def test_a_changed_page_gets_a_screenshot_at_the_first_read(self, reader: Reader, arena: StadiumProcess) -> None:
        arena.fault(site="crex", target="*", kind="layout")
        first = self.seen(reader, target_of(arena, "crex"), Drift)
        assert (first.documents[0].name, first.screenshot[:4]) == ("page", PNG)

    @pytest.mark.requirement("FS-9")
    def test_a_changed_page_is_read_again_in_another_mode(self, reader: Reader, arena: StadiumProcess) -> None:
        """The first read was a visit; it has shown the requests, so the second one is direct."""
        arena.fault(site="crex", target="*", kind="layout")
        target = target_of(arena, "crex")
        assert reader._modes.plan(target).record is None
        with pytest.raises(Drift):
            reader.scorecard(target)
        assert reader._modes.plan(target).record is not None

    def test_a_good_page_gets_no_screenshot(self, reader: Reader, arena: StadiumProcess) -> None:
        assert reader.scorecard(target_of(arena, "crex"))[0].screenshot == b""

    def test_a_direct_read_has_documents_and_no_screenshot(self, reader: Reader, arena: StadiumProcess) -> None:
        target = replace(target_of(arena, "crex"), is_suspect=True)
        reader.scorecard(target)
        arena.fault(site="crex", target="*", kind="status", value=429)
        sight = self.seen(reader, target, Blocked)
        assert {document.status for document in sight.documents} == {429}
        assert "page" not in {document.name for document in sight.documents}
        assert sight.screenshot == b""

    @pytest.mark.faults_only
    def test_a_screenshot_of_a_busy_page_ends_after_two_seconds(self, hosted: Hosted, arena: StadiumProcess) -> None:
        """The script of the page never yields: no screenshot is taken, and the visit succeeds."""

        async def photograph() -> tuple[bytes, float]:
            session = await hosted.sessions.get(site_at(arena, "crex"))
            page = await (await session.open_context()).new_page()
            await page.goto("data:text/html,<h1>x</h1><input value=hello>")
            taken = await take_screenshot(page)
            assert taken.startswith(PNG)
            await page.evaluate("setTimeout(() => { for (;;); }, 0)")
            began = time.monotonic()
            none = await take_screenshot(page)
            return none, time.monotonic() - began

        none, seconds = hosted.run(photograph())
        assert none == b""
        assert seconds < stretched(5)


async def contexts(hosted: Hosted) -> list[BrowserContext]:
    browser, _ = await hosted.host.browser()
    return browser.contexts


async def session_cookie(hosted: Hosted) -> str | None:
    """Returns the cookie with which the simulated Crex knows a visitor."""
    (context,) = await contexts(hosted)
    return next(one.get("value") for one in await context.cookies() if one.get("name") == "cxsid")


async def evaluated(page: Page) -> int:
    return int(await page.evaluate("1 + 1"))


class TestHangs:
    """Every await has a timeout."""

    @pytest.mark.parametrize("target_name", ["page", pytest.param("*", marks=pytest.mark.faults_only)])
    def test_a_page_that_never_responds_times_out(
        self, hosted: Hosted, arena: StadiumProcess, target_name: str
    ) -> None:
        target = target_of(arena, "crex")
        arena.fault(site="crex", target=target_name, kind="hang")
        began = time.monotonic()
        with pytest.raises(ReadTimeout):
            hosted.reader.scorecard(target)
        assert time.monotonic() - began < 30  # four seconds each for what can hang, on a machine that has other work
        arena.clear()
        assert_true(hosted.reader.scorecard(target)[1], arena)
        assert len(hosted.launches) == 1  # the browser was not to blame

    @pytest.mark.requirement("SO-14")
    def test_a_page_that_cannot_be_loaded_is_counted(self, hosted: Hosted, arena: StadiumProcess) -> None:
        def failures() -> float:
            return REGISTRY.get_sample_value("scraper_navigation_failures_total", {"domain": "crex"}) or 0.0

        target = target_of(arena, "crex")
        hosted.visit(target)
        before = failures()
        for kind, error in (("hang", ReadTimeout), ("reset", Transient)):
            arena.fault(site="crex", target="page", kind=kind)
            with pytest.raises(error):
                hosted.visit(target)
            arena.clear()
        assert failures() == before + 2

    @pytest.mark.requirement("FR-021")
    def test_the_read_after_a_timeout_has_a_fresh_context_and_the_same_identity(
        self, hosted: Hosted, arena: StadiumProcess
    ) -> None:
        target = target_of(arena, "crex")
        first = hosted.visit(target)[0]
        (before,), cookie = hosted.run(contexts(hosted)), hosted.run(session_cookie(hosted))
        arena.fault(site="crex", target="page", kind="hang")
        with pytest.raises(ReadTimeout):
            hosted.visit(target)
        assert hosted.run(contexts(hosted)) == [], "closed with the page that hung"
        arena.clear()
        again = hosted.visit(replace(target, timeout_factor=1.5))[0]
        (after,) = hosted.run(contexts(hosted))
        assert after is not before
        assert (again.session_id, hosted.run(session_cookie(hosted))) == (first.session_id, cookie)

    @pytest.mark.requirement("FR-021")
    def test_other_pages_of_a_context_with_a_hanging_page_are_read_on(
        self, hosted: Hosted, arena: StadiumProcess
    ) -> None:
        target = target_of(arena, "crex")
        hosted.visit(target)
        session = hosted.run(hosted.sessions.get(target.site))
        open_page, _ = hosted.run(session.open_page())
        arena.fault(site="crex", target="page", kind="hang")
        with pytest.raises(ReadTimeout):
            hosted.visit(target)
        arena.clear()
        hosted.visit(target)
        assert len(hosted.run(contexts(hosted))) == 2
        assert hosted.run(evaluated(open_page)) == 2
        hosted.run(session.close_page(open_page))
        assert len(hosted.run(contexts(hosted))) == 1, "its last page has closed it"

    @pytest.mark.faults_only
    def test_an_endpoint_that_never_responds_times_out(self, hosted: Hosted, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        arena.fault(site="crex", target="*", kind="hang")
        began = time.monotonic()
        with pytest.raises(ReadTimeout):
            hosted.reader.scorecard(target)
        assert time.monotonic() - began < stretched(8)
