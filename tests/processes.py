"""Stops process groups that a test or a benchmark has started with `spawn`."""

import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from victoryline.lib.processes import signal_group


def end_group(process: "subprocess.Popen[bytes]", *, grace_seconds: float) -> None:
    """Sends SIGTERM to the process and its descendants, waits, then kills what is left."""
    deadline = time.monotonic() + grace_seconds
    signal_group(process.pid, signal.SIGTERM)
    while time.monotonic() < deadline:
        if process.poll() is not None and not _is_alive(process.pid):
            return
        time.sleep(0.05)
    signal_group(process.pid, signal.SIGKILL)
    process.wait()


def _is_alive(group: int) -> bool:
    """Returns True if a process of the group runs; zombies do not count."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(its_group) == group and state not in "ZX":
                    return True
    return False
