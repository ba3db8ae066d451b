"""A migrated SQLite file, created once in a run of `make test` and copied for each further system.

Migrations take five CPU seconds, and a run creates a dozen databases. The first pytest process saves its database
under the name in MIGRATED_DATABASE; without that file, a process runs the migrations itself.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path


def keep(migrated: Path) -> None:
    """Saves a copy for later systems, renamed when it is complete: others may check at any time."""
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
    """Copies with SQLite's backup, because part of a database may still be in its write-ahead log."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
