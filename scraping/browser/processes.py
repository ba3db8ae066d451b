"""Browser processes and whose they are. Only process trees that carry our owner tag are ever touched.

Guards against browsers that outlive their worker: each Chromium is started with the worker's id among its arguments, so
a tree whose worker is gone can be told from everybody else's browser, and ended with proof.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

import psutil

from scraping.browser.options import OWNER_SWITCH


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
            found.append(TaggedBrowser(pid, owner, _memory(tree), len(tree), process.create_time()))
    return found


def tree_memory_bytes(pid: int | None = None) -> tuple[int, int]:
    """Resident memory of a process and all its descendants, and how many they are. Shared pages count once each."""
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(pid or os.getpid())
        tree = [top, *top.children(recursive=True)]
        return _memory(tree), len(tree)
    return 0, 0


def _memory(tree: list[psutil.Process]) -> int:
    total = 0
    for process in tree:
        with contextlib.suppress(psutil.Error):
            memory = process.memory_info()
            total += memory.rss - getattr(memory, "shared", 0) if process is not tree[0] else memory.rss
    return total


def end_tree(pid: int) -> int:
    """End a browser's whole tree at once; how many processes that were. A number that has passed on is let be."""
    try:
        top = psutil.Process(pid)
        tree = [*top.children(recursive=True), top] if _owner_of(top) else []
    except psutil.Error:
        return 0
    for process in tree:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(tree, timeout=3)
    return len(tree)
