"""Shared by worker and scheduler processes: stop signals, stop times, watchdog limits, the scheduler.

Guards against a stop that loses work, and against one that never ends: the first signal stops the process after its
running work, a second one at once, its time limit in any case. The watchdog ends a process that has stalled.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from django.conf import settings

from monitoring.alerts.channels import configured
from monitoring.alerts.delivery import DeliveryThreads
from monitoring.metrics import exposition
from scraping.configuration import policies
from scraping.scheduler.loop import SchedulerLoop, load_steps
from scraping.worker.heartbeat import watch_thread
from victoryline.configuration import Config
from victoryline.lib.watchdog import StallLimits, Watchdog, end_children

# The kernel reports a killed parent once for each of its threads; these count as one signal.
ONE_SIGNAL_SECONDS = 1.0
# Without the supervisor, its parent watch kills this process and its children after a few seconds.
ORPHAN_STOP_SECONDS = 4.0
SQLITE_LOCK_SECONDS = 30.0
SCHEDULER_TICK_SECONDS = 0.1
# After which a silent loop or heartbeat counts as stalled and the process is replaced.
STALL_SECONDS = 30.0
SLOW_FACTOR = 1.5
# A dead leader is replaced before the leases of its workers end.
LEADER_LEASE_SHARE = 2 / 3

_parent = os.getppid()


def on_signals() -> threading.Event:
    """Returns an event that the first SIGTERM or SIGINT sets. A later one kills the children and ends the process."""
    stopping = threading.Event()
    signalled_at = 0.0

    def handle(*_: object) -> None:
        nonlocal signalled_at
        if stopping.is_set() and time.monotonic() - signalled_at > ONE_SIGNAL_SECONDS:
            end_children()
            os._exit(1)
        signalled_at = time.monotonic()
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stopping


def stop_seconds(config: Config) -> float:
    """Returns how long running work may take after a stop signal."""
    return config.stop_seconds if os.getppid() == _parent else min(config.stop_seconds, ORPHAN_STOP_SECONDS)


def stall_limits(config: Config) -> StallLimits:
    """Returns the limits of the watchdog, never shorter than a wait that has its own timeout."""
    # A slow source gets half as much time again, and so does the retry after a timeout.
    waits = (config.navigation_timeout_seconds, config.page_timeout_seconds, config.selector_timeout_seconds)
    longest_visit = sum(waits) * SLOW_FACTOR * (SLOW_FACTOR if config.enable_adaptive_timeouts else 1)
    store_wait = config.db_answer_seconds if config.database_url else SQLITE_LOCK_SECONDS
    return StallLimits(
        task_seconds=max(longest_visit + 15.0, 2 * store_wait),
        stall_seconds=STALL_SECONDS,
        store_seconds=STALL_SECONDS + store_wait,
    )


def start_scheduler(config: Config, holder: str, watchdog: Watchdog) -> Callable[[float], None]:
    """Starts the scheduler's loop and the delivery of alerts in threads.

    Returns the function that stops them; it waits so many seconds for the loop.
    """
    loop = SchedulerLoop(
        load_steps(settings.SCHEDULER_STEPS),
        holder=holder,
        tick_seconds=SCHEDULER_TICK_SECONDS,
        lease_seconds=policies.current().lease_seconds * LEADER_LEASE_SHARE,
    )
    exposition.page.is_leading = lambda: loop.is_leading
    thread = threading.Thread(target=loop.run, name="scheduler", daemon=True)
    thread.start()
    watch_thread(watchdog, "the scheduler's thread", thread)
    watchdog.watch(loop.pulse.reads("the scheduler"), stall_limits(config).store_seconds)
    deliveries = DeliveryThreads(configured(config), lambda: loop.is_leading)
    deliveries.start()

    def stop(seconds: float) -> None:
        loop.stop()
        thread.join(timeout=seconds)
        deliveries.stop()

    return stop
