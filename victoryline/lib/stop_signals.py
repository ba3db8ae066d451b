"""A web process that is told to stop stops, also when it is told at a bad moment.

Guards against two ways in which granian's processes miss a SIGTERM, go on answering, and are killed with what they have
not yet written. While one is loading, the handler that it inherited from its parent takes the signal and does nothing.
And Python runs handlers in the main thread, which sleeps for good: a signal that comes in the moment in which it falls
asleep, or that another thread is given, is noticed when something else wakes it, which nothing does.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from types import FrameType

TOLD_TO_STOP = (signal.SIGTERM, signal.SIGINT)
WAKES = signal.SIGURG  # means nothing to anybody here; nor does the kernel interrupt a sleep for what is ignored
WAIT_SECONDS, TIMES = 0.2, 10


def mind() -> None:
    """Called first of all where an application is loaded. Does nothing but in a process that a server has made."""
    if multiprocessing.parent_process() is None or threading.current_thread() is not threading.main_thread():
        return
    for number in TOLD_TO_STOP:
        signal.signal(number, _leave)  # until the server has loaded us, and puts its own handler there
    stay_awake()


def stay_awake() -> None:
    """Have the main thread look up a moment after each signal to stop. To be called in the main thread."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.signal(WAKES, _look_up)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_wake, args=(heard,), name="stop-signals", daemon=True).start()


def _leave(number: int, frame: FrameType | None) -> None:
    """Nothing was answered yet, so there is nothing to write."""
    os._exit(0)


def _look_up(number: int, frame: FrameType | None) -> None:
    """Being called is all: handlers that wait are called with it."""


def _wake(heard: int) -> None:
    sleeper = threading.main_thread().ident
    assert sleeper is not None
    while numbers := os.read(heard, 64):
        if any(number in TOLD_TO_STOP for number in numbers):
            for _ in range(TIMES):
                time.sleep(WAIT_SECONDS)
                signal.pthread_kill(sleeper, WAKES)
