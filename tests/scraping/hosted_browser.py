"""A browser host on its own loop thread, with a reader, as in a worker."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import uuid
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import psutil

from scraping.browser.health import HealthMonitor, RecyclePolicy
from scraping.browser.host import BrowserHost, Replacement
from scraping.browser.launcher import BrowserOptions
from scraping.browser.processes import LEFTOVERS, using_profile
from scraping.browser.sessions import Sessions
from scraping.errors import ResourceLost
from scraping.payloads import Payload
from scraping.policies.timeouts import Timeouts
from scraping.reading.reader import Reader, Target
from scraping.readings import Reading, RefInfo, Site
from scraping.sources import adapter_for
from tests.patience import stretched
from tests.stadium_process import StadiumProcess
from victoryline.lib import chromium, identity

T = TypeVar("T")
PHASES = {"in_play": "play", "first_half": "play", "second_half": "play", "toss": "scheduled"}
HEADLINES = ("period:45:First half", "period:90:Second half")
HERE = identity.new_name().rsplit("-", 2)[0]  # the machine part of a worker id
CHECK_SECONDS = 0.25


class Hosted:
    def __init__(
        self, options: BrowserOptions, recycle_policy: RecyclePolicy | None = None, *, temp_dir: Path | None = None
    ) -> None:
        """`recycle_policy`: starts the health monitor with it; `temp_dir`: the TMPDIR of this test alone."""
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.launches: list[Replacement] = []
        self.temp_dir = temp_dir
        self.host = BrowserHost(options, self.launches.append, recycle_policy=recycle_policy, own_temp_dir=temp_dir)
        self._health_monitor = HealthMonitor(self.host, every_seconds=CHECK_SECONDS)
        if recycle_policy is not None:
            self.run(self._start_monitor())
        self.sessions = Sessions(self.host)
        self.reader = Reader(self.sessions, self.run)

    async def _start_monitor(self) -> None:
        self._health_monitor.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout=stretched(90))

    def close(self) -> None:
        self.run(self._health_monitor.stop())
        self.run(self.sessions.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=stretched(10))
        self.loop.close()

    @property
    def browser(self) -> psutil.Process:
        assert self.host.pid is not None
        return psutil.Process(self.host.pid)

    @property
    def driver(self) -> psutil.Process:
        return self.browser.parents()[0]

    def family(self) -> list[psutil.Process]:
        """The driver, the browser and all of its processes."""
        return [self.driver, self.browser, *self.browser.children(recursive=True)]

    def renderers(self) -> list[psutil.Process]:
        return [each for each in self.browser.children(recursive=True) if "--type=renderer" in cmdline(each)]

    def folders(self) -> list[str]:
        """Returns the folders of browsers in the temporary folder of this test."""
        assert self.temp_dir is not None
        return sorted(each.name for each in self.temp_dir.iterdir() if each.name.startswith(LEFTOVERS))

    def visit(self, target: Target) -> tuple[Reading, Payload]:
        """Reads with a visit, even if a direct read is possible."""
        return self.reader.scorecard(replace(target, is_fresh=True))

    def visit_again(self, target: Target) -> tuple[Reading, Payload]:
        """Visits again after a lost browser, as a task does."""
        for _ in range(3):
            try:
                return self.visit(target)
            except ResourceLost:
                time.sleep(0.2)
        raise AssertionError("the browser did not come back")


def cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def find_program() -> Path:
    found = chromium.find(chosen=None, var_dir=Path("var"))
    assert found is not None, "no Chromium on this machine; make run installs one"
    return found


def owner_id(pid: int | None = None) -> str:
    """Returns an id like that of a worker."""
    return f"{HERE}-{pid or os.getpid()}-{uuid.uuid4().hex[:6]}"


def impatient(program: Path) -> BrowserOptions:
    return BrowserOptions(
        executable=program,
        owner=owner_id(),
        timeouts=Timeouts(page_seconds=4, navigation_seconds=4, selector_seconds=3, request_seconds=2),
    )


def site_at(arena: StadiumProcess, key: str) -> Site:
    return Site(key, f"{arena.url}/{key}", allows_private=True)


def target_of(arena: StadiumProcess, site: str) -> Target:
    shown = next(match for match in arena.matches() if (match["site"], match["status"]) == (site, "live"))
    return Target(1, site_at(arena, site), RefInfo(shown["key"], shown["url"]), adapter_for(site))


def assert_true(payload: Payload, arena: StadiumProcess) -> None:
    """Asserts that the payload agrees with the stadium's truth."""
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


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def is_profile_unused(profile: str) -> bool:
    return not [process for process in using_profile(profile) if is_alive(process)]
