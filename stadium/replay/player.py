"""Replays recordings as live matches through stadium, browser, adapters, database and API, and compares the outcome.

The system is started as a process and read through its API, like any installation: this module imports none of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

from stadium.config import CRICKET_SITES
from stadium.matches.clock import MAX_PACE
from stadium.replay.comparison import ENDED, ReplayResult, compare
from stadium.replay.recording import InvalidRecordingError, Recording, load
from victoryline_client import Client, Problem

PROJECT_ROOT = Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1
START_SECONDS = 90.0
STOP_SECONDS = 20.0
REPORT_EVERY_SECONDS = 10.0
CHECK_EVERY_SECONDS = 2.0
SETTLE_SECONDS = 240.0  # after the last ball, for missing data to arrive
OUTAGE_AT = 0.4  # share played of the match that is furthest
# A replay writes to its own folder only, not to the configured database.
EXTERNAL_SETTINGS = ("DATABASE_URL", "REDIS_URL", "CONFIG_FILE")
# At high speed a break takes seconds, and an outage of a minute is most of the match.
SETTINGS = {
    "POLLING_INTERVAL_SECONDS": "1",
    "RATE_LIMIT_STANDARD_PER_MINUTE": "100000",  # each comparison reads the whole feed
    "RATE_LIMIT_PREMIUM_PER_MINUTE": "100000",  # never below that
    "BREAK_INTERVAL_SECONDS": "2.5",
    "ERROR_CALM_SECONDS": "3",
    "DISCOVERY_INTERVAL_SECONDS": "10",
    "CIRCUIT_BREAKER_TIMEOUT_SECONDS": "10",
    "SOURCE_BREAKER_COOLDOWN_SECONDS": "10",
    "RETRY_MAX_ATTEMPTS": "5",
    "DEMO": "false",
    "HOST": "127.0.0.1",
    "ENABLE_PROMETHEUS_METRICS": "false",
}


class ReplayError(Exception):
    """The replay can't continue; the message is for operators."""


@dataclass(frozen=True)
class ReplayPlan:
    """Recordings, speed, sites, and the faults during the replay."""

    files: tuple[Path, ...]
    speed: float
    sites: tuple[str, ...] = ("crex",)
    outage_seconds: float = 0.0
    mistakes: float = 0.0  # share of balls that all sites except the first show wrongly


def recordings_in(path: Path) -> list[Path]:
    """Returns the recordings of a folder, or the one file."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise InvalidRecordingError(f"{path} contains no .json file")
    return files


def make_plan(path: Path, *, speed: float, sites: str, outage: float, mistakes: float) -> ReplayPlan:
    """Returns the plan of `manage.py replay`, or raises ReplayError with the option that is wrong."""
    options = {"speed": (speed, 1, MAX_PACE), "mistakes": (mistakes, 0, 1), "outage": (outage, 0, 3600)}
    for name, (value, least, most) in options.items():
        if not least <= value <= most:
            raise ReplayError(f"--{name} is {value:g}; it must be from {least:g} to {most:g}")
    chosen = tuple(site.strip() for site in sites.split(",") if site.strip())
    if unknown := [site for site in chosen if site not in CRICKET_SITES]:
        raise ReplayError(f"--sites: {', '.join(unknown)} is none of {', '.join(CRICKET_SITES)}")
    if not chosen:
        raise ReplayError(f"--sites is empty; name one or more of {', '.join(CRICKET_SITES)}")
    if not path.exists():
        raise ReplayError(f"There is no {path.resolve()}; nothing was started.")
    return ReplayPlan(tuple(recordings_in(path.resolve())), speed, chosen, outage, mistakes)


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a private system, without settings that point outside its folder."""
    return {**os.environ, **dict.fromkeys(EXTERNAL_SETTINGS, ""), **own}


def play(plan: ReplayPlan, folder: Path, *, log: Callable[[str], None]) -> list[ReplayResult]:
    """Plays all recordings at the same time, to their end. The data of the system stay in `folder`."""
    recordings = {file.stem: load(file) for file in plan.files}
    with ReplaySystem(folder, plan) as system:
        count = "1 match" if len(recordings) == 1 else f"{len(recordings)} matches"
        log(f"{count} at {plan.speed:g} times real time; API at {system.url}, scratch in {folder}")
        shown = system.stadium("/truth/matches")
        keys = {str(one["recording"]): f"{one['site']}_{one['key']}" for one in reversed(shown) if one.get("recording")}
        if absent := recordings.keys() - keys.keys():
            raise ReplayError(f"the stadium does not play {', '.join(sorted(absent))}")
        if plan.mistakes:
            for site in plan.sites[1:]:
                system.stadium("/control/distortions", {"site": site, "mistakes": plan.mistakes})
        _watch(system, plan, keys, recordings, log)
        return [system.compared(recordings[name], keys[name]) for name in sorted(recordings)]


