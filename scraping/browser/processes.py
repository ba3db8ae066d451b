"""Browser processes and whose they are. Only process trees that carry our owner tag are ever touched.

Guards against browsers that outlive their worker: each Chromium is started with the worker's id among its arguments, so
a tree whose worker is gone can be told from everybody else's browser, and ended with proof.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from scraping.browser.options import OWNER_SWITCH

PROFILE_SWITCH = "--user-data-dir="
CGROUP = Path("/sys/fs/cgroup")
LOOK_SECONDS = 0.02
END_SECONDS = 3.0


@dataclass(frozen=True)
class TaggedBrowser:
    pid: int
    owner: str
    memory_bytes: int
    process_count: int
    created_at: float


def _owner_of(process: psutil.Process) -> str:
    prefix = f"{OWNER_SWITCH}="
    with contextlib.suppress(psutil.Error, OSError):
        return next((word[len(prefix) :] for word in process.cmdline() if word.startswith(prefix)), "")
    return ""


def browser_pid(owner: str) -> int | None:
    """The main process of the browser that this process started under this tag."""
    for child in psutil.Process().children(recursive=True):
        if _owner_of(child) == owner:
            return child.pid
    return None


def tagged_browsers() -> list[TaggedBrowser]:
    """Every browser on this machine that carries our tag: the tops of their trees."""
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
    """The folder of a browser's profile; every process of it names the same one, also when its top has died."""
    with contextlib.suppress(psutil.Error, OSError):
        words = psutil.Process(pid).cmdline()
        return next((word[len(PROFILE_SWITCH) :] for word in words if word.startswith(PROFILE_SWITCH)), "")
    return ""


def using_profile(profile: str) -> list[psutil.Process]:
    """Every process of the browser with this profile, whoever its parent is by now."""
    found = []
    for process in psutil.process_iter() if profile else ():
        with contextlib.suppress(psutil.Error, OSError):
            if f"{PROFILE_SWITCH}{profile}" in process.cmdline():
                found.append(process)
    return found


def runs(process: psutil.Process) -> bool:
    """A zombie does not: it holds nothing, and may stay for as long as its parent does."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def wait_gone(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until none of them runs; those that still do when the time is over."""
    deadline = time.monotonic() + seconds
    while (left := [process for process in processes if runs(process)]) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return left


def kill(processes: list[psutil.Process]) -> int:
    """How many there were to be killed."""
    killed = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
            killed += 1
    return killed


def free_memory_bytes() -> int:
    """What this machine can still give, or the container, where that has less."""
    free = psutil.virtual_memory().available
    with contextlib.suppress(OSError, ValueError):  # no limit is the word "max"
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        free = min(free, max(0, limit - used + int(stat.get("inactive_file", 0))))  # files are let go when it is short
    return free


class TreeMemory:
    """The memory of a process and all its descendants, every page counted once (PSS).

    The kernel adds that up page by page, some milliseconds a process. So it is asked no more often than costs a
    hundredth of a core; in between the figure moves with what the processes have to themselves, which is cheap to read.
    """

    def __init__(self, pid: int | None = None, *, share: float = 0.01) -> None:
        self._pid = pid or os.getpid()
        self._share = share
        self._measure_at = 0.0
        self._shared_bytes = 0  # what PSS had found on top of what each process has to itself

    def read(self) -> tuple[int, int]:
        """In bytes, and of how many processes; (0, 0) when it is gone."""
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
    """Its memory, shared pages by halves, thirds and so on. Its own pages where the kernel does not tell."""
    with contextlib.suppress(OSError, ValueError):
        rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")
        return next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
    return own_memory_bytes([process])


def own_memory_bytes(tree: list[psutil.Process]) -> int:
    """What these processes have to themselves. Cheap to read; what they share is left out."""
    total = 0
    for process in tree:
        with contextlib.suppress(psutil.Error):
            memory = process.memory_info()
            total += memory.rss - getattr(memory, "shared", 0)
    return total


def end_tree(pid: int) -> int:
    """End a browser's whole tree at once; how many processes that were. A number that has passed on is let be."""
    try:
        top = psutil.Process(pid)
        tree = [*top.children(recursive=True), top] if _owner_of(top) else []
    except psutil.Error:
        return 0
    kill(tree)
    wait_gone(tree, END_SECONDS)
    return len(tree)
