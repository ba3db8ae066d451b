"""Browser processes: ownership, memory, termination, and the cleanup after a browser has ended.

Guards against browsers that outlive their worker: each Chromium is started with the worker's id among its arguments,
and only process trees with that tag are ended. Guards against leftovers: a hung renderer outlives its browser, a
killed driver removes no folders, and a killed Chromium leaves one. All of it is gone after ten seconds, or is logged.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from prometheus_client import Counter, Histogram

from victoryline.lib.processes import remove_tree

logger = logging.getLogger(__name__)

OWNER_SWITCH = "--victoryline-owner"
PROFILE_SWITCH = "--user-data-dir="
CGROUP = Path("/sys/fs/cgroup")
POLL_SECONDS = 0.02
END_SECONDS = 3.0
CLEANUP_SECONDS = 10.0
POLITE_SECONDS = 2.0  # time for processes that are ending by themselves
LEFTOVERS = ("playwright_", "playwright-artifacts-", "org.chromium.", ".org.chromium.")

_cleanup_seconds = Histogram(
    "victoryline_browser_cleanup_seconds",
    "From the end of a browser until its processes and folders were gone.",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
_late = Counter("victoryline_browser_cleanup_late", "Browsers with processes or folders left after ten seconds.")


@dataclass(frozen=True)
class TaggedBrowser:
    pid: int
    owner: str
    memory_bytes: int
    process_count: int
    created_at: float


def _switch_of(process: psutil.Process, prefix: str) -> str:
    """Returns the value of a switch of a process; empty where it has none or has ended."""
    with contextlib.suppress(psutil.Error, OSError):
        return next((each[len(prefix) :] for each in process.cmdline() if each.startswith(prefix)), "")
    return ""


def _owner_of(process: psutil.Process) -> str:
    return _switch_of(process, f"{OWNER_SWITCH}=")


def browser_pid(owner: str) -> int | None:
    """Returns the main process of the browser that this process started with this tag."""
    return next((one.pid for one in psutil.Process().children(recursive=True) if _owner_of(one) == owner), None)


def tagged_browsers() -> list[TaggedBrowser]:
    """Returns every browser on this machine that carries our tag, by the top process of its tree."""
    owners = {p.pid: (p, owner) for p in psutil.process_iter() if (owner := _owner_of(p))}
    found = []
    for pid, (process, owner) in owners.items():
        with contextlib.suppress(psutil.Error):
            if process.ppid() in owners:
                continue
            tree = [process, *process.children(recursive=True)]
            found.append(TaggedBrowser(pid, owner, sum(map(_pss, tree)), len(tree), process.create_time()))
    return found


def profile_of(pid: int) -> str:
    """Returns the profile folder of a browser, which all of its processes name, also when its top process has died."""
    with contextlib.suppress(psutil.Error):
        return _switch_of(psutil.Process(pid), PROFILE_SWITCH)
    return ""


def using_profile(profile: str) -> list[psutil.Process]:
    """Returns every process of the browser with this profile, also those with another parent by now."""
    return [one for one in psutil.process_iter() if _switch_of(one, PROFILE_SWITCH) == profile] if profile else []


def is_alive(process: psutil.Process) -> bool:
    """False for a zombie, which holds no resources and stays until its parent reads its status."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def tree_size(pid: int | None) -> int:
    """Returns the number of processes of a browser; 0 for an unknown or ended one."""
    with contextlib.suppress(psutil.Error):
        return 1 + len(psutil.Process(pid).children(recursive=True)) if pid is not None else 0
    return 0


