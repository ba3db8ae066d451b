"""A worker: Dramatiq's threads and one browser. With --with-scheduler it is the whole engine of the embedded system."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from monitoring import log_rows
from monitoring.metrics import exposition
from scraping.browser.launcher import BrowserOptions
from scraping.scheduler import hint
from scraping.worker.process import WorkerOptions, WorkerProcess
from victoryline.configuration import Config
from victoryline.engine_process import (
    ORPHAN_STOP_SECONDS,
    on_signals,
    stall_limits,
    start_scheduler,
    stop_seconds,
)
from victoryline.lib import availability, identity
from victoryline.lib.hint_broker import install_broker
from victoryline.lib.logs import set_process
from victoryline.lib.processes import own_temp_dir
from victoryline.lib.watchdog import Watchdog
from victoryline.supervisor import CLOSING_SECONDS


class Command(BaseCommand):
    help = "Run a worker: it takes due tasks from the journal and reads matches with its own browser."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--with-scheduler", action="store_true", help="Run the scheduler in this process too (embedded system)."
        )

    def handle(self, *args: Any, with_scheduler: bool, **options: Any) -> None:
        config = settings.CONFIG
        if not config.redis_url and not with_scheduler:
            raise CommandError(
                "A worker of its own needs REDIS_URL: without Redis the hints stay inside one process.\n"
                "Set REDIS_URL, or start the embedded engine: manage.py run_worker --with-scheduler"
            )
        worker_id = identity.new_name()
        set_process(service="engine" if with_scheduler else "worker", worker=worker_id)
        log_rows.install()
        temp_dir = own_temp_dir(worker_id)
        stopping = on_signals()
        if exposition.start_server(config):
            availability.database.watch()  # metrics and health checks must not wait for it
        watchdog = Watchdog()
        worker = _make_worker(config, worker_id, watchdog, temp_dir)
        worker.start()
        stop_scheduler = start_scheduler(config, worker_id, watchdog) if with_scheduler else None
        watchdog.start()
        stopping.wait()
        seconds = stop_seconds(config)
        watchdog.end_within(seconds + CLOSING_SECONDS)
        began = time.monotonic()
        if stop_scheduler:
            stop_scheduler(ORPHAN_STOP_SECONDS)
        worker.stop(timeout_seconds=max(1.0, seconds - (time.monotonic() - began)))


def _make_worker(config: Config, worker_id: str, watchdog: Watchdog, temp_dir: Path) -> WorkerProcess:
    broker = install_broker(config.redis_url)
    browser = BrowserOptions.of(config, owner=worker_id)
    if browser is None:
        raise CommandError("No Chromium was found. `python manage.py doctor` says what to do.")
    options = WorkerOptions(worker_id, config, browser, stall_limits(config), temp_dir)
    return WorkerProcess(broker, options, watchdog, due_hints=hint.own_hints)
