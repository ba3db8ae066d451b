"""Makes a web process stop at SIGTERM in every state.

Guards against two ways in which granian's workers miss a SIGTERM, go on answering, and are killed before they have
written the access log. While a worker loads, the handler inherited from its parent takes the signal and does nothing.
And Python runs handlers in the main thread, which sleeps: a signal that arrives just before it falls asleep, or in
another thread, is handled only when something wakes the main thread.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
WAKE_SIGNAL = signal.SIGURG  # otherwise unused here; it needs a handler, an ignored signal interrupts no sleep
WAIT_SECONDS, TIMES = 0.2, 10


def install() -> None:
    """Call it before the application is loaded. Does nothing outside of a server's worker process."""
    if multiprocessing.parent_process() is None or threading.current_thread() is not threading.main_thread():
        return
    for number in STOP_SIGNALS:
        # Until the server has loaded the application and sets its own handler: no request was answered yet.
        signal.signal(number, lambda *_: os._exit(0))
    wake_main_thread_at_signals()


def wake_main_thread_at_signals() -> None:
    """Wakes the main thread shortly after each stop signal. Call it in the main thread."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(WAKE_SIGNAL, lambda *_: None)  # being called is enough: pending handlers run with it
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_wake, args=(reader,), name="stop-signals", daemon=True).start()


def _wake(reader: int) -> None:
    main_thread_id = threading.main_thread().ident
    assert main_thread_id is not None
    while numbers := os.read(reader, 64):
        if any(number in STOP_SIGNALS for number in numbers):
            for _ in range(TIMES):
                time.sleep(WAIT_SECONDS)
                signal.pthread_kill(main_thread_id, WAKE_SIGNAL)
