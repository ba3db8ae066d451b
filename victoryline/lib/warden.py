"""Cleans up after a supervisor that was killed with SIGKILL.

Guards against children that don't heed the SIGTERM the kernel sends them then. The supervisor holds the other end of
our standard input and writes its children's temporary folders, one a line; when that breaks off without a farewell, we
wait, end the processes that still use them, and remove the folders.
"""

import contextlib
import signal
import sys
import time
from pathlib import Path

import psutil

from victoryline.lib.processes import remove_tree

FAREWELL = "done"


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folders: list[Path] = []
    for line in sys.stdin:
        if line.rstrip("\n") == FAREWELL:
            return
        folders.append(Path(line.rstrip("\n")))
    clean_up(folders, grace_seconds=float(sys.argv[1]))


def clean_up(folders: list[Path], *, grace_seconds: float) -> None:
    """End the processes that use these temporary folders, and everything they have started, and remove the folders."""
    deadline = time.monotonic() + grace_seconds
    while (left := using(folders)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for process in {member for each in left for member in tree(each)}:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    for folder in folders:
        remove_tree(folder)


def using(folders: list[Path]) -> list[psutil.Process]:
    """Processes that inherited one of the folders as TMPDIR: a child, its children, and those whose parent is gone."""
    names = {str(folder) for folder in folders}
    return [process for process in psutil.process_iter() if temp_dir_of(process) in names]


def temp_dir_of(process: psutil.Process) -> str | None:
    """The TMPDIR of a living process of ours, None otherwise."""
    try:
        return process.environ().get("TMPDIR") if process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
        return None


def tree(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


if __name__ == "__main__":
    main()
