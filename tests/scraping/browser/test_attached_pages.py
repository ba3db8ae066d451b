"""Attached reads in a real Chromium: pages that update themselves, and the faults of open pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import psutil
import pytest

from scraping.browser import attached_pages
from scraping.browser.attached_page import AttachedPage
from scraping.browser.attached_pages import AttachedPages
from scraping.errors import Blocked, Gone, LayoutChanged, ResourceLost
from scraping.payloads import Payload
from scraping.reading.reader import Reader, Target
from scraping.readings import Reading, ReadMode, RefInfo, Site
from scraping.sources import adapter_for
from scraping.sources.extract import SCRIPT, from_html, plan_of
from scraping.worker.match_tasks import read_whole
from tests.scraping.hosted_browser import Hosted, find_program, impatient
from tests.stadium_process import StadiumProcess

pytestmark = pytest.mark.slow
BOARD = adapter_for("board")


@pytest.fixture(scope="module")
def arena() -> Iterator[StadiumProcess]:
    with StadiumProcess(programme="board:4", pace=0) as running:
        running.skip(3_000)
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Hosted]:
    running = Hosted(impatient(find_program()))
    yield running
    running.close()


@pytest.fixture
def reader(browser: Hosted, arena: StadiumProcess) -> Iterator[Reader]:
    """A reader without sessions, whose pages are closed afterwards."""
    made = Reader(browser.sessions, browser.run)
    yield made
    browser.run(made._modes.open_pages.close_all())
    arena.clear()


def site_at(arena: StadiumProcess, **other: Any) -> Site:
    return Site(key="board", base_url=f"{arena.url}/board", allows_private=True, robots_policy="ignore", **other)


def target_at(arena: StadiumProcess, number: int = 0, **other: Any) -> Target:
    shown = arena.matches()[number]
    return Target(number + 1, site_at(arena, **other), RefInfo(shown["key"], shown["url"]), BOARD)


def true_runs(arena: StadiumProcess, target: Target) -> int:
    return int(arena.truth("board", target.ref.source_event_id)["score"]["team_a"]["runs"])


def runs_of(payload: Payload) -> int | None:
    return payload.state.score.team_a.runs


def pages_of(reader: Reader) -> AttachedPages:
    return reader._modes.open_pages


def until(reader: Reader, target: Target, is_done: Callable[[Reading, Payload], bool]) -> tuple[Reading, Payload]:
    """Reads until the condition holds, because a page needs time to change."""
    deadline = time.monotonic() + 10
    while True:
        reading, payload = reader.scorecard(target)
        if is_done(reading, payload):
            return reading, payload
        assert time.monotonic() < deadline, (reading, payload.state)


def again(reader: Reader, target: Target) -> tuple[Reading, Payload]:
    """Reads again after a lost browser, as a task does."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return reader.scorecard(target)
        except ResourceLost:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def loads(arena: StadiumProcess) -> int:
    targets = arena.requests()["sites"].get("board", {}).get("targets", {})
    return int(targets.get("page", 0))


