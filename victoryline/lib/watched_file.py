"""Detects changes of a file that is read again at run time."""

from __future__ import annotations

import time
from pathlib import Path


class WatchedFile:
    """Remembers the state of the file at the last change: path, inode, modification time and size.

    `settle_seconds`: a file that was written within this time counts as unchanged. It may be half written, and half a
    file may well be valid; a later call sees all of it.
    """

    def __init__(self, *, settle_seconds: float = 0.0) -> None:
        self._settle_seconds = settle_seconds
        self._state: tuple[Path, int, int, int] | None = None

    def has_changed(self, path: Path) -> bool:
        """Returns True once per change; the first call and the loss of the file are changes."""
        try:
            found = path.stat()
            state = (path, found.st_ino, found.st_mtime_ns, found.st_size)
        except OSError:
            state = (path, 0, 0, 0)
        if state == self._state or 0 <= time.time() - state[2] / 1e9 < self._settle_seconds:
            return False
        self._state = state
        return True
