"""Process names with host and process id, so that a process on the same machine can detect a death at once.

An expired lease shows a dead holder only after a while. On the same machine the kernel knows whether the process
exists. The fence makes a wrong answer harmless.
"""

from __future__ import annotations

import hashlib
import os
import socket
import uuid
from functools import cache
from pathlib import Path

import psutil

HOST_LENGTH = 32


def new_name() -> str:
    """Returns a unique name for this process: host, process id, random suffix."""
    return f"{_host()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"


def is_here(name: str) -> bool:
    """Returns True if the name is of a process of this machine, running or not."""
    host, _, rest = name.rpartition("-")[0].rpartition("-")
    return host == _host() and rest.isdigit()


def is_gone(name: str, *, since: float | None = None) -> bool:
    """Returns True if the named process has ended; always False for other machines.

    `since` is a Unix time at which it ran: a younger process has reused its process id.
    """
    if not is_here(name):
        return False
    try:
        process = psutil.Process(int(name.split("-")[-2]))
        is_younger = since is not None and process.create_time() > since
        return is_younger or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False


@cache
def _host() -> str:
    """Identifies machine and process namespace: hosts may share a name, and containers reuse process ids."""
    marks = [Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")]
    seen = "".join(str(mark.readlink()) if mark.is_symlink() else mark.read_text() for mark in marks if mark.exists())
    return f"{socket.gethostname()[:HOST_LENGTH]}.{hashlib.sha256(seen.encode()).hexdigest()[:6]}"