class TestReading:
    def test_follows_a_page_without_loading_it_again(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_at(arena)
        first, payload = reader.scorecard(target)
        assert (first.mode, runs_of(payload)) == (ReadMode.ATTACHED, true_runs(arena, target))
        assert first.requests_by_type == {"document": 1, "script": 1}
        assert set(first.blocked_by_type) == {"stylesheet", "image"}
        assert first.bytes_in > 1_000
        arena.skip(600)
        runs = true_runs(arena, target)
        assert runs != runs_of(payload)
        later, payload = until(reader, target, lambda _, read: runs_of(read) == runs)
        assert (later.mode, later.requests_made) == (ReadMode.ATTACHED, 0)
        assert later.bytes_in > 1_000, "bytes of web sockets count too"
        assert [event.id for event in payload.events[:1]] == [
            arena.truth("board", target.ref.source_event_id)["events"][-1]["id"]
        ]
        assert loads(arena) == 1

    def test_many_at_once_each_get_their_own_match(self, reader: Reader, arena: StadiumProcess) -> None:
        targets = [target_at(arena, number) for number in range(4)]

        async def read_all() -> list[Reading]:
            return list(await asyncio.gather(*(reader._modes.attached(target) for target in targets)))

        readings = reader._run(read_all())
        assert [BOARD.parse(one).source_event_id for one in readings] == [one.ref.source_event_id for one in targets]
        assert len(pages_of(reader).pages) == 4

    @pytest.mark.requirement("DM-1")
    def test_knows_the_process_of_its_renderer(self, reader: Reader, arena: StadiumProcess, browser: Hosted) -> None:
        target = target_at(arena)
        reader.scorecard(target)
        pid = reader.renderer_pids()[f"board_{target.ref.source_event_id}"]
        process = psutil.Process(pid)
        assert "--type=renderer" in process.cmdline()
        assert browser.host.pid in [parent.pid for parent in process.parents()]

    @pytest.mark.requirement("FR-019")
    def test_an_open_page_and_its_text_give_the_same(
        self, reader: Reader, arena: StadiumProcess, browser: Hosted
    ) -> None:
        target = target_at(arena)
        for layout in (1, 2, 0):
            arena.clear()
            arena.fault(site="board", kind="layout", value=layout)

            async def both() -> tuple[Any, Any]:
                session = await browser.sessions.get(target.site)
                page, _ = await session.open_page()
                try:
                    await page.goto(target.ref.url)
                    await page.evaluate("document.querySelector('footer').remove()")  # else the clock goes on
                    html = await page.content()
                    return await page.evaluate(SCRIPT, plan_of(BOARD.layout)), from_html(html, BOARD.layout)
                finally:
                    await session.close_page(page)

            asked, parsed = reader._run(both())
            assert asked == parsed
            assert (asked["fields"]["key"] is None) is (layout == 0)

    @pytest.mark.faults_only
    def test_the_whole_match_has_every_event(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_at(arena)
        _, payload = read_whole(reader, target, is_enough=lambda _: False)
        truth = arena.truth("board", target.ref.source_event_id)
        assert {event.id for event in payload.events} == {event["id"] for event in truth["events"]}
        assert len(truth["events"]) > 50

    @pytest.mark.faults_only
    def test_a_source_that_is_to_be_visited_is_visited(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_at(arena, read_way="visit")
        reading, payload = reader.scorecard(target)
        assert (reading.mode, runs_of(payload)) == (ReadMode.VISIT, true_runs(arena, target))
        assert len(pages_of(reader).pages) == 0


class TestStalePages:
    @pytest.mark.faults_only
    def test_a_page_whose_script_stopped_is_loaded_again(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_at(arena)
        _, before = reader.scorecard(target)
        arena.fault(site="board", target="live", kind="hang")
        page = next(iter(pages_of(reader).pages.values()))
        page.max_unchanged_seconds = 1.5
        arena.skip(900)
        asked_at = datetime.now(UTC)
        reading, payload = until(reader, target, lambda _, read: runs_of(read) == true_runs(arena, target))
        assert runs_of(payload) != runs_of(before)
        assert reading.captured_at >= asked_at
        assert loads(arena) == 2

    @pytest.mark.faults_only
    def test_the_age_of_an_unchanged_page_grows(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_at(arena)
        reader.scorecard(target)
        arena.fault(site="board", target="live", kind="hang")
        until(reader, target, lambda reading, _: (datetime.now(UTC) - reading.captured_at).total_seconds() > 1.5)

    def test_a_crashed_page_is_opened_again_and_the_browser_stays(
        self, reader: Reader, arena: StadiumProcess, browser: Hosted
    ) -> None:
        first, second = target_at(arena), target_at(arena, 1)
        reader.scorecard(first)
        reader.scorecard(second)
        generation = browser.host.generation
        page = pages_of(reader).pages["board", first.ref.source_event_id].page

        async def crash() -> None:
            with pytest.raises(Exception, match="crash"):
                await asyncio.wait_for(page.goto("chrome://crash"), 5)

        reader._run(crash())
        reading, payload = reader.scorecard(first)
        assert (reading.mode, payload.source_event_id) == (ReadMode.ATTACHED, first.ref.source_event_id)
        assert reader.scorecard(second)[0].requests_made == 0
        assert browser.host.generation == generation

    @pytest.mark.faults_only
    def test_a_page_that_navigated_away_is_opened_again(self, reader: Reader, arena: StadiumProcess) -> None:
        first, second = target_at(arena), target_at(arena, 1)
        reader.scorecard(first)
        page = pages_of(reader).pages["board", first.ref.source_event_id].page
        reader._run(page.goto(second.ref.url))
        assert reader.scorecard(first)[1].source_event_id == first.ref.source_event_id

    @pytest.mark.faults_only
    def test_a_hung_page_is_opened_again(
        self, reader: Reader, arena: StadiumProcess, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(attached_pages, "EXTRACT_SECONDS", 1.0)
        first, second = target_at(arena), target_at(arena, 1)
        reader.scorecard(first)
        reader.scorecard(second)
        page = pages_of(reader).pages["board", first.ref.source_event_id].page
        reader._run(page.evaluate("setTimeout(() => { for (;;); }, 0)"))
        assert reader.scorecard(first)[1].source_event_id == first.ref.source_event_id
        assert reader.scorecard(second)[0].requests_made == 0

    @pytest.mark.faults_only
    def test_pages_are_opened_again_in_a_new_browser(
        self, reader: Reader, arena: StadiumProcess, browser: Hosted
    ) -> None:
        target = target_at(arena)
        reader.scorecard(target)
        generation = browser.host.generation
        browser.browser.kill()
        reading, payload = again(reader, target)
        assert (reading.mode, runs_of(payload)) == (ReadMode.ATTACHED, true_runs(arena, target))
        assert browser.host.generation == generation + 1

    @pytest.mark.faults_only
    def test_a_missing_match_is_gone(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_at(arena)
        arena.fault(site="board", target="page", kind="status", value=404)
        with pytest.raises(Gone):
            reader.scorecard(target)
        assert len(pages_of(reader).pages) == 0

    @pytest.mark.faults_only
    def test_a_challenge_is_not_reported_as_a_redesign(self, reader: Reader, arena: StadiumProcess) -> None:
        arena.fault(site="board", target="page", kind="challenge")
        with pytest.raises(Blocked, match="challenge"):
            reader.scorecard(target_at(arena))


@pytest.mark.requirement("FR-019")
class TestRedesign:
    def test_fallback_selectors_are_tried_in_order(
        self, reader: Reader, arena: StadiumProcess, caplog: pytest.LogCaptureFixture
    ) -> None:
        target = target_at(arena)
        _, before = reader.scorecard(target)
        assert before.integrity.fallback_selectors == ()
        arena.fault(site="board", kind="layout", value=2)
        _, after = until(reader, target, lambda _, read: bool(read.integrity.fallback_selectors))
        assert (after.state, after.events) == (before.state, before.events)
        assert "total_a#2" in after.integrity.fallback_selectors
        (record,) = [one for one in caplog.records if "of total_a" in one.getMessage()]
        assert ".sb-total-a" in record.getMessage()
        assert target.ref.url in record.getMessage()
        assert loads(arena) == 1, "the selector applied to the open page without loading it"

    def test_an_error_names_all_selectors_with_evidence(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_at(arena)
        reader.scorecard(target)
        arena.fault(site="board", kind="layout", value=0)

        def fails() -> LayoutChanged | None:
            try:
                reader.scorecard(target)
            except LayoutChanged as error:
                return error
            return None

        deadline = time.monotonic() + 10
        while (error := fails()) is None:
            assert time.monotonic() < deadline
        for part in ("total_a", ".sb-total-a", "[data-part='total-a']", "//*[@data-part='side-a']//span"):
            assert part in str(error)
        assert "<main" in error.evidence
        arena.clear()
        reading, _ = reader.scorecard(target)
        assert reading.mode is ReadMode.ATTACHED, "it goes on as before"

    def test_an_operators_selector_applies_without_a_restart(self, reader: Reader, arena: StadiumProcess) -> None:
        arena.fault(site="board", kind="layout", value=2)
        own = {"total_a": ("//*[@data-part='side-a']//span", ".sb-total-a")}
        target = target_at(arena, selectors=own)
        for way in ("attached", "visit"):
            _, payload = reader.scorecard(target_at(arena, selectors=own, read_way=way))
            assert runs_of(payload) == true_runs(arena, target)
            assert not [one for one in payload.integrity.fallback_selectors if one.startswith("total_a")]


@pytest.mark.faults_only
class TestPageLimit:
    def test_idle_pages_are_closed(self, reader: Reader, arena: StadiumProcess, browser: Hosted) -> None:
        reader.scorecard(target_at(arena))
        pages = pages_of(reader)
        browser.run(pages.sweep())
        assert len(pages.pages) == 1
        pages.clock = lambda: time.monotonic() + attached_pages.IDLE_SECONDS + 1
        browser.run(pages.sweep())
        assert len(pages.pages) == 0

    def test_the_least_recently_read_page_is_closed_unless_in_use(self, reader: Reader, arena: StadiumProcess) -> None:
        first, second, third = (target_at(arena, number) for number in range(3))
        pages = pages_of(reader)
        pages.limit = 2
        reader.scorecard(first)
        reader.scorecard(second)
        reading, payload = reader.scorecard(third)
        assert (reading.mode, payload.source_event_id) == (ReadMode.VISIT, third.ref.source_event_id)
        pages.pages["board", first.ref.source_event_id].read_at -= attached_pages.BUSY_SECONDS
        assert reader.scorecard(third)[0].mode is ReadMode.ATTACHED
        assert {key for _, key in pages.pages} == {second.ref.source_event_id, third.ref.source_event_id}

    def test_pages_opened_at_once_are_limited(
        self, reader: Reader, arena: StadiumProcess, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        targets, under_way, most = [target_at(arena, number) for number in range(4)], 0, 0
        load = AttachedPage.load

        async def counted(*args: Any, **more: Any) -> AttachedPage:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            try:
                return await load(*args, **more)
            finally:
                under_way -= 1

        monkeypatch.setattr(AttachedPage, "load", counted)

        async def read_all() -> None:
            await asyncio.gather(*(reader._modes.attached(target) for target in targets))

        reader._run(read_all())
        assert (len(pages_of(reader).pages), most) == (4, attached_pages.OPENED_AT_ONCE)
