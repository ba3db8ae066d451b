"""Named points where tests can kill the process, to prove what a death there leaves behind.

`arm` takes "name", or "name:3" for the third time through; unarmed, a call is one comparison. The process dies by a
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
    """Makes the process kill itself at this point; an empty name disarms."""
    global _name, _passes_left  # noqa: PLW0603 - one process, one place to die
    _name, _, times = where.partition(":")
    _passes_left = int(times or 1)


def crash_point(name: str) -> None:
    """Kills the process if this point is armed."""
    global _passes_left  # noqa: PLW0603
    if name != _name:
        return
    with _lock:
        _passes_left -= 1
        if _passes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
