"""Names of processes that tell where they run, so that a process on the same machine can see that one has died.

A lease only tells after a while that its holder is silent. Whoever shares the machine with the holder need not wait:
the name holds host and process number, and the kernel knows whether that process is there. The fence makes a wrong
answer harmless.
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
    """A name for this process: host, process number, and something that no later process repeats."""
    return f"{_host()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"


def is_here(name: str) -> bool:
    """Does this name belong to a process of this machine, living or not?"""
    host, _, rest = name.rpartition("-")[0].rpartition("-")
    return host == _host() and rest.isdigit()


def is_gone(name: str, *, since: float | None = None) -> bool:
    """Has the process with this name ended? Only ever True for one of this machine.

    `since` is a moment (seconds since the epoch) at which it lived: a process that is younger has inherited its number.
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
    """Machine and process namespace: hosts may share a name, and containers number their processes alike."""
    marks = [Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")]
    seen = "".join(str(mark.readlink()) if mark.is_symlink() else mark.read_text() for mark in marks if mark.exists())
    return f"{socket.gethostname()[:HOST_LENGTH]}.{hashlib.sha256(seen.encode()).hexdigest()[:6]}"
