"""Named points where tests can kill the process, to prove what a death there leaves behind.

Armed by CRASH_AT ("name", or "name:3" for the third time through); unarmed, a call is one comparison. The death is a
real SIGKILL: no handler, no rollback by us, no flushing.
"""

from __future__ import annotations

import os
import signal
import threading

_lock = threading.Lock()
_name = ""
_passes_left = 0


def arm(where: str) -> None:
    """Die at this point. Empty: at none."""
    global _name, _passes_left  # noqa: PLW0603 - one process, one place to die
    _name, _, times = where.partition(":")
    _passes_left = int(times or 1)


def crash_point(name: str) -> None:
    """Die here, if this is the place."""
    global _passes_left  # noqa: PLW0603
    if name != _name:
        return
    with _lock:
        _passes_left -= 1
        if _passes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
