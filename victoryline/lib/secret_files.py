"""Secrets that the embedded system makes for itself and keeps in VAR_DIR, readable by their owner only."""

import os
import secrets
from contextlib import suppress
from pathlib import Path


def read_or_create(path: Path) -> str:
    """The secret in `path`; made first if there is none. Two processes that start at once get the same one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        write_private(draft, secrets.token_urlsafe(48))
        with suppress(FileExistsError):
            os.link(draft, path)  # unlike rename, link refuses to replace what another process has just made
        draft.unlink()
    return path.read_text(encoding="utf-8").strip()


def write_private(path: Path, text: str) -> None:
    """Replace `path` in one step with a file of mode 600."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
