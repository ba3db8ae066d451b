"""CDP mode with a real Chromium and its debugging port: our own, or an external one."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from playwright.async_api import Playwright, async_playwright

from scraping.browser.launcher import PROFILE_PREFIX, BrowserOptions, Launched, launch
from scraping.browser.processes import tagged_browsers
from scraping.errors import ResourceLost
from scraping.readings import Reading, ReadMode
from tests.processes import end_group
from tests.scraping.browser.local_servers import LIVE, LocalSite, Worker
from tests.scraping.browser.loops import on_a_loop
from victoryline.lib.processes import spawn

pytestmark = [pytest.mark.slow, pytest.mark.requirement("FS-20")]

PAGE = "data:text/html,<title>found</title>"


@pytest.fixture
def options(chromium_program: Path) -> BrowserOptions:
    return BrowserOptions(executable=chromium_program, owner=f"cdp-{uuid.uuid4().hex[:8]}", uses_cdp=True)


@pytest.fixture(scope="module")
def foreign(
    chromium_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """An external browser and its endpoint."""
    profile = tmp_path_factory.mktemp("foreign")
    command = [
        chromium_program,
        "--headless=new",
        "--no-sandbox",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
    ]
    process = spawn(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    note, deadline = profile / "DevToolsActivePort", time.monotonic() + 20
    while not (note.exists() and len(note.read_text().splitlines()) == 2):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield process, f"http://127.0.0.1:{note.read_text().splitlines()[0]}"
    end_group(process, grace_seconds=2)


@asynccontextmanager
async def started(options: BrowserOptions) -> AsyncIterator[tuple[Playwright, Launched]]:
    async with async_playwright() as playwright:
        launched = await launch(playwright, options)
        try:
            yield playwright, launched
        finally:
            await launched.close()


def is_alive(process: psutil.Process) -> bool:
    """A zombie counts as ended: it holds no resources."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def folders() -> set[str]:
    """Returns the existing profile folders."""
    return {str(found) for found in Path(tempfile.gettempdir()).glob(f"{PROFILE_PREFIX}*")}


async def title_in_a_context(launched: Launched) -> str:
    context = await launched.browser.new_context(locale="de-DE")
    page = await context.new_page()
    await page.goto(PAGE)
    return await page.title()


class TestOwnBrowser:
    @pytest.mark.faults_only
    @on_a_loop
    async def test_is_started_tagged_used_and_ended_with_its_folder(self, options: BrowserOptions) -> None:
        async with started(options) as (_, launched):
            assert await title_in_a_context(launched) == "found"
            assert [one.pid for one in tagged_browsers() if one.owner == options.owner] == [launched.pid]
            assert launched.pid is not None
            switches = psutil.Process(launched.pid).cmdline()
            profile = next(one for one in switches if one.startswith("--user-data-dir=")).partition("=")[2]
            assert profile in folders()
            tree = [psutil.Process(launched.pid), *psutil.Process(launched.pid).children(recursive=True)]
        assert not [process for process in tree if is_alive(process)]
        assert profile not in folders()

    @on_a_loop
    @pytest.mark.faults_only
    async def test_one_that_dies_at_once_is_a_lost_resource_and_leaves_nothing(self, options: BrowserOptions) -> None:
        broken = BrowserOptions(Path("/bin/false"), options.owner, uses_cdp=True)
        before = folders()
        async with async_playwright() as playwright:
            with pytest.raises(ResourceLost, match="ended with code 1"):
                await launch(playwright, broken)
        assert folders() <= before


class TestExternalBrowser:
    @on_a_loop
    @pytest.mark.faults_only
    async def test_is_used_and_never_ended(
        self, options: BrowserOptions, foreign: tuple[subprocess.Popen[bytes], str]
    ) -> None:
        process, endpoint = foreign
        theirs = BrowserOptions(options.executable, options.owner, uses_cdp=True, cdp_endpoint=endpoint)
        async with started(theirs) as (_, launched):
            assert launched.pid is None
            assert await title_in_a_context(launched) == "found"
            assert not [one for one in tagged_browsers() if one.owner == options.owner]
        assert process.poll() is None
        async with started(theirs) as (_, again):  # it still runs, without our contexts
            session = await again.browser.new_browser_cdp_session()
            assert not (await session.send("Target.getBrowserContexts"))["browserContextIds"]
            targets = (await session.send("Target.getTargets"))["targetInfos"]
            assert "found" not in {target["title"] for target in targets}

    @on_a_loop
    async def test_an_unreachable_one_is_named_without_its_secret(self, options: BrowserOptions) -> None:
        nowhere = BrowserOptions(
            options.executable,
            options.owner,
            uses_cdp=True,
            cdp_endpoint="ws://127.0.0.1:1/devtools?token=hushhush",
            launch_timeout_seconds=3,
        )
        assert "hushhush" not in repr(nowhere)
        async with async_playwright() as playwright:
            with pytest.raises(ResourceLost, match=r"127\.0\.0\.1:1 could not be reached") as caught:
                await launch(playwright, nowhere)
        assert "hushhush" not in str(caught.value)
        assert caught.value.__cause__ is None


class TestReads:
    """Host, session, forward proxy, page, and the direct read after it."""

    def read(self, worker: Worker, site: LocalSite) -> tuple[ReadMode, ...]:
        sessions, source = worker.sessions(), site.as_source()

        async def both() -> tuple[Reading, Reading]:
            session = await sessions.get(source, is_visit=True)
            visited = await session.visit(site.match, (LIVE,))
            return visited, await session.request(site.match, tuple(visited.requests.values()))

        readings = worker.run(both())
        assert all(reading.documents["live"].json() == {"score": "92/1"} for reading in readings)
        assert readings[0].requests_blocked == 2
        return tuple(reading.mode for reading in readings)

    @pytest.mark.faults_only
    def test_through_an_own_browser(self, chromium_program: Path, local_site: LocalSite) -> None:
        worker = Worker(chromium_program, uses_cdp=True)
        try:
            assert self.read(worker, local_site) == (ReadMode.VISIT, ReadMode.DIRECT)
            assert worker.host.pid is not None
            top = psutil.Process(worker.host.pid)
        finally:
            worker.close()
        assert not is_alive(top)

    def test_through_an_external_browser(
        self, chromium_program: Path, local_site: LocalSite, foreign: tuple[subprocess.Popen[bytes], str]
    ) -> None:
        process, endpoint = foreign
        worker = Worker(chromium_program, uses_cdp=True, cdp_endpoint=endpoint)
        try:
            assert self.read(worker, local_site) == (ReadMode.VISIT, ReadMode.DIRECT)
            assert worker.host.pid is None
        finally:
            worker.close()
        assert process.poll() is None


@pytest.mark.parametrize(
    ("endpoint", "has_forward_proxy"),
    [
        ("", True),
        ("http://127.0.0.1:9222", True),
        ("ws://localhost:9222/devtools/browser/x", True),
        ("wss://browsers.example/x", False),
    ],
)
def test_a_browser_on_another_machine_uses_no_forward_proxy(endpoint: str, has_forward_proxy: bool) -> None:
    assert BrowserOptions(Path("x"), "w", uses_cdp=True, cdp_endpoint=endpoint).has_forward_proxy is has_forward_proxy
