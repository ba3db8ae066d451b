"""Secrets that the embedded system makes for itself and keeps in VAR_DIR, readable by their owner only."""

import fcntl
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


class EmptySecretError(Exception):
    """A file that should hold a secret holds nothing; going on would mean to sign with nothing."""


def read_or_create(path: Path) -> str:
    """The secret in `path`; made first if there is none. Two processes that start at once get the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        write_private(draft, secrets.token_urlsafe(48))
        with suppress(FileExistsError):
            os.link(draft, path)  # unlike rename, link refuses to replace what another process has just made
        draft.unlink()
    if secret := path.read_text(encoding="utf-8").strip():
        return secret
    raise EmptySecretError(f"{path} is empty. Bring its content back, or remove it: then a new secret is made.")


def rewrite_private(path: Path, change: Callable[[str], str]) -> None:
    """Replace what stands in `path` by what `change` makes of it; of two at once, the second sees the first's."""
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_private(path, change(path.read_text(encoding="utf-8")))
    finally:
        os.close(lock)


def write_private(path: Path, text: str) -> None:
    """Replace `path` in one step with a file of mode 600. It keeps its owner, where we may give files away."""
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
