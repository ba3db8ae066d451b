"""Browsers whose worker is gone are ended, each with proof. Nobody else's processes are touched.

Guards against Chromium trees that pile up after kills. Proof is threefold: the tree carries our owner tag, the tag
names this machine (a container's process numbers mean nothing outside of it), and its worker runs no more.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass

import psutil

from scraping.browser.processes import TaggedBrowser, end_tree, tagged_browsers
from scraping.models import Worker
from scraping.signals import orphan_killed

logger = logging.getLogger(__name__)

HOST_LENGTH = 40  # how much of the machine's name is part of a worker's id


@dataclass(frozen=True)
class Orphan:
    browser: TaggedBrowser
    was_ended: bool


def end_orphans(*, is_dry_run: bool = False) -> list[Orphan]:
    """Find the browsers whose worker is gone, and end them unless this is a dry run."""
    orphans = [browser for browser in tagged_browsers() if _worker_is_gone(browser)]
    return [_end(browser, is_dry_run) for browser in orphans]


def _worker_is_gone(browser: TaggedBrowser) -> bool:
    """The worker's pid is part of its id; a younger process with the same pid is somebody else."""
    words = browser.owner.rsplit("-", 2)
    if len(words) != 3 or words[0] != socket.gethostname()[:HOST_LENGTH] or not words[1].isdigit():
        return False
    try:
        worker = psutil.Process(int(words[1]))
        return worker.create_time() > browser.created_at or worker.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False


def _end(browser: TaggedBrowser, is_dry_run: bool) -> Orphan:
    ended = 0 if is_dry_run else end_tree(browser.pid)
    logger.warning(
        "Orphaned browser %d of worker %s %s (%.0f MB, %d processes)",
        browser.pid,
        browser.owner,
        "found" if is_dry_run else "ended",
        browser.memory_bytes / 1e6,
        browser.process_count,
        extra={
            "action": "orphan_found" if is_dry_run else "orphan_ended",
            "pid": browser.pid,
            "memory_bytes": browser.memory_bytes,
        },
    )
    orphan_killed.send_robust(
        sender=Worker, pid=browser.pid, memory_bytes=browser.memory_bytes, owner=browser.owner, dry_run=is_dry_run
    )
    return Orphan(browser, was_ended=ended > 0)
