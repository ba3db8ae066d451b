"""Browsers whose worker is gone are ended, each with proof. Nobody else's processes are touched.

Guards against Chromium trees that pile up after kills. Proof is threefold: the tree carries our owner tag, the tag
names this machine (a container's process numbers mean nothing outside of it), and its worker runs no more.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from scraping import identity
from scraping.browser.processes import TaggedBrowser, end_tree, tagged_browsers
from scraping.models import Worker
from scraping.signals import orphan_killed

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Orphan:
    browser: TaggedBrowser
    was_ended: bool


def end_orphans(*, is_dry_run: bool = False) -> list[Orphan]:
    """Find the browsers whose worker is gone, and end them unless this is a dry run."""
    orphans = [browser for browser in tagged_browsers() if identity.is_gone(browser.owner, since=browser.created_at)]
    return [_end(browser, is_dry_run) for browser in orphans]


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
