"""Ends orphaned browsers of this machine, each with proof. No other process is touched. Every worker does it.

Guards against Chromium trees that pile up after kills. Proof: the tree carries our owner tag, the tag names this
machine (process numbers of a container are valid only inside it), and the worker has ended; or the worker runs, its
recent heartbeat names another browser, and this one is older than the grace period.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from scraping.browser.processes import TaggedBrowser, end_tree, tagged_browsers
from scraping.models import Worker
from scraping.signals import orphan_killed
from victoryline.lib import identity
from victoryline.lib.processes import owned_temp_dirs, remove_tree

logger = logging.getLogger(__name__)

FRESH = timedelta(seconds=30)  # an older heartbeat proves nothing
GRACE_SECONDS = 120.0  # a browser that is starting or closing is no orphan

SWEEP_SECONDS = 1800.0
CHECK_SECONDS = 60.0  # between two checks whether a sweep is due, or memory is short

WORKER_GONE = "its worker is gone"
LEFT_OVER = "its worker uses another browser"


@dataclass(frozen=True)
class Orphan:
    browser: TaggedBrowser
    was_ended: bool
    reason: str = WORKER_GONE


class OrphanSweep(threading.Thread):
    """Sweeps this machine at the start and every half hour after that; once a minute while memory is short."""

    def __init__(self, *, is_memory_short: Callable[[], bool]) -> None:
        super().__init__(name="orphans", daemon=True)
        self._is_memory_short = is_memory_short
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join(timeout=5)

    def run(self) -> None:
        swept_at = float("-inf")
        while not self._stopping.is_set():
            if time.monotonic() - swept_at >= SWEEP_SECONDS or self._is_memory_short():
                swept_at = time.monotonic()
                try:
                    end_orphans(now=timezone.now())
                except Exception as error:  # noqa: BLE001 - such as an unreachable database: the next sweep is soon
                    logger.warning("Orphaned browsers were not searched: %s", error, extra={"action": "sweep_failed"})
                    swept_at += CHECK_SECONDS - SWEEP_SECONDS
                finally:
                    connection.close()  # or back into the pool, until the next sweep
            self._stopping.wait(CHECK_SECONDS)


def end_orphans(*, now: datetime, is_dry_run: bool = False) -> list[Orphan]:
    """Ends orphaned browsers and removes temporary folders of ended workers. A dry run only reports them."""
    found = tagged_browsers()  # before the query: a browser that starts meanwhile is not among them
    workers = Worker.objects.filter(heartbeat_at__gt=now - FRESH, stopped_at__isnull=True)
    registered = dict(workers.values_list("worker_id", "browser_pid"))
    orphans = []
    for browser in found:
        is_known = browser.owner in registered and identity.is_here(browser.owner)
        is_old = now.timestamp() - browser.created_at > GRACE_SECONDS
        if identity.is_gone(browser.owner, since=browser.created_at):
            orphans.append(_end(browser, WORKER_GONE, is_dry_run))
        elif is_known and is_old and registered[browser.owner] != browser.pid:
            orphans.append(_end(browser, LEFT_OVER, is_dry_run))
    for folder, owner in [] if is_dry_run else owned_temp_dirs():
        if identity.is_gone(owner):
            remove_tree(folder)
            logger.warning(
                "Temporary folder %s of ended worker %s removed",
                folder.name,
                owner,
                extra={"action": "leftover_folder_removed"},
            )
    return orphans


def _end(browser: TaggedBrowser, reason: str, is_dry_run: bool) -> Orphan:
    ended = 0 if is_dry_run else end_tree(browser.pid)
    if not ended and not is_dry_run:  # another worker of this machine was faster
        return Orphan(browser, was_ended=False, reason=reason)
    logger.warning(
        "Orphaned browser %d of worker %s %s (%.0f MB, %d processes): %s",
        browser.pid,
        browser.owner,
        "found" if is_dry_run else "ended",
        browser.memory_bytes / 1e6,
        browser.process_count,
        reason,
        extra={
            "action": "orphan_found" if is_dry_run else "orphan_ended",
            "pid": browser.pid,
            "memory_bytes": browser.memory_bytes,
        },
    )
    orphan_killed.send_robust(
        sender=Worker,
        pid=browser.pid,
        memory_bytes=browser.memory_bytes,
        owner=browser.owner,
        dry_run=is_dry_run,
        reason=reason,
    )
    return Orphan(browser, was_ended=ended > 0, reason=reason)
