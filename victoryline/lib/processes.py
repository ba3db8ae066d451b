"""Starts and stops child processes so that none is left behind.

Guards against orphans: a supervisor that is killed with SIGKILL runs no cleanup. Each child asks the kernel for a
SIGTERM when its parent dies, leads a process group of its own, and is stopped as a group, with its descendants.
"""

import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
# Chromium and PostgreSQL put unix sockets into their folders; the kernel refuses paths of more than 107 characters.
LONGEST_TEMP_DIR = 60
OWN = ".victoryline"
OWN_PREFIX = "victoryline-"
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int | None = None, signal_number: int = signal.SIGTERM) -> None:
    """Asks the kernel to send this process a signal when its parent dies. `parent` is the pid that should be alive.

    Linux sends it when the parent *thread* ends, so start children from a thread that stays.
    """
    _libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if parent is not None and os.getppid() != parent:  # it died before the request was made
        os.kill(os.getpid(), signal_number)


def spawn(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
) -> "subprocess.Popen[bytes]":
    """Starts `command` in its own session; it gets SIGTERM when this process dies."""
    return subprocess.Popen(
        [str(part) for part in command],
        env=dict(env) if env is not None else None,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509 - two system calls; there is no other place
    )


def signal_group(group: int, signal_number: int) -> None:
    """Sends a signal to a process group, unless it is empty or has only zombies or another user's processes."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal_number)


def short_temp_dir(preferred: Path) -> Path:
    """Creates an empty folder at `preferred`, or elsewhere if that path is too long for unix sockets."""
    if len(str(preferred)) > LONGEST_TEMP_DIR:
        return Path(tempfile.mkdtemp(prefix=OWN_PREFIX))
    remove_tree(preferred)
    preferred.mkdir(parents=True, mode=0o700)
    return preferred


def mark_as_own(folder: Path) -> None:
    """Marks `folder` as the property of one child, which may remove it: see `own_temp_dir`."""
    (folder / OWN).touch()


def own_temp_dir(owner: str) -> Path:
    """Returns a temporary folder for this process alone, removed at its exit; `owner` is written into it.

    Call it once, early. A supervisor creates one for each child and removes it too; without one the process creates its
    own, so that files can be assigned to their owner after the process was killed.
    """
    folder = Path(tempfile.gettempdir())
    if not (folder / OWN).exists():
        folder = Path(tempfile.mkdtemp(prefix=OWN_PREFIX))
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    (folder / OWN).write_text(owner, encoding="utf-8")
    atexit.register(remove_tree, folder)
    return folder


def owned_temp_dirs() -> list[tuple[Path, str]]:
    """Returns marked temporary folders inside and beside our own, with their owners."""
    here = Path(tempfile.gettempdir())
    marks = [mark for root in (here, here.parent) for mark in root.glob(f"*/{OWN}") if mark.is_file()]
    found = []
    for mark in marks:
        with suppress(OSError, UnicodeDecodeError):
            if owner := mark.read_text(encoding="utf-8").strip():
                found.append((mark.parent, owner))
    return found


def remove_tree(folder: Path) -> None:
    """Removes a folder even if another process still writes into it, or it does not exist."""
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


def python(*arguments: str) -> list[str]:
    """Returns a command line for the running Python."""
    return [sys.executable, *arguments]
