"""The browser, for real: Chromium, Playwright's driver, the stadium's pages. What dies is replaced, nothing hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest
from django.core.management import call_command

from scraping import identity, orphans, sights, stages
from scraping.browser import capture
from scraping.browser.host import BrowserHost, Replacement
from scraping.browser.options import OWNER_SWITCH, BrowserOptions
from scraping.browser.processes import end_tree, tagged_browsers
from scraping.browser.sessions import Sessions
from scraping.errors import Blocked, Drift, Gone, ReadTimeout, ResourceLost, Transient
from scraping.payloads import Payload
from scraping.reading.reader import Reader, Target
from scraping.readings import Reading, ReadMode, RefInfo, Site
from scraping.sights import Sight
from scraping.signals import orphan_killed
from scraping.sources import adapter_for
from tests.stadium_process import StadiumProcess
from victoryline.lib import chromium

pytestmark = pytest.mark.slow

T = TypeVar("T")
JPEG = b"\xff\xd8\xff"
PHASES = {"in_play": "play", "first_half": "play", "second_half": "play", "toss": "scheduled"}
HEADLINES = ("period:45:First half", "period:90:Second half")


@pytest.fixture(scope="module")
def program() -> Path:
    found = chromium.find(chosen=None, var_dir=Path("var"))
    assert found is not None, "no Chromium on this machine; make run installs one"
    return found


@pytest.fixture(scope="module")
def arena() -> Iterator[StadiumProcess]:
    """A stadium whose matches stand still, so that a reading can be held against the truth."""
    with StadiumProcess(pace=0) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_faults(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "arena" in request.fixturenames:
        request.getfixturevalue("arena").clear()


HERE = identity.new_name().rsplit("-", 2)[0]  # the part of a name that says which machine


def owner_id(pid: int | None = None) -> str:
    """As a worker names itself."""
    return f"{HERE}-{pid or os.getpid()}-{uuid.uuid4().hex[:6]}"


class Hosted:
    """A browser host on a loop thread of its own, and a reader in front of it: what a worker has."""

    def __init__(self, options: BrowserOptions) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.launches: list[Replacement] = []
        self.host = BrowserHost(options, self.launches.append)
        self.sessions = Sessions(self.host)
        self.reader = Reader(self.sessions, self.run)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout=90)

    def close(self) -> None:
        self.run(self.sessions.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=10)
        self.loop.close()

    @property
    def browser(self) -> psutil.Process:
        assert self.host.pid is not None
        return psutil.Process(self.host.pid)

    @property
    def driver(self) -> psutil.Process:
        return self.browser.parents()[0]


def impatient(program: Path) -> BrowserOptions:
    return BrowserOptions(
        executable=program,
        owner=owner_id(),
        navigation_timeout_seconds=4,
        page_timeout_seconds=4,
        capture_timeout_seconds=3,
        request_timeout_seconds=2,
    )


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
    """One browser for all tests that only read; each is a stranger to the sources."""
    shared_browser.run(shared_browser.sessions.close_all())
    return Reader(shared_browser.sessions, shared_browser.run)


def site_at(arena: StadiumProcess, key: str) -> Site:
    return Site(key, f"{arena.url}/{key}", allows_private=True)


def target_of(arena: StadiumProcess, site: str) -> Target:
    shown = next(match for match in arena.matches() if (match["site"], match["status"]) == (site, "live"))
    return Target(1, site_at(arena, site), RefInfo(shown["key"], shown["url"]), adapter_for(site))


def read_again(hosted: Hosted, target: Target) -> tuple[Reading, Payload]:
    """As a task does it: a lost browser is no failure of the source, so it tries again at once."""
    for _ in range(3):
        try:
            return hosted.reader.scorecard(target)
        except ResourceLost:
            time.sleep(0.2)
    raise AssertionError("the browser did not come back")


def assert_true(payload: Payload, arena: StadiumProcess) -> None:
    """The payload says what the stadium knows."""
    truth = arena.truth(payload.source, payload.source_event_id)
    state = payload.state.model_dump(mode="json")
    assert state["status"] == truth["status"]
    assert state["phase"] == PHASES.get(truth["phase"], truth["phase"])
    assert state["teams"] == truth["teams"]
    assert state["current_innings"] == truth["current_innings"]
    for side in ("team_a", "team_b"):
        shown = {name: value for name, value in state["score"][side].items() if value is not None}
        assert shown == (truth["score"][side] or {})
    real = [event["id"] for event in truth["events"] if event["id"] not in HEADLINES]
    ours = {event.id for event in payload.events} - set(HEADLINES)
    assert ours == set(real[-len(ours) :])  # the newest ones; a long list is not shown at once
    assert ours or not real


@pytest.mark.parametrize("site", ["crex", "sofascore"])
class TestReads:
    def test_a_visit_and_the_direct_reads_after_it_tell_the_truth(
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

    def test_when_the_direct_way_is_refused_one_visit_makes_it_good(
        self, reader: Reader, arena: StadiumProcess, site: str
    ) -> None:
        target = target_of(arena, site)
        reader.scorecard(target)
        arena.ask("/control/sessions", {"revoke": True})
        reading, payload = reader.scorecard(target)
        assert reading.mode is ReadMode.VISIT
        assert_true(payload, arena)
        assert reader.scorecard(target)[0].mode is ReadMode.DIRECT

    def test_lists_the_matches(self, reader: Reader, arena: StadiumProcess, site: str) -> None:
        adapter, base_url = adapter_for(site), f"{arena.url}/{site}"
        found = adapter.parse_list(reader.listing(site_at(arena, site), adapter), base_url)
        shown = {match["key"]: match["status"] for match in arena.matches() if match["site"] == site}
        assert {match.source_event_id: match.status.value for match in found} == shown


class TestOlderEvents:
    def test_bring_the_whole_match(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        pages = reader.older_events(target, is_enough=lambda page: False)
        truth = arena.truth("crex", target.ref.source_event_id)
        assert {event.id for page in pages for event in page.events} == {event["id"] for event in truth["events"]}

    def test_stop_when_it_is_enough(self, reader: Reader, arena: StadiumProcess) -> None:
        assert len(reader.older_events(target_of(arena, "crex"), is_enough=lambda page: True)) == 1


class TestWhatTheSourceAnswers:
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

    def test_a_connection_that_breaks_is_transient(self, reader: Reader, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        arena.fault(site="crex", target="page", kind="reset")
        with pytest.raises(Transient):
            reader.scorecard(target)

    def test_images_fonts_and_styles_are_not_fetched(self, reader: Reader, arena: StadiumProcess) -> None:
        reading, _ = reader.scorecard(target_of(arena, "crex"))
        assert reading.requests_blocked > 0
        assert reading.bytes_in > 0


@pytest.mark.requirement("FS-10")
def test_a_reading_tells_its_stages(reader: Reader, arena: StadiumProcess) -> None:
    target, seen = target_of(arena, "crex"), []
    with stages.told_to(seen.append):
        reader.scorecard(target)
        assert seen == ["BROWSER_READY", "NAVIGATING", "INTERCEPTING"]
        seen.clear()
        reader.scorecard(target)
    assert seen == ["BROWSER_READY", "INTERCEPTING"], "a direct reading opens no page"


@pytest.mark.requirement("FR-019")
class TestWhatWasSeen:
    """An error carries what it is about: the page, the answers, and a picture where a page that looks wrong is open."""

    def seen(self, reader: Reader, target: Target, kind: type[Exception]) -> Sight:
        with pytest.raises(kind) as caught:
            reader.scorecard(target)
        return sights.carried_by(caught.value)

    def test_a_challenge_is_photographed_at_once(self, reader: Reader, arena: StadiumProcess) -> None:
        arena.fault(site="crex", target="*", kind="challenge")
        sight = self.seen(reader, target_of(arena, "crex"), Blocked)
        assert "challenge" in sight.documents[0].text().lower()
        assert sight.screenshot.startswith(JPEG)

    def test_a_changed_page_is_photographed_when_it_is_met_again(self, reader: Reader, arena: StadiumProcess) -> None:
        arena.fault(site="crex", target="*", kind="layout")
        target = target_of(arena, "crex")
        first = self.seen(reader, target, Drift)
        again = self.seen(reader, replace(target, is_suspect=True), Drift)
        assert (first.documents[0].name, first.screenshot) == ("page", b"")
        assert (again.documents[0].name, again.screenshot[:3]) == ("page", JPEG)

    def test_a_good_page_is_not(self, reader: Reader, arena: StadiumProcess) -> None:
        assert reader.scorecard(target_of(arena, "crex"))[0].screenshot == b""

    def test_a_direct_read_has_none_and_shows_its_answers(self, reader: Reader, arena: StadiumProcess) -> None:
        target = replace(target_of(arena, "crex"), is_suspect=True)
        reader.scorecard(target)
        arena.fault(site="crex", target="*", kind="status", value=429)
        sight = self.seen(reader, target, Blocked)
        assert {document.status for document in sight.documents} == {429}
        assert "page" not in {document.name for document in sight.documents}
        assert sight.screenshot == b""

    def test_a_page_that_is_too_busy_to_be_photographed_costs_two_seconds(
        self, hosted: Hosted, arena: StadiumProcess
    ) -> None:
        """Its script never yields: no picture, no hang, and the visit itself is as good as without."""

        async def photograph() -> tuple[bytes, float]:
            session = await hosted.sessions.get(site_at(arena, "crex"))
            page = await (await session._open_context()).new_page()
            await page.goto("data:text/html,<h1>x</h1><input value=hello>")
            taken = await capture.screenshot_of(page)
            assert taken.startswith(JPEG)
            await page.evaluate("setTimeout(() => { for (;;); }, 0)")
            began = time.monotonic()
            none = await capture.screenshot_of(page)
            return none, time.monotonic() - began

        none, seconds = hosted.run(photograph())
        assert none == b""
        assert seconds < 5


class TestHangs:
    """No await without an end."""

    @pytest.mark.parametrize("target_name", ["page", "*"])
    def test_a_page_that_never_answers_is_given_up_in_time(
        self, hosted: Hosted, arena: StadiumProcess, target_name: str
    ) -> None:
        target = target_of(arena, "crex")
        arena.fault(site="crex", target=target_name, kind="hang")
        began = time.monotonic()
        with pytest.raises(ReadTimeout):
            hosted.reader.scorecard(target)
        assert time.monotonic() - began < 12
        arena.clear()
        assert_true(hosted.reader.scorecard(target)[1], arena)
        assert len(hosted.launches) == 1  # the browser was not to blame

    def test_an_endpoint_that_never_answers_too(self, hosted: Hosted, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        arena.fault(site="crex", target="*", kind="hang")
        began = time.monotonic()
        with pytest.raises(ReadTimeout):
            hosted.reader.scorecard(target)
        assert time.monotonic() - began < 8

    def test_a_browser_that_hangs_is_replaced(self, hosted: Hosted, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        frozen = hosted.browser
        frozen.suspend()
        began = time.monotonic()
        hosted.reader._memory.forget(target.ref_id)
        _, payload = read_again(hosted, target)
        assert_true(payload, arena)
        assert time.monotonic() - began < 45
        assert not frozen.is_running() or frozen.status() == psutil.STATUS_ZOMBIE


class TestDeaths:
    def test_chromium_killed(self, hosted: Hosted, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        hosted.browser.kill()
        began = time.monotonic()
        _, payload = read_again(hosted, target)
        assert_true(payload, arena)
        assert time.monotonic() - began < 10
        assert [launch.launches for launch in hosted.launches] == [1, 2]

    def test_the_driver_killed(self, hosted: Hosted, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        before, driver = hosted.browser, hosted.driver
        assert driver.pid != os.getpid()
        driver.kill()
        began = time.monotonic()
        _, payload = read_again(hosted, target)
        assert_true(payload, arena)
        assert time.monotonic() - began < 15
        assert hosted.browser.pid != before.pid
        assert not before.is_running() or before.status() == psutil.STATUS_ZOMBIE

    def test_the_driver_killed_while_no_session_is_open(self, hosted: Hosted, arena: StadiumProcess) -> None:
        """After it the browser still claims to be connected: only opening a context tells."""
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        hosted.host._sessions.clear()
        hosted.driver.kill()
        assert_true(read_again(hosted, target)[1], arena)

    def test_both_sources_go_on_after_one_death(self, hosted: Hosted, arena: StadiumProcess) -> None:
        targets = [target_of(arena, "crex"), replace(target_of(arena, "sofascore"), ref_id=2)]
        for target in targets:
            hosted.reader.scorecard(target)
        hosted.browser.kill()
        for target in targets:
            assert_true(read_again(hosted, target)[1], arena)
        assert len(hosted.launches) == 2

    def test_stopping_leaves_no_process_behind(self, program: Path, arena: StadiumProcess) -> None:
        hosted = Hosted(BrowserOptions(executable=program, owner=owner_id()))
        hosted.reader.scorecard(target_of(arena, "crex"))
        family = [hosted.driver, hosted.browser, *hosted.browser.children(recursive=True)]
        hosted.close()
        _, alive = psutil.wait_procs(family, timeout=5)
        assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []

    def test_after_stopping_nothing_is_started_again(self, program: Path, arena: StadiumProcess) -> None:
        hosted = Hosted(BrowserOptions(executable=program, owner=owner_id()))
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        hosted.run(hosted.host.stop())
        with pytest.raises(ResourceLost, match="stopping"):
            hosted.reader.scorecard(target)
        hosted.close()

    def test_a_program_that_does_not_start_is_our_fault_not_the_sources(self, arena: StadiumProcess) -> None:
        hosted = Hosted(BrowserOptions(executable=Path("/bin/false"), owner=owner_id(), launch_timeout_seconds=5))
        with pytest.raises(ResourceLost, match="could not be started"):
            hosted.reader.scorecard(target_of(arena, "crex"))
        hosted.close()


START = """
import os, subprocess, sys, time
arguments = [each.replace("PID", str(os.getpid())) for each in sys.argv[1:]]
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
print(subprocess.Popen(arguments, start_new_session=True, **quiet).pid, flush=True)
time.sleep(600)
"""


class Zoo:
    """Chromiums of all kinds, started without a driver, so that they outlive whoever started them."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._started: list[psutil.Process] = []

    def arguments(self, owner: str | None) -> list[str]:
        profile = self._folder / uuid.uuid4().hex
        tag = [f"{OWNER_SWITCH}={owner}"] if owner else []
        return [
            *(str(self._program), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", *tag),
            *(f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"),
        ]

    def start(self, owner: str | None) -> psutil.Process:
        started = subprocess.Popen(
            self.arguments(owner), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return self._note(psutil.Process(started.pid))

    def start_and_orphan(self, owner: str) -> psutil.Process:
        """Its worker is a process that is killed afterwards; the worker's number is part of the tag."""
        worker = subprocess.Popen([sys.executable, "-c", START, *self.arguments(owner)], stdout=subprocess.PIPE)
        assert worker.stdout is not None
        browser = self._note(psutil.Process(int(worker.stdout.readline())))
        wait_for(lambda: len(browser.children()) > 1)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        worker.stdout.close()
        return browser

    def _note(self, process: psutil.Process) -> psutil.Process:
        self._started.append(process)
        return process

    def close(self) -> None:
        family = [each for top in self._started if top.is_running() for each in (*top.children(recursive=True), top)]
        for process in family:
            if process.is_running():
                process.kill()
        psutil.wait_procs(family, timeout=5)


def wait_for(condition: Callable[[], Any], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def zoo(program: Path, tmp_path: Path) -> Iterator[Zoo]:
    animals = Zoo(program, tmp_path)
    yield animals
    animals.close()


class TestOwnerTag:
    @pytest.mark.requirement("BX-14")
    def test_every_browser_says_whose_it_is(self, hosted: Hosted, arena: StadiumProcess) -> None:
        hosted.reader.scorecard(target_of(arena, "crex"))
        (ours,) = [browser for browser in tagged_browsers() if browser.owner == hosted.host.options.owner]
        assert ours.pid == hosted.host.pid
        assert ours.process_count > 2
        assert ours.memory_bytes > 50_000_000

    def test_a_process_without_the_tag_is_never_ended(self, zoo: Zoo) -> None:
        somebody = zoo.start(owner=None)
        assert end_tree(somebody.pid) == 0
        assert is_alive(somebody)


@pytest.mark.requirement("FR-009", "BX-14", "US2.4")
@pytest.mark.django_db
def test_only_browsers_whose_worker_is_gone_are_ended(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    me, tag = owner_id(), uuid.uuid4().hex[:6]
    orphan = zoo.start_and_orphan(f"{HERE}-PID-{tag}")
    healthy, foreign, untagged = zoo.start(me), zoo.start(f"another-machine-999999999-{tag}"), zoo.start(None)
    tree = [orphan, *orphan.children(recursive=True)]
    # Other tests on this machine have browsers too: only ours are looked at.
    monkeypatch.setattr(
        orphans, "tagged_browsers", lambda: [one for one in tagged_browsers() if one.owner == me or tag in one.owner]
    )
    wait_for(lambda: len([one for one in tagged_browsers() if one.owner == me or tag in one.owner]) == 3)
    told: list[dict[str, Any]] = []

    def listen(**announced: Any) -> None:
        told.append(announced)

    orphan_killed.connect(listen)
    try:
        preview, done, again = StringIO(), StringIO(), StringIO()
        call_command("cleanup_orphans", "--dry-run", stdout=preview)
        assert is_alive(orphan)
        call_command("cleanup_orphans", stdout=done)
        call_command("cleanup_orphans", stdout=again)
    finally:
        orphan_killed.disconnect(listen)
    assert f"pid {orphan.pid} of worker" in preview.getvalue()
    assert "would be ended" in preview.getvalue()
    assert f"pid {orphan.pid} of worker" in done.getvalue()
    assert " MB in " in done.getvalue()
    assert again.getvalue() == "no orphaned browsers\n"
    assert not any(is_alive(process) for process in tree)
    assert all(is_alive(process) for process in (healthy, foreign, untagged))
    assert [(one["pid"], one["dry_run"]) for one in told] == [(orphan.pid, True), (orphan.pid, False)]
    assert all(one["memory_bytes"] > 0 for one in told)
