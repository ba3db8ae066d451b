"""Exports the figures of this worker as of its last heartbeat. Prometheus adds the `instance` that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from django.utils import timezone
from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

# Name, help, column of the worker's row. A time is exported as the seconds since then.
FIGURES: Final = (
    ("scraper_pids_current", "Processes of a worker and its browser.", "process_count"),
    ("scraper_contexts_active", "Browser contexts open.", "context_count"),
    ("scraper_pages_open", "Browser pages open.", "page_count"),
    ("scraper_browser_uptime_seconds", "Age of a worker's browser.", "browser_started_at"),
    ("scraper_browser_launches", "Browsers started by a worker.", "browser_launches"),
    ("scraper_worker_memory_bytes", "Memory of a worker and its browser.", "memory_bytes"),
    ("scraper_worker_peak_memory_bytes", "Peak memory of a worker and its browser.", "peak_memory_bytes"),
    ("scraper_worker_cpu_percent", "CPU of a worker and its browser.", "cpu_percent"),
    ("scraper_worker_uptime_seconds", "Seconds since the worker started.", "started_at"),
    ("scraper_worker_tasks", "Tasks that a worker executes.", "active_tasks"),
)


class WorkerFigures(Collector):
    """Empty in a process that is no worker."""

    def __init__(self) -> None:
        self.row: Mapping[str, Any] = {}

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        row, now = self.row, timezone.now()
        for name, text, column in FIGURES if row else ():
            value = row[column] or 0
            seconds = max(0.0, (now - value).total_seconds()) if isinstance(value, datetime) else value
            yield GaugeMetricFamily(name, text, value=float(seconds))


worker_figures = WorkerFigures()
REGISTRY.register(worker_figures)
