"""A worker: Dramatiq's threads and one browser. With --with-scheduler it is the whole engine of the embedded system."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from monitoring.metrics import start_worker_metrics
from scraping import identity, policies
from scraping.browser.options import BrowserOptions
from scraping.scheduler.loop import SchedulerLoop
from scraping.worker import WorkerOptions, WorkerProcess
from victoryline.broker import install
from victoryline.env import Config
from victoryline.lib import chromium
from victoryline.lib.logs import set_process
from victoryline.lib.processes import own_temp_dir
from victoryline.scheduling import make_loop

logger = logging.getLogger(__name__)

STOP_SECONDS = 4.0  # for the work in hand; the browser needs some of the supervisor's grace too
# A parent that is killed is reported by the kernel once for each of its threads; that is one wish, not several.
ONE_SIGNAL_SECONDS = 1.0


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
        own_temp_dir()
        stopping = _on_signals()
        start_worker_metrics(config)
        worker = _make_worker(config, worker_id)
        worker.start()
        loop = make_loop(config, holder=worker_id) if with_scheduler else None
        thread = _start(loop) if loop else None
        while not stopping.wait(1.0):
            if thread and not thread.is_alive():
                logger.critical(
                    "The scheduler's thread has ended; so does this process", extra={"action": "engine_ended"}
                )
                os._exit(1)  # whoever supervises us starts a whole one
        if loop and thread:
            loop.stop()
            thread.join(timeout=STOP_SECONDS)
        worker.stop(timeout_seconds=STOP_SECONDS)


def _make_worker(config: Config, worker_id: str) -> WorkerProcess:
    broker = install(config.redis_url)
    from scraping import actors  # noqa: F401  (actors bind to the broker that was just installed)

    program = chromium.find(chosen=config.chromium_path, var_dir=config.var_dir, environ=os.environ)
    if program is None:
        raise CommandError("No Chromium was found. `python manage.py doctor` says what to do.")
    browser = BrowserOptions(
        executable=program,
        owner=worker_id,
        headless=config.browser_headless,
        navigation_timeout_seconds=config.navigation_timeout_seconds,
        page_timeout_seconds=config.page_timeout_seconds,
        capture_timeout_seconds=config.selector_timeout_seconds,
    )
    options = WorkerOptions(worker_id, config.worker_threads, config.heartbeat_seconds, browser, policies.current())
    return WorkerProcess(broker, options)


def _on_signals() -> threading.Event:
    """Set at the first SIGTERM or SIGINT; a later one ends the process at once."""
    stopping = threading.Event()
    told_at = 0.0

    def handle(*_: object) -> None:
        nonlocal told_at
        if stopping.is_set() and time.monotonic() - told_at > ONE_SIGNAL_SECONDS:
            os._exit(1)
        told_at = time.monotonic()
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stopping


def _start(loop: SchedulerLoop) -> threading.Thread:
    thread = threading.Thread(target=loop.run, name="scheduler", daemon=True)
    thread.start()
    return thread
