"""A process that cleans up after a supervisor killed with SIGKILL.

Guards against children that ignore the SIGTERM that the kernel sends them then. The supervisor writes its children's
temporary folders to this process's standard input, one a line. If the input ends without `GOODBYE`, this process waits,
kills the processes that still use the folders, and removes the folders.
"""

import contextlib
import signal
import sys
import time
from pathlib import Path

import psutil

from victoryline.lib.processes import remove_tree

GOODBYE = "done"


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folders: list[Path] = []
    for line in sys.stdin:
        if line.rstrip("\n") == GOODBYE:
            return
        folders.append(Path(line.rstrip("\n")))
    clean_up(folders, grace_seconds=float(sys.argv[1]))


def clean_up(folders: list[Path], *, grace_seconds: float) -> None:
    """Kills the processes that use these temporary folders, with all their children, and removes the folders."""
    deadline = time.monotonic() + grace_seconds
    while (left := using(folders)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for process in {member for each in left for member in tree(each)}:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    for folder in folders:
        remove_tree(folder)


def using(folders: list[Path]) -> list[psutil.Process]:
    """Returns the processes that inherited one of the folders as TMPDIR, orphans included."""
    names = {str(folder) for folder in folders}
    return [process for process in psutil.process_iter() if temp_dir_of(process) in names]


def temp_dir_of(process: psutil.Process) -> str | None:
    """Returns the TMPDIR of a living process of this user, else None."""
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
