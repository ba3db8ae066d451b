"""Browsers that nobody uses any more are ended, each with proof. Nobody else's processes are touched.

Guards against Chromium trees that pile up after kills. Proof is threefold: the tree carries our owner tag, the tag
names this machine (a container's process numbers mean nothing outside of it), and its worker runs no more; or its
worker lives, has told us a moment ago which browser it uses, and for a while already it is not this one.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from scraping.browser.processes import TaggedBrowser, end_tree, tagged_browsers
from scraping.models import Worker
from scraping.signals import orphan_killed
from victoryline.lib import identity
from victoryline.lib.processes import owned_temp_dirs, remove_tree

logger = logging.getLogger(__name__)

FRESH = timedelta(seconds=30)  # a heartbeat that is older proves nothing
GRACE_SECONDS = 120.0  # a browser that is just being started, or closed, is nobody's orphan

WORKER_GONE = "its worker is gone"
LEFT_OVER = "its worker uses another browser"


@dataclass(frozen=True)
class Orphan:
    browser: TaggedBrowser
    was_ended: bool
    reason: str = WORKER_GONE


def end_orphans(*, now: datetime, is_dry_run: bool = False) -> list[Orphan]:
    """Find the browsers that nobody uses, and end them unless this is a dry run. Then the folders of the dead."""
    found = tagged_browsers()
    registered = _registered(now)
    orphans = [
        _end(browser, reason, is_dry_run)
        for browser in found
        if (reason := _reason(browser, registered, now=now.timestamp()))
    ]
    if not is_dry_run:
        _remove_folders()
    return orphans


def _registered(now: datetime) -> dict[str, int | None]:
    """The browser of each worker that has told us of it a moment ago."""
    rows = Worker.objects.filter(heartbeat_at__gt=now - FRESH, stopped_at__isnull=True)
    return dict(rows.values_list("worker_id", "browser_pid"))


def _reason(browser: TaggedBrowser, registered: dict[str, int | None], *, now: float) -> str:
    """Why nobody needs this browser; empty where that is not proven."""
    if identity.is_gone(browser.owner, since=browser.created_at):
        return WORKER_GONE
    is_known = browser.owner in registered and identity.is_here(browser.owner)
    is_old = now - browser.created_at > GRACE_SECONDS
    return LEFT_OVER if is_known and is_old and registered[browser.owner] != browser.pid else ""


def _end(browser: TaggedBrowser, reason: str, is_dry_run: bool) -> Orphan:
    ended = 0 if is_dry_run else end_tree(browser.pid)
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


def _remove_folders() -> None:
    """The temporary folders of workers that were killed, with what their browsers had in them."""
    for folder, owner in owned_temp_dirs():
        if identity.is_gone(owner):
            remove_tree(folder)
            logger.warning(
                "The temporary folder %s of worker %s, which is gone, was removed",
                folder.name,
                owner,
                extra={"action": "leftover_folder_removed"},
            )
