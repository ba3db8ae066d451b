"""How a worker or scheduler process ends: at a signal in good order, at a second one at once, or by its watchdog."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from victoryline.env import Config
from victoryline.lib.watchdog import Patience, end_children

# A parent that is killed is reported by the kernel once for each of its threads; that is one wish, not several.
ONE_SIGNAL_SECONDS = 1.0
# For what comes after the work in hand: leases are given back, the browser closes, the last heartbeat is written.
CLOSING_SECONDS = 5.0
# Without our supervisor nobody waits for us: its warden ends us, and what we hold, after a few seconds.
ORPHAN_STOP_SECONDS = 4.0
SQLITE_LOCK_SECONDS = 30.0
LONGER = 1.5

_parent = os.getppid()


def on_signals(told: Callable[[], None] = lambda: None) -> threading.Event:
    """Set at the first SIGTERM or SIGINT, when `told` is called too; a later one ends the process and its children."""
    stopping = threading.Event()
    told_at = 0.0

    def handle(*_: object) -> None:
        nonlocal told_at
        if stopping.is_set() and time.monotonic() - told_at > ONE_SIGNAL_SECONDS:
            end_children()
            os._exit(1)
        told_at = time.monotonic()
        stopping.set()
        told()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stopping


def stop_seconds(config: Config) -> float:
    """How long the work in hand may take when the process is told to stop."""
    return config.stop_seconds if os.getppid() == _parent else min(config.stop_seconds, ORPHAN_STOP_SECONDS)


def patience(config: Config) -> Patience:
    """What the watchdog waits for. Never shorter than a wait that has an end of its own."""
    # A slow source gets half as much time again, and so does the second try after a timeout.
    waits = (config.navigation_timeout_seconds, config.page_timeout_seconds, config.selector_timeout_seconds)
    longest_visit = sum(waits) * LONGER * (LONGER if config.enable_adaptive_timeouts else 1)
    store_wait = config.db_answer_seconds if config.database_url else SQLITE_LOCK_SECONDS
    return Patience(
        task_seconds=max(config.task_deadline_seconds, longest_visit + 15.0, 2 * store_wait),
        stall_seconds=config.stall_seconds,
        store_seconds=config.stall_seconds + store_wait,
    )