def wait_gone(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Waits until all have ended; returns those that are alive after this time."""
    deadline = time.monotonic() + seconds
    while (left := [process for process in processes if is_alive(process)]) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return left


def kill(processes: list[psutil.Process]) -> int:
    """Returns how many were killed."""
    killed = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
            killed += 1
    return killed


def free_memory_bytes() -> int:
    """Returns the available memory of the machine, or of the container where that is less."""
    free = psutil.virtual_memory().available
    with contextlib.suppress(OSError, ValueError):  # without a limit the file holds "max"
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        free = min(free, max(0, limit - used + int(stat.get("inactive_file", 0))))  # file caches are evicted on demand
    return free


class TreeMemory:
    """Measures the memory of a process and its descendants, shared pages counted once (PSS).

    PSS is slow to read: only as often as takes a hundredth of a core. In between the private memory is followed.
    """

    def __init__(self, pid: int | None = None, *, share: float = 0.01) -> None:
        self._pid = pid or os.getpid()
        self._share = share
        self._measure_at = 0.0
        self._shared_bytes = 0  # PSS minus private memory, at the last measurement

    def read(self) -> tuple[int, int]:
        """Returns bytes and number of processes; (0, 0) when the process has ended."""
        try:
            top = psutil.Process(self._pid)
            tree = [top, *top.children(recursive=True)]
        except psutil.Error:
            return 0, 0
        own = own_memory_bytes(tree)
        began = time.monotonic()
        if began >= self._measure_at:
            self._shared_bytes = max(0, sum(map(_pss, tree)) - own)
            self._measure_at = time.monotonic() + (time.monotonic() - began) / self._share
        return own + self._shared_bytes, len(tree)


def _pss(process: psutil.Process) -> int:
    """Returns the proportional memory of a process; its private memory where the kernel gives no PSS."""
    with contextlib.suppress(psutil.Error, AttributeError):
        return int(process.memory_full_info().pss)
    return own_memory_bytes([process])


def own_memory_bytes(tree: list[psutil.Process]) -> int:
    """Returns the private memory of the processes, without shared pages; cheap to read."""
    total = 0
    for process in tree:
        with contextlib.suppress(psutil.Error):
            memory = process.memory_info()
            total += memory.rss - getattr(memory, "shared", 0)
    return total


def private_memory_bytes(pid: int) -> int:
    """Returns the private memory of one process; 0 when it has ended."""
    with contextlib.suppress(psutil.Error):
        return own_memory_bytes([psutil.Process(pid)])
    return 0


def end_tree(pid: int) -> int:
    """Ends a browser's process tree at once; returns its size. A process without our tag (a reused pid) is kept."""
    try:
        top = psutil.Process(pid)
        tree = [*top.children(recursive=True), top] if _owner_of(top) else []
    except psutil.Error:
        return 0
    kill(tree)
    wait_gone(tree, END_SECONDS)
    return len(tree)


@dataclass(frozen=True)
class BrowserResources:
    """Profile folder and driver of a browser; read while it runs, because they cannot be found afterwards."""

    profile: str
    driver: psutil.Process | None

    @classmethod
    def of(cls, pid: int) -> BrowserResources:
        driver = None
        with contextlib.suppress(psutil.Error):
            parent = psutil.Process(pid).parent()
            driver = parent if parent is not None and "run-driver" in parent.cmdline() else None
        return cls(profile_of(pid), driver)

    def live_processes(self) -> list[psutil.Process]:
        found = [*using_profile(self.profile), *([self.driver] if self.driver else [])]
        return [process for process in found if is_alive(process)]

    def leftover_folders(self, own_temp_dir: Path | None) -> list[Path]:
        """Returns the folders to remove: the profile, and leftovers in the worker's own temporary folder."""
        found: list[Path] = []
        if own_temp_dir is not None:
            with contextlib.suppress(OSError):
                found = [each for each in own_temp_dir.iterdir() if each.name.startswith(LEFTOVERS)]
        profile = Path(self.profile)
        # Only a profile that Playwright made: a configured one is not ours to remove.
        if profile not in found and profile.name.startswith(LEFTOVERS) and profile.exists():
            found.append(profile)
        return found


def clean_up(alive: list[psutil.Process], folders: list[Path], *, polite_seconds: float) -> None:
    """Waits for ending processes, kills the rest, removes the folders, logs the result. Blocks: not for the loop."""
    began = time.monotonic()
    killed = kill(wait_gone(alive, polite_seconds))
    left = [process.pid for process in wait_gone(alive, max(0.5, CLEANUP_SECONDS - polite_seconds))]
    for folder in folders:
        remove_tree(folder)
    kept = [str(folder) for folder in folders if folder.exists()]
    seconds = time.monotonic() - began
    _cleanup_seconds.observe(seconds)
    details = {
        "pids": tuple(process.pid for process in alive),
        "killed": killed,
        "folders": len(folders) - len(kept),
    }
    if left or kept or seconds > CLEANUP_SECONDS:
        _late.inc()
        logger.error(
            "Cleanup after a browser is incomplete after %.1f s: processes %s, folders %s are left. The next search "
            "for orphans tries again",
            seconds,
            left or "none",
            kept or "none",
            extra={"action": "browser_cleanup_late", **details},
        )
        return
    logger.info(
        "Cleanup after a browser done in %.1f s: %d processes (%d of them killed), %d folders",
        seconds,
        len(alive),
        killed,
        len(folders),
        extra={"action": "browser_cleaned_up", **details},
    )