def _watch(
    system: ReplaySystem,
    plan: ReplayPlan,
    keys: dict[str, str],
    recordings: dict[str, Recording],
    log: Callable[[str], None],
) -> None:
    """Waits until every match has ended at the source and is correct at the API, or until the time limit."""
    reported_at, settled_at, had_outage = 0.0, 0.0, plan.outage_seconds == 0
    correct: set[str] = set()
    while True:
        system.check()
        truth = {one["recording"]: one for one in system.stadium("/truth/matches") if one.get("recording")}
        ended = {name for name in recordings if truth[name]["status"] in ENDED}
        if not had_outage and max(float(one["played"]) for one in truth.values()) >= OUTAGE_AT:
            had_outage = True
            log(f"all sites are unavailable for {plan.outage_seconds:g} s")
            system.stadium("/control/faults", {"kind": "status", "value": 503, "seconds": plan.outage_seconds})
        correct |= {name for name in ended - correct if system.compared(recordings[name], keys[name]).is_correct}
        if len(ended) == len(recordings):
            settled_at = settled_at or time.monotonic()
            if correct == ended or time.monotonic() - settled_at > SETTLE_SECONDS:
                return
        if time.monotonic() - reported_at >= REPORT_EVERY_SECONDS:
            reported_at = time.monotonic()
            log(f"ended: {len(ended)} of {len(recordings)}, correct to the last ball: {len(correct)}")
        time.sleep(CHECK_EVERY_SECONDS)


def summary(results: Sequence[ReplayResult]) -> dict[str, int]:
    names = ("expected", "present", "missing", "doubled", "wrong")
    return {name: sum(getattr(one, name) for one in results) for name in names}


def table(results: Sequence[ReplayResult]) -> Iterator[str]:
    """Yields the lines of a table with one row for each match, and its differences below it."""
    names = ("expected", "present", "missing", "doubled", "wrong", "overs", "corrections")
    width = max(len(one.name) for one in results)
    yield f"{'match':{width}}  " + "  ".join(f"{name:>11}" for name in names)
    for one in results:
        figures = "  ".join(f"{getattr(one, name):>11}" for name in names)
        yield f"{one.name:{width}}  {figures}  {'right' if one.is_correct else 'WRONG'}"
        yield from (f"{'':{width}}    {text}" for text in one.differences)


class ReplaySystem:
    """A private system: stadium, web and engine in a scratch folder, on free ports; stopped in any case."""

    def __init__(self, folder: Path, plan: ReplayPlan) -> None:
        self.folder, self._plan = folder, plan
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stadium_url = self.url = ""

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start_stadium()
            self._start_system()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self._processes:
            process = self._processes.pop()
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def stadium(self, path: str, body: Any = None) -> Any:
        method = "GET" if body is None else "POST"
        return httpx.request(method, f"{self._stadium_url}{path}", json=body, timeout=30).raise_for_status().json()

    def compared(self, recording: Recording, match_id: str) -> ReplayResult:
        """Compares the match and its complete feed, as the API serves them now, with the recording."""
        try:
            match = self._client.match(match_id).data
        except Problem as error:
            if error.status != 404:
                raise
            result = ReplayResult(recording.name, expected=len(recording.balls), missing=len(recording.balls))
            result.add_difference("the API does not have the match")
            return result
        rows: list[Mapping[str, Any]] = []
        since, has_more = 0, True
        while has_more:
            page = self._client.match(match_id, "events", since=since, limit=100).data
            rows += page["events"]
            since, has_more = page["next_since"], page["has_more"]
        return compare(recording, match, rows)

    def check(self) -> None:
        for process in self._processes:
            if process.poll() is not None:
                raise ReplayError(f"A process ended unexpectedly (code {process.returncode}); logs: {self.folder}")

    def _start_stadium(self) -> None:
        plan, port_file = self._plan, self.folder / "stadium.port"
        paths = {str(file.parent if len(plan.files) > 1 else file) for file in plan.files}
        if len(paths) != 1:
            raise ReplayError("all recordings must be in one folder")
        options = ["--replay", paths.pop(), "--speed", f"{plan.speed:g}", "--sites", ",".join(plan.sites)]
        command = ("-m", "stadium", "--port", "0", "--port-file", str(port_file), *options)
        self._spawn("stadium", command, {}, is_ready=lambda: port_file.exists() and port_file.read_text("utf-8") != "")
        self._stadium_url = f"http://127.0.0.1:{int(port_file.read_text(encoding='utf-8'))}"

    def _start_system(self) -> None:
        with socket.socket() as trial:
            trial.bind(("127.0.0.1", 0))
            port = str(trial.getsockname()[1])
        self.url = f"http://127.0.0.1:{port}"
        variables, access = self.folder / "var", self.folder / "var" / "demo.json"
        own = {"VAR_DIR": str(variables), "PORT": port, "STADIUM_URL": self._stadium_url, **SETTINGS}

        def is_ready() -> bool:
            try:
                return access.exists() and httpx.get(f"{self.url}/health/ready", timeout=5).is_success
            except httpx.TransportError:
                return False

        self._spawn("system", ("manage.py", "run", "--with-parent"), own, is_ready=is_ready)
        key = json.loads(access.read_text(encoding="utf-8"))["api_key"]
        self._client = Client(self.url, key, attempts=10, timeout=30.0)

    def _spawn(
        self, name: str, command: Sequence[str], env: Mapping[str, str], *, is_ready: Callable[[], bool]
    ) -> None:
        path = self.folder / f"{name}.log"
        with path.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *command],
                env=environment(env),
                cwd=PROJECT_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_stop_with_parent,  # noqa: PLW1509 - a system call
            )
        self._processes.append(process)
        deadline = time.monotonic() + START_SECONDS
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                text = path.read_text(encoding="utf-8", errors="replace")
                raise ReplayError(f"The {name} did not start:\n{text[-2000:]}")
            time.sleep(0.1)


def _stop_with_parent() -> None:
    """Asks the kernel to stop this process when its parent is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
