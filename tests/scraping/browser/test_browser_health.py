"""Browser health with real processes: crashed, hung and worn browsers are replaced and leave nothing behind.

The tests stop and kill Chromium and Playwright's driver, and check processes, folders and readings.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from django.utils import timezone
from prometheus_client import REGISTRY

from scraping.browser import host as host_module
from scraping.browser.health import LaunchCause, RecyclePolicy
from scraping.browser.memory_guard import MemoryAction, MemoryGuard, MemoryLimits
from scraping.browser.processes import TreeMemory, profile_of, tagged_browsers
from scraping.errors import PageCrashed, ReadTimeout, ResourceLost
from scraping.models import CommandKind, WorkerCommand
from scraping.policies.timeouts import Timeouts
from scraping.reading.reader import Target
from scraping.readings import ReadMode
from scraping.recovery import worker_commands
from scraping.worker.upkeep import CommandRunner
from tests.patience import stretched, wait_for
from tests.scraping.hosted_browser import (
    Hosted,
    assert_true,
    find_program,
    impatient,
    is_alive,
    is_profile_unused,
    site_at,
    target_of,
)
from tests.stadium_process import StadiumProcess

pytestmark = pytest.mark.slow

POLICY = RecyclePolicy(hung_seconds=2.0, drain_seconds=10.0)
CLEAN_SECONDS = 10.0  # FR-007

Start = Callable[..., Hosted]


@pytest.fixture(scope="module")
def arena() -> Iterator[StadiumProcess]:
    """A stadium with paused matches, so that a reading can be compared with the truth."""
    with StadiumProcess(pace=0) as running:
        yield running


# Generous where a test is not about timeouts: the machine may be busy with other tests.
TIMEOUTS = Timeouts(page_seconds=15, navigation_seconds=15, selector_seconds=3, request_seconds=10)


@pytest.fixture(autouse=True)
def _no_faults(arena: StadiumProcess) -> Iterator[None]:
    yield
    arena.clear()


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a browser host and a reader with their own temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="vl-health-"))
    monkeypatch.setenv("TMPDIR", str(folder))
    started: list[Hosted] = []

    def begin(policy: RecyclePolicy = POLICY, **changes: object) -> Hosted:
        options = replace(impatient(find_program()), **{"timeouts": TIMEOUTS, **changes})
        started.append(Hosted(options, policy, temp_dir=folder))
        return started[-1]

    yield begin
    for hosted in started:
        hosted.close()
    assert [one.folders() for one in started] == [[] for _ in started], "a browser left folders behind"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def hosted(start: Start) -> Hosted:
    return start()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def await_launch(hosted: Hosted, number: int) -> LaunchCause:
    wait_for(lambda: len(hosted.launches) >= number and hosted.host.pid is not None, 30, f"launch {number}")
    assert len(hosted.launches) == number
    return hosted.launches[-1].cause


def both(arena: StadiumProcess) -> tuple[Target, Target]:
    return target_of(arena, "crex"), replace(target_of(arena, "sofascore"), ref_id=2)


def visit_in(pool: ThreadPoolExecutor, hosted: Hosted, target: Target) -> Future[ReadMode]:
    """Starts a visit in a thread; returns when it is under way."""
    before = hosted.host.visits
    visiting = pool.submit(lambda: hosted.visit(target)[0].mode)
    wait_for(lambda: hosted.host.visits > before or visiting.done())
    return visiting


@pytest.mark.requirement("BX-14")
def test_every_browser_carries_its_owner_tag(hosted: Hosted, arena: StadiumProcess) -> None:
    hosted.reader.scorecard(target_of(arena, "crex"))
    (ours,) = [browser for browser in tagged_browsers() if browser.owner == hosted.host.options.owner]
    assert ours.pid == hosted.host.pid
    assert ours.process_count > 2
    assert ours.memory_bytes > 50_000_000


@pytest.mark.fault
@pytest.mark.fault_number(16)
@pytest.mark.requirement("FR-004", "NFR-005")
class TestCrashes:
    @pytest.mark.parametrize("victim", ["browser", pytest.param("driver", marks=pytest.mark.faults_only)])
    def test_direct_reads_continue_and_a_new_browser_is_started(
        self, hosted: Hosted, arena: StadiumProcess, victim: str
    ) -> None:
        targets = both(arena)
        for target in targets:
            hosted.reader.scorecard(target)
        family, profile = hosted.family(), profile_of(hosted.browser.pid)
        getattr(hosted, victim).kill()
        for target in targets:
            reading, payload = hosted.reader.scorecard(target)
            assert reading.mode is ReadMode.DIRECT
            assert_true(payload, arena)
        assert await_launch(hosted, 2) is LaunchCause.DIED
        wait_for(lambda: not any(map(is_alive, family)) and is_profile_unused(profile), CLEAN_SECONDS)
        for target in targets:
            reading, payload = hosted.visit(target)
            assert reading.mode is ReadMode.VISIT
            assert_true(payload, arena)
        assert len(hosted.launches) == 2

    @pytest.mark.faults_only
    def test_a_visit_under_way_fails_as_lost_and_the_next_one_works(
        self, hosted: Hosted, arena: StadiumProcess, pool: ThreadPoolExecutor
    ) -> None:
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        arena.fault(site="crex", target="page", kind="latency", value=2)
        visiting = visit_in(pool, hosted, target)
        hosted.browser.kill()
        with pytest.raises(ResourceLost):
            visiting.result(timeout=stretched(20))
        arena.clear()
        assert_true(hosted.visit_again(target)[1], arena)

    @pytest.mark.faults_only
    def test_a_crashed_renderer_loses_its_page_and_the_second_one_replaces_the_browser(
        self, hosted: Hosted, arena: StadiumProcess, pool: ThreadPoolExecutor
    ) -> None:
        crex, sofascore = both(arena)
        for target in (crex, sofascore):
            hosted.reader.scorecard(target)
        arena.fault(site="crex", target="*", kind="latency", value=2)
        for crash in (1, 2):
            visiting = visit_in(pool, hosted, crex)
            while not visiting.done():  # its page may still be on its way
                for renderer in hosted.renderers():
                    renderer.kill()
                time.sleep(0.2)
            with pytest.raises(PageCrashed):
                visiting.result(timeout=stretched(20))
            if crash == 1:
                assert_true(hosted.visit(sofascore)[1], arena)
                assert len(hosted.launches) == 1, "the browser itself still works"
                time.sleep(host_module.ONE_FAULT_SECONDS)  # pages of one renderer crash together and count once
        arena.clear()
        assert await_launch(hosted, 2) is LaunchCause.FAULTS
        assert_true(hosted.visit(crex)[1], arena)

    @pytest.mark.faults_only
    def test_a_program_that_does_not_start_is_a_lost_resource(self, start: Start, arena: StadiumProcess) -> None:
        hosted = start(executable=Path("/bin/false"), launch_timeout_seconds=5)
        with pytest.raises(ResourceLost, match="could not be started"):
            hosted.reader.scorecard(target_of(arena, "crex"))


@pytest.mark.requirement("FR-007", "US4.3")
class TestStop:
    def test_leaves_no_process_and_no_folder(self, hosted: Hosted, arena: StadiumProcess) -> None:
        hosted.reader.scorecard(target_of(arena, "crex"))
        family = hosted.family()
        assert hosted.folders() != []
        began = time.monotonic()
        hosted.run(hosted.sessions.stop())
        assert time.monotonic() - began < CLEAN_SECONDS
        assert not any(map(is_alive, family))
        assert hosted.folders() == []

    def test_a_visit_leaves_no_page_whether_it_succeeds_or_fails(self, start: Start, arena: StadiumProcess) -> None:
        hosted = start(timeouts=replace(TIMEOUTS, navigation_seconds=2))
        target = target_of(arena, "crex")
        hosted.visit(target)
        arena.fault(site="crex", target="page", kind="hang")
        with pytest.raises(ReadTimeout):
            hosted.visit(target)
        browser, _ = hosted.run(hosted.host.browser())
        wait_for(lambda: not any(context.pages for context in browser.contexts), CLEAN_SECONDS, "no page is left")
        assert hosted.sessions.page_count == 0
        wait_for(
            lambda: hosted.sessions.context_count == 0, CLEAN_SECONDS, "the context is replaced after the time-out"
        )

    @pytest.mark.faults_only
    def test_starts_no_other_browser(self, hosted: Hosted, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        hosted.run(hosted.host.stop())
        with pytest.raises(ResourceLost, match="stopping"):
            hosted.visit(target)


@pytest.mark.fault
@pytest.mark.fault_number(17)
@pytest.mark.requirement("FR-004")
class TestHangs:
    @pytest.mark.faults_only
    def test_a_hung_browser_is_found_without_a_visit(self, hosted: Hosted, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        frozen, profile = hosted.browser, profile_of(hosted.browser.pid)
        frozen.suspend()
        while len(hosted.launches) < 2:
            reading, payload = hosted.reader.scorecard(target)
            assert reading.mode is ReadMode.DIRECT
            assert_true(payload, arena)
            time.sleep(0.1)
        assert await_launch(hosted, 2) is LaunchCause.HUNG
        assert not is_alive(frozen)
        wait_for(lambda: is_profile_unused(profile) and not Path(profile).exists(), CLEAN_SECONDS)
        assert_true(hosted.visit(target)[1], arena)

    @pytest.mark.faults_only
    def test_a_visit_in_a_hung_browser_fails_soon(self, start: Start, arena: StadiumProcess) -> None:
        hosted = start(timeouts=replace(TIMEOUTS, navigation_seconds=6))
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        hosted.browser.suspend()
        began = time.monotonic()
        assert_true(hosted.visit_again(target)[1], arena)
        assert time.monotonic() - began < stretched(45)
        assert len(hosted.launches) == 2

    @pytest.mark.faults_only
    def test_a_page_in_a_busy_loop_affects_no_other_visit(self, hosted: Hosted, arena: StadiumProcess) -> None:
        crex, sofascore = both(arena)
        hosted.reader.scorecard(crex)

        async def run_wild() -> None:
            session = await hosted.sessions.get(site_at(arena, "crex"))
            page = await (await session.open_context()).new_page()
            await page.goto("data:text/html,<h1>x</h1>")
            await page.evaluate("setTimeout(() => { for (;;); }, 0)")

        hosted.run(run_wild())
        for target in (crex, sofascore):
            assert_true(hosted.visit(target)[1], arena)
        assert len(hosted.launches) == 1

    @pytest.mark.faults_only
    def test_a_page_that_never_loads_fails_only_its_own_visit(
        self, start: Start, arena: StadiumProcess, pool: ThreadPoolExecutor
    ) -> None:
        hosted = start(timeouts=replace(TIMEOUTS, navigation_seconds=6))
        crex, sofascore = both(arena)
        hosted.reader.scorecard(sofascore)
        arena.fault(site="crex", target="page", kind="hang")
        visiting = visit_in(pool, hosted, crex)
        assert_true(hosted.visit(sofascore)[1], arena)
        assert not visiting.done()
        with pytest.raises(ReadTimeout):
            visiting.result(timeout=stretched(20))
        assert len(hosted.launches) == 1


@pytest.mark.requirement("FR-010", "US1.3", "US2.1")
class TestDraining:
    def test_a_worn_browser_finishes_its_visits_and_new_ones_get_the_next(
        self, hosted: Hosted, arena: StadiumProcess, pool: ThreadPoolExecutor
    ) -> None:
        crex, sofascore = both(arena)
        for target in (crex, sofascore):
            hosted.reader.scorecard(target)
        arena.fault(site="crex", target="page", kind="latency", value=2)
        under_way = visit_in(pool, hosted, crex)
        hosted.loop.call_soon_threadsafe(hosted.host.recycle, LaunchCause.AGE, "it has run for long")
        wait_for(lambda: not hosted.host._may_visit.is_set())
        new = pool.submit(lambda: (hosted.visit(sofascore)[0].mode, len(hosted.launches)))
        assert len(hosted.launches) == 1
        assert under_way.result(timeout=stretched(20)) is ReadMode.VISIT, "the visit was not aborted"
        assert new.result(timeout=stretched(20)) == (ReadMode.VISIT, 2)
        assert hosted.launches[-1].cause is LaunchCause.AGE

    @pytest.mark.faults_only
    def test_draining_ends_after_its_time_limit(
        self, start: Start, arena: StadiumProcess, pool: ThreadPoolExecutor
    ) -> None:
        hosted = start(replace(POLICY, drain_seconds=0.5), timeouts=replace(TIMEOUTS, navigation_seconds=30))
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        arena.fault(site="crex", target="page", kind="hang")
        visiting = visit_in(pool, hosted, target)
        hosted.loop.call_soon_threadsafe(hosted.host.recycle, LaunchCause.AGE, "it has run for long")
        with pytest.raises(ResourceLost):
            visiting.result(timeout=stretched(20))
        await_launch(hosted, 2)

    @pytest.mark.faults_only
    def test_direct_reads_continue_during_a_replacement(self, hosted: Hosted, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        hosted.reader.scorecard(target)
        slowest = 0.0
        hosted.loop.call_soon_threadsafe(hosted.host.recycle, LaunchCause.AGE, "it has run for long")
        while len(hosted.launches) < 2:
            began = time.monotonic()
            assert hosted.reader.scorecard(target)[0].mode is ReadMode.DIRECT
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < stretched(1.5)  # far below what closing and starting a browser take, on a busy machine too

    @pytest.mark.faults_only
    def test_a_browser_is_replaced_after_its_last_page(self, start: Start, arena: StadiumProcess) -> None:
        hosted = start(replace(POLICY, max_pages=2))
        target = target_of(arena, "crex")
        for _ in range(2):
            hosted.visit(target)
        assert await_launch(hosted, 2) is LaunchCause.PAGES
        assert_true(hosted.visit(target)[1], arena)


class _Stopped:
    """A worker double that records requests to stop or kill it."""

    def __init__(self) -> None:
        self.stops = self.kills = 0

    def stop(self) -> None:
        self.stops += 1

    def kill(self) -> None:
        self.kills += 1


class TestMemory:
    def guard(self, hosted: Hosted, limits: MemoryLimits, worker: _Stopped, clock: Callable[[], float]) -> MemoryGuard:
        return MemoryGuard(
            hosted.host,
            limits,
            on_loop=hosted.loop.call_soon_threadsafe,
            stop_worker=worker.stop,
            kill_worker=worker.kill,
            clock=clock,
        )

    @pytest.mark.requirement("FR-006", "US2.1")
    def test_above_the_soft_limit_the_browser_is_replaced_and_then_the_worker(
        self, hosted: Hosted, arena: StadiumProcess
    ) -> None:
        hosted.reader.scorecard(target_of(arena, "crex"))
        worker, now = _Stopped(), [1000.0]
        limits = MemoryLimits(soft_bytes=1, hard_bytes=1 << 50, settle_seconds=30, min_worker_seconds=0)
        guard = self.guard(hosted, limits, worker, lambda: now[0])
        assert guard.check() is MemoryAction.REPLACE_BROWSER
        assert guard.tree_bytes > 100_000_000
        assert await_launch(hosted, 2) is LaunchCause.MEMORY
        now[0] += 10
        assert guard.check() is MemoryAction.WARN, "a new browser is not replaced at once"
        now[0] += 30
        assert guard.check() is MemoryAction.STOP_WORKER
        guard.check()
        assert (worker.stops, worker.kills) == (1, 0)

    @pytest.mark.requirement("FR-006")
    def test_above_the_hard_limit_the_browser_is_killed_at_once(self, hosted: Hosted, arena: StadiumProcess) -> None:
        hosted.reader.scorecard(target_of(arena, "crex"))
        worker, now, family = _Stopped(), [1000.0], hosted.family()[1:]
        guard = self.guard(hosted, MemoryLimits(1, 2), worker, lambda: now[0])
        assert guard.check() is MemoryAction.KILL_BROWSER
        assert not any(map(is_alive, family))
        assert await_launch(hosted, 2) is LaunchCause.DIED
        now[0] += 60
        assert guard.check() is MemoryAction.KILL_WORKER
        assert (worker.stops, worker.kills) == (0, 1)

    @pytest.mark.requirement("NFR-002", "DM-1")
    def test_shared_memory_is_counted_once(self, hosted: Hosted, arena: StadiumProcess) -> None:
        """PSS is more than the private memory and less than the sum of RSS."""
        hosted.reader.scorecard(target_of(arena, "crex"))
        measured, count = TreeMemory(hosted.driver.pid).read()
        tree = hosted.family()
        alone = [process.memory_info() for process in tree]
        assert abs(count - len(tree)) <= 2, "a renderer may come or go meanwhile"
        assert sum(one.rss - one.shared for one in alone) * 0.8 < measured < sum(one.rss for one in alone)


@pytest.mark.requirement("FR-021", "FR-023")
class TestAdaptiveTimeouts:
    @pytest.mark.faults_only
    def test_a_slow_source_gets_longer_timeouts(self, start: Start, arena: StadiumProcess) -> None:
        hosted = start(timeouts=replace(TIMEOUTS, navigation_seconds=1))
        for _ in range(10):
            hosted.host.timeouts.record("crex", 2.5)
        arena.fault(site="crex", target="page", kind="hang")
        with pytest.raises(ReadTimeout, match="1500ms"):
            hosted.visit(target_of(arena, "crex"))

    @pytest.mark.faults_only
    def test_latencies_are_recorded(self, hosted: Hosted, arena: StadiumProcess) -> None:
        target = target_of(arena, "crex")
        for _ in range(12):
            hosted.reader.scorecard(target)
        usual, now = TIMEOUTS.request_seconds, hosted.host.timeouts.of("crex")
        assert now.request_seconds == pytest.approx(usual * 0.8)


@pytest.mark.fault
@pytest.mark.fault_number(18)
@pytest.mark.requirement("FR-007", "US4.3")
class TestSoak:
    """Many pages with crashes: processes, files, folders and threads return to the baseline."""

    @pytest.mark.parametrize(
        ("pages", "crash_every"),
        [
            pytest.param(12, 5, marks=pytest.mark.faults_only),
            pytest.param(1000, 50, marks=[pytest.mark.faults_only, pytest.mark.timeout(1200)]),
        ],
    )
    def test_leaves_no_processes_folders_or_memory(
        self, start: Start, arena: StadiumProcess, pages: int, crash_every: int
    ) -> None:
        hosted = start(replace(POLICY, max_pages=max(10, pages // 10)))
        targets = both(arena)
        for target in targets:
            hosted.visit(target)
        before = self.holdings(hosted)
        for number in range(1, pages + 1):
            reading, payload = hosted.visit_again(targets[number % 2])
            assert reading.mode is ReadMode.VISIT
            assert_true(payload, arena)
            if number % crash_every == 0:
                hosted.browser.kill()
        wait_for(lambda: hosted.host.usage is not None and not hosted.host._tasks, CLEAN_SECONDS)
        hosted.visit_again(targets[0])
        wait_for(lambda: not self.more(hosted, before), CLEAN_SECONDS, f"{before} -> {self.holdings(hosted)}")
        late = REGISTRY.get_sample_value("victoryline_browser_cleanup_late_total")
        assert late == 0
        assert len(hosted.launches) > pages // crash_every

    def holdings(self, hosted: Hosted) -> dict[str, int]:
        return {
            "processes": len(hosted.family()),
            "folders": len(hosted.folders()),
            "threads": threading.active_count(),
            "tasks": hosted.run(_task_count()),
        }

    def more(self, hosted: Hosted, before: dict[str, int]) -> dict[str, int]:
        slack = {"processes": 3, "threads": 8, "tasks": 3}  # a spare renderer, the thread pool
        now = self.holdings(hosted)
        return {name: now[name] for name in now if now[name] > before[name] + slack.get(name, 0)}


async def _task_count() -> int:
    return len(asyncio.all_tasks())


@pytest.mark.django_db(transaction=True)
@pytest.mark.requirement("BX-18")
class TestWorkerCommands:
    """Commands of the scheduler or an operator, which the heartbeat of the worker runs."""

    @staticmethod
    def run_command(hosted: Hosted, kind: CommandKind, until: str, source_key: str = "") -> WorkerCommand:
        runner = CommandRunner(hosted.sessions, worker_id="w1", on_loop=hosted.loop.call_soon_threadsafe)
        asked = {"worker_id": "w1", "reason": "a match is silent", "actor": "ada", "now": timezone.now()}
        worker_commands.issue(kind, source_key=source_key, **asked)

        def is_done() -> bool:
            runner.run_waiting(now=timezone.now())
            return WorkerCommand.objects.get().done_at is not None

        wait_for(is_done, 30, until)
        return WorkerCommand.objects.get()

    def test_a_recycled_browser_continues_to_read(self, hosted: Hosted, arena: StadiumProcess) -> None:
        crex, _ = both(arena)
        hosted.visit(crex)
        old = hosted.host.pid
        command = self.run_command(hosted, CommandKind.RECYCLE_BROWSER, "a fresh browser")
        assert command.outcome == "browser 2 took its place"
        assert await_launch(hosted, 2) is LaunchCause.COMMAND
        assert hosted.host.pid != old
        figures = hosted.host.last_replacement.as_metadata()
        assert figures["pids_before"] > 1
        assert figures["pids_after"] > 1
        assert figures["task_count"] == 1
        assert hosted.visit(crex)[0].mode is ReadMode.VISIT

    def test_a_fresh_session_replaces_the_old_one_at_the_next_visit(
        self, hosted: Hosted, arena: StadiumProcess
    ) -> None:
        crex, _ = both(arena)
        hosted.visit(crex)
        before = hosted.run(hosted.sessions.get(crex.site)).session_id
        self.run_command(hosted, CommandKind.FRESH_SESSION, "the command was taken", source_key=crex.site.key)
        assert hosted.run(hosted.sessions.get(crex.site)).session_id == before, "it serves until the next visit"
        first, second = (hosted.reader.scorecard(crex)[0] for _ in range(2))
        assert (first.mode, second.mode) == (ReadMode.VISIT, ReadMode.DIRECT)
        assert first.session_id == second.session_id != before
