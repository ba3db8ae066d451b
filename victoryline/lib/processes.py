"""Starting processes that can't be left behind.

Guards against orphans: a supervisor that is killed with SIGKILL runs no cleanup. Each child asks the kernel for a
SIGTERM when its parent dies, leads a process group of its own, and is ended as a group, with all it started.
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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
# Chromium and PostgreSQL put unix sockets into their folders; the kernel refuses paths of more than 107 characters.
LONGEST_TEMP_DIR = 60
OWN = ".victoryline"
OWN_PREFIX = "victoryline-"
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int | None = None, signal_number: int = signal.SIGTERM) -> None:
    """Ask the kernel to send this process a signal when its parent dies. `parent` is the pid that should be alive.

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
    before_exec: Callable[[], None] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start `command` in a session of its own; it gets SIGTERM when we die."""
    parent = os.getpid()

    def prepare() -> None:
        die_with_parent(parent)
        if before_exec:
            before_exec()
            # A change of user clears the request.
            die_with_parent(parent)

    return subprocess.Popen(
        [str(part) for part in command],
        env=dict(env) if env is not None else None,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=prepare,  # noqa: PLW1509 - two system calls, for which there is no other place
    )


def signal_group(group: int, signal_number: int) -> bool:
    """Send a signal to a whole process group; False when nobody is left in it."""
    try:
        os.killpg(group, signal_number)
    except ProcessLookupError:
        return False
    except PermissionError:  # only zombies or another user's processes are left
        return False
    return True


def group_is_alive(group: int) -> bool:
    """Whether a process of the group still runs. Zombies don't count: they hold nothing."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(its_group) == group and state not in "ZX":
                    return True
    return False


def end_group(process: "subprocess.Popen[bytes]", *, grace_seconds: float) -> None:
    """SIGTERM the process and all it started, wait, then SIGKILL what is left."""
    deadline = time.monotonic() + grace_seconds
    signal_group(process.pid, signal.SIGTERM)
    while time.monotonic() < deadline:
        if process.poll() is not None and not group_is_alive(process.pid):
            return
        time.sleep(0.05)
    signal_group(process.pid, signal.SIGKILL)
    process.wait()


def short_temp_dir(preferred: Path) -> Path:
    """An empty folder at `preferred`, or elsewhere when its path is too long for unix sockets."""
    if len(str(preferred)) > LONGEST_TEMP_DIR:
        return Path(tempfile.mkdtemp(prefix=OWN_PREFIX))
    remove_tree(preferred)
    preferred.mkdir(parents=True, mode=0o700)
    return preferred


def mark_as_own(folder: Path) -> None:
    """Say that `folder` belongs to one child alone, which may remove it: see `own_temp_dir`."""
    (folder / OWN).touch()


def own_temp_dir(owner: str) -> Path:
    """A temporary folder for this process alone, removed when it ends; call it once, early. `owner` is written into it.

    A supervisor makes one for each of its children, and empties them as well: this is for the time when the supervisor
    was killed. Without a supervisor we make our own, so that what a browser leaves behind is never mixed up with
    others' files, and can be told from its owner's name when we are killed.
    """
    folder = Path(tempfile.gettempdir())
    if not (folder / OWN).exists():
        folder = Path(tempfile.mkdtemp(prefix=OWN_PREFIX))
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    (folder / OWN).write_text(owner, encoding="utf-8")
    atexit.register(remove_tree, folder)
    return folder


def owned_temp_dirs() -> list[tuple[Path, str]]:
    """The temporary folders of this kind beside our own, and in it, with the names of their owners."""
    here = Path(tempfile.gettempdir())
    marks = [mark for root in (here, here.parent) for mark in root.glob(f"*/{OWN}") if mark.is_file()]
    return [(mark.parent, owner) for mark in marks if (owner := _text(mark))]


def _text(file: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return file.read_text(encoding="utf-8").strip()
    return ""


def remove_tree(folder: Path) -> None:
    """Remove a folder that others may still be writing into, or that is gone already."""
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)


def python(*arguments: str) -> list[str]:
    """A command line for the Python that runs us."""
    return [sys.executable, *arguments]
