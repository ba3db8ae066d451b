"""Files that are written as a whole, private files, and files that are read again when they change."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from victoryline.lib.units import MEGABYTE

MIN_FREE_DISK_MB = 200  # below it a worker takes no new work, and no evidence or match log is written
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


class EmptySecretError(Exception):
    """A secret file is empty; using it would mean an empty signing key."""


def read_or_create(path: Path) -> str:
    """Returns the secret in `path`, created if missing. Two processes that start at once get the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        write_private(draft, secrets.token_urlsafe(48))
        with suppress(FileExistsError):
            os.link(draft, path)  # unlike rename, link does not replace a file that another process has just created
        draft.unlink()
    if secret := path.read_text(encoding="utf-8").strip():
        return secret
    raise EmptySecretError(f"{path} is empty. Bring its content back, or remove it: then a new secret is made.")


def write_private(path: Path, text: str) -> None:
    """Replaces `path` atomically with a file of mode 600; keeps its owner where permitted."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        with suppress(FileNotFoundError, PermissionError):
            facts = path.stat()
            os.fchown(descriptor, facts.st_uid, facts.st_gid)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yields a draft that replaces `path` at the end of the block; after an error nothing is left of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def require_free_space(folder: Path, size: int = 0) -> None:
    """Raises OSError if less than MIN_FREE_DISK_MB would be free on the disk of `folder` after `size` bytes more."""
    free = shutil.disk_usage(folder).free
    if free - size < MIN_FREE_DISK_MB * MEGABYTE:
        raise OSError(f"only {free // MEGABYTE} MB of disk space are left")


def safe_name(text: str) -> str:
    """Returns a name from outside as part of a file name."""
    return _UNSAFE.sub("-", text)[:60] or "-"


def read_below(folder: Path, path: Path) -> bytes | None:
    """Returns the content of a file below the folder; None when it is missing or elsewhere."""
    try:
        return path.resolve().read_bytes() if path.resolve().is_relative_to(folder.resolve()) else None
    except OSError:
        return None


class WatchedFile:
    """Detects changes of a file that is read again at run time.

    `settle_seconds`: a file that was written within this time counts as unchanged, because it may be half written.
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
