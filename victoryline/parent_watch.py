"""A process that cleans up after a supervisor killed with SIGKILL.

Guards against children that ignore the SIGTERM that the kernel sends them then. The supervisor writes its children's
temporary folders to this process's standard input, one a line. If the input ends without `GOODBYE`, this process waits,
kills the processes that still use the folders, and removes the folders.
"""

import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
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
    kill_trees(left)
    for folder in folders:
        remove_tree(folder)


def using(folders: Iterable[Path]) -> list[psutil.Process]:
    """Returns the processes that inherited one of the folders as TMPDIR, orphans included."""
    names = {str(folder) for folder in folders}
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it has ended, or belongs to another user
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("TMPDIR") in names:
                found.append(process)
    return found


def kill_trees(roots: Iterable[psutil.Process]) -> None:
    for root in roots:
        with suppress(psutil.NoSuchProcess):
            for process in (*root.children(recursive=True), root):
                with suppress(psutil.NoSuchProcess):
                    process.kill()


if __name__ == "__main__":
    main()
