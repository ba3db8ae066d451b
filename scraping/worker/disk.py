"""No new work on a full disk: it would be read, and then could neither be stored nor spooled."""

from __future__ import annotations

import logging
from pathlib import Path

import psutil

from scraping.signals import disk_ran_short, disk_recovered

logger = logging.getLogger(__name__)
MEGABYTE = 1024 * 1024
RECOVERED_SHARE = 1.2  # a little more than the limit, so that it does not flicker around it


class DiskGuard:
    """Asked at every heartbeat; tells when the disk has run short, and when it has room again."""

    def __init__(self, folder: Path, *, min_free_mb: int, worker_id: str) -> None:
        self._folder = folder
        self._min_free_mb = min_free_mb
        self._worker_id = worker_id
        self.is_short = False

    def look(self) -> bool:
        """Whether there is too little room."""
        free_mb = self.free_mb()
        if not self.is_short and free_mb < self._min_free_mb:
            self.is_short = True
            logger.critical(
                "Only %d MB are free on the disk of %s: no new tasks are taken until there is more than %d MB. "
                "Stored data is safe. Free space (`manage.py prune`), or lower MIN_FREE_DISK_MB",
                free_mb,
                self._folder,
                self._min_free_mb,
                extra={"action": "disk_short", "free_mb": free_mb},
            )
            disk_ran_short.send_robust(sender=DiskGuard, worker_id=self._worker_id, free_mb=free_mb)
        elif self.is_short and free_mb >= self._min_free_mb * RECOVERED_SHARE:
            self.is_short = False
            logger.warning(
                "%d MB are free again: tasks are taken", free_mb, extra={"action": "disk_recovered", "free_mb": free_mb}
            )
            disk_recovered.send_robust(sender=DiskGuard, worker_id=self._worker_id, free_mb=free_mb)
        return self.is_short

    def free_mb(self) -> int:
        return int(psutil.disk_usage(str(self._folder)).free // MEGABYTE)
