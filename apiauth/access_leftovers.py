"""What a web process could not write before its end, because the database was away: kept on disk for the next one.

Guards against a restart in the middle of an outage, which would cost the access log whatever waits for it. A file is
written whole or not at all, taken up by one process at a time, and removed when its rows are committed. Whoever is
killed between the two leaves it to be taken up once more: rows that are there twice are better than none.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from django.conf import settings

from apiauth.attempts import Attempt
from victoryline.lib.secret_files import write_private
from victoryline.lib.store import STORE_AWAY

logger = logging.getLogger(__name__)

FOLDER = "access-log"
ROWS_A_FILE = 500  # each file is one transaction


def keep(rows: Sequence[Attempt]) -> int:
    """How many of them are on disk now, from the first on."""
    kept = 0
    try:
        for start in range(0, len(rows), ROWS_A_FILE):
            some = rows[start : start + ROWS_A_FILE]
            _folder().mkdir(parents=True, exist_ok=True)
            path = _folder() / f"{time.time_ns()}-{os.getpid()}.json"
            write_private(path, json.dumps([list(row) for row in some]))
            kept += len(some)
    except OSError:
        logger.exception("Access-log rows could not be kept on disk", extra={"action": "access_log_not_kept"})
    return kept


def take_up(store: Callable[[list[Attempt]], None]) -> int:
    """Hand what lies there to `store`, oldest first; how many rows that were. Raises while the database is away."""
    return sum(_take(path, store) for path in sorted(_folder().glob("*.json")))


def _take(path: Path, store: Callable[[list[Attempt]], None]) -> int:
    try:
        with path.open(encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            rows = _rows(path, file.read()) if path.exists() else []
            count = len(rows)
            if rows:
                store(rows)
                path.unlink()
    except OSError:  # another process is at it, or was quicker
        return 0
    except STORE_AWAY:
        raise
    except Exception as error:  # noqa: BLE001 - one that can't be stored must not keep what is new from being stored
        _set_aside(path, error)
        return 0
    return count


def _rows(path: Path, text: str) -> list[Attempt]:
    try:
        return [Attempt(*row) for row in json.loads(text)]
    except (ValueError, TypeError) as error:
        _set_aside(path, error)
        return []


def _set_aside(path: Path, error: Exception) -> None:
    logger.error(
        "%s can't be taken up; it is set aside", path, exc_info=error, extra={"action": "access_log_unreadable"}
    )
    path.replace(path.with_suffix(".bad"))


def _folder() -> Path:
    folder: Path = settings.VAR_DIR / FOLDER
    return folder
