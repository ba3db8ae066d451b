"""Is there room for another watch? Workers tell with every heartbeat how much memory their machine has left.

Guards against the watch too many: a machine without memory kills something, and it is seldom the newest. So a new watch
is refused first, what is idle makes room, and what was refused begins by itself later.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from scraping.models import Worker

FRESH = timedelta(seconds=30)
MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Room:
    is_free: bool
    words: str = ""


def room(now: datetime) -> Room:
    """Room on at least one machine is room. Where no worker has told anything, nobody is refused."""
    best = max((worker.free_memory_bytes for worker in _workers(now)), default=None)
    least = settings.CONFIG.min_free_memory_mb
    if best is None or best >= least * MEGABYTE:
        return Room(is_free=True)
    return Room(is_free=False, words=f"{best // MEGABYTE} MB are free, {least} MB are needed (MIN_FREE_MEMORY_MB)")


def may_start(now: datetime) -> bool:
    return room(now).is_free


def breakdown(now: datetime) -> list[str]:
    """Who holds how much, for the log."""
    return [
        f"{worker.worker_id}: {worker.memory_bytes // MEGABYTE} MB in {worker.process_count} processes, "
        f"{worker.page_count} pages, {worker.free_memory_bytes // MEGABYTE} MB free on its machine"
        for worker in _workers(now)
    ]


def retry_seconds() -> float:
    return float(settings.CONFIG.admission_retry_seconds)


def idle_minutes() -> int:
    return int(settings.CONFIG.idle_watch_minutes)


def _workers(now: datetime) -> list[Worker]:
    at_work = Worker.objects.filter(heartbeat_at__gt=now - FRESH, stopped_at__isnull=True, free_memory_bytes__gt=0)
    return list(at_work.order_by("worker_id"))
