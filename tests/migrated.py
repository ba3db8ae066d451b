"""A SQLite file with all tables, made once in a run of `make test` and copied for each further system.

To migrate takes five seconds of a processor, and a run begins a dozen databases. What the first of pytest's processes
has migrated is kept under the name in MIGRATED_DATABASE; without it, or before it is there, everybody migrates as ever.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path


def keep(migrated: Path) -> None:
    """For those who come later. It has its name only when it is complete: they may look at any moment."""
    kept = _kept()
    if kept is None or kept.exists():
        return
    draft = kept.with_name(f"{kept.name}.{os.getpid()}")
    _copy(migrated, draft)
    draft.replace(kept)


def place(target: Path) -> bool:
    """Returns whether there was a copy; an existing database is kept."""
    kept = _kept()
    if kept is None or not kept.exists() or target.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    _copy(kept, target)
    return True


def _kept() -> Path | None:
    name = os.environ.get("MIGRATED_DATABASE")
    return Path(name) if name else None


def _copy(source: Path, target: Path) -> None:
    """By SQLite itself: part of a database may still be in the log beside it."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
