"""The spool: readings made while the database was unreachable, in one SQLite file per worker. Without Django.

Guards against losing readings of an outage, also when the worker itself dies in it. Every update is on disk before it
counts as kept. A file belongs to the process that holds SQLite's exclusive lock on it, which ends with the process,
however that ends; another process adopts a file whose lock is free.

Over the limit the oldest update that is not critical is dropped; critical ones are never dropped. If the disk is full,
updates stay in memory until it can be written again.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import Counter
from pydantic import TypeAdapter

from scraping.payloads import Payload
from scraping.readings import Site

logger = logging.getLogger(__name__)
dropped_total = Counter("victoryline_spool_dropped", "Updates that were not critical and found no room.")

SUFFIX = ".spool"
# The index counts the updates and their bytes without reading them.
_SCHEMA = """
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS updates
      (read_at REAL, id TEXT PRIMARY KEY, is_critical INTEGER, size INTEGER, body BLOB);
    CREATE INDEX IF NOT EXISTS updates_in_order ON updates (read_at, is_critical, size);
    CREATE TABLE IF NOT EXISTS matches (ref_id INTEGER PRIMARY KEY, body BLOB);
"""
_ADD_UPDATE = "INSERT OR IGNORE INTO updates VALUES (?, ?, ?, ?, ?)"
_ADD_MATCH = "INSERT OR REPLACE INTO matches VALUES (?, ?)"

Row = tuple[float, str, bool, int, bytes]  # of `updates`


@dataclass(frozen=True)
class HeldMatch:
    """The facts about a match that polling it without a database needs."""

    ref_id: int
    key: str
    sport: str
    site: Site
    source_event_id: str
    url: str
    min_interval_seconds: float


@dataclass(frozen=True)
class Update:
    """A reading that the database could not accept. Its id makes replaying idempotent."""

    update_id: uuid.UUID
    ref_id: int
    key: str
    worker_id: str
    is_critical: bool
    payload: Payload


_HELD = TypeAdapter(HeldMatch)
_UPDATE = TypeAdapter(Update)


@dataclass(frozen=True)
class SpoolLimits:
    items: int = 1000
    bytes: int = 10 * 1024 * 1024


class Spool:
    """Shared by the threads of one worker."""

    def __init__(self, folder: Path, *, name: str, limits: SpoolLimits) -> None:
        self._folder = folder
        self._path = folder / f"{name}{SUFFIX}"
        self._limits = limits
        self._file: sqlite3.Connection | None = None
        self._unsaved: list[Row] = []
        self._lock = threading.RLock()
        self._saved = self.disk_bytes = 0
        self.dropped = 0
        self.is_on_disk = True

    def __len__(self) -> int:
        return self._saved + len(self._unsaved)

    @property
    def memory_bytes(self) -> int:
        return sum(row[3] for row in tuple(self._unsaved))

    def put(self, update: Update) -> None:
        """Adds an update; it is on disk when this returns (only in memory if the disk is full)."""
        body, read_at = _UPDATE.dump_json(update), update.payload.captured_at.timestamp()
        with self._lock:
            self._unsaved.append((read_at, str(update.update_id), update.is_critical, len(body), body))
            if self._write(_ADD_UPDATE, self._unsaved):
                self._unsaved = []
            while len(self) > self._limits.items or self.disk_bytes + self.memory_bytes > self._limits.bytes:
                if not self._drop_minor():
                    return

    def hold(self, matches: Iterable[HeldMatch]) -> None:
        """Writes the matches that are polled meanwhile, for the process that adopts this file."""
        with self._lock:
            self._write(_ADD_MATCH, [(match.ref_id, _HELD.dump_json(match)) for match in matches])

    def batch(self, limit: int) -> list[Update]:
        """Returns the oldest updates. They stay in the queue until `done` is called with them."""
        with self._lock:
            found: list[Update] = []
            for _, update_id, _, _, body in self._oldest(limit):
                try:
                    found.append(_UPDATE.validate_json(body))
                except ValueError as error:
                    self._remove({update_id})
                    logger.error(  # noqa: TRY400 - a damaged update has no stack worth reading
                        "An update in the spool cannot be read and is left out: %s",
                        error,
                        extra={"action": "update_damaged"},
                    )
            return found

    def done(self, updates: Sequence[Update]) -> None:
        """Removes updates that the database has. Raises OSError if that cannot be written."""
        with self._lock:
            if not self._remove({str(update.update_id) for update in updates}):
                raise OSError(f"{self._path.name} cannot be written")
            if not len(self):
                self._write("DELETE FROM matches", [()])

    def adopt(self) -> list[HeldMatch]:
        """Takes over the files of processes that have ended; returns the matches that they polled."""
        with self._lock:
            others = sorted(set(self._folder.glob(f"*{SUFFIX}")) - {self._path})
            return [match for path in others for match in self._adopt_file(path)]

    def close(self) -> None:
        """Closes the file; its updates and matches are adopted at the next start."""
        with self._lock:
            if self._file is None:
                return
            is_needed = len(self) or self._file.execute("SELECT 1 FROM matches").fetchone()
            self._file.close()
            self._file = None
            if not is_needed:
                self._path.unlink(missing_ok=True)

    def _adopt_file(self, path: Path) -> list[HeldMatch]:
        """Copies a file into ours and removes it. Two processes may do so: an update is written once all the same."""
        try:
            with closing(_open(path)) as file:
                updates = file.execute("SELECT * FROM updates").fetchall()
                matches = file.execute("SELECT * FROM matches").fetchall()
            held = [_HELD.validate_json(body) for _, body in matches]
        except sqlite3.OperationalError:  # locked: its process is alive
            return []
        except (sqlite3.DatabaseError, ValueError) as error:
            path.rename(path.with_suffix(".damaged"))
            logger.error(  # noqa: TRY400 - the stack adds nothing
                "%s is damaged and was renamed: %s", path.name, error, extra={"action": "update_damaged"}
            )
            return []
        if not (self._write(_ADD_UPDATE, updates) and self._write(_ADD_MATCH, matches)):
            return []
        path.unlink(missing_ok=True)
        if updates or held:
            logger.warning(
                "%d updates of a worker that has ended were found in %s and will be written",
                len(updates),
                path.name,
                extra={"action": "spool_adopted", "updates": len(updates)},
            )
        return held

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> bool:
        """Executes a statement for each row and syncs the file; returns False if that is not possible."""
        if not rows:
            return True
        try:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._file = _open(self._path)
            with self._file:  # a transaction
                self._file.executemany(statement, rows)
            count = self._file.execute("SELECT count(*), coalesce(sum(size), 0) FROM updates")
            self._saved, self.disk_bytes = count.fetchone()
        except (OSError, sqlite3.Error) as error:
            if self.is_on_disk:
                logger.critical(
                    "The spool cannot be written; updates are in memory only and do not survive a restart: %s. "
                    "Free disk space or repair the folder of the spool",
                    error,
                    extra={"action": "spool_not_written"},
                )
            self.is_on_disk = False
            return False
        self.is_on_disk = True
        return True

    def _oldest(self, limit: int, *, is_critical: bool = True) -> list[Row]:
        """Returns the oldest rows; without `is_critical` only of updates that are not."""
        saved: list[Row] = []
        if self._file is not None:
            query = "SELECT * FROM updates WHERE is_critical <= ? ORDER BY read_at LIMIT ?"
            saved = self._file.execute(query, (is_critical, limit)).fetchall()
        return sorted([*saved, *(row for row in self._unsaved if row[2] <= is_critical)])[:limit]

    def _remove(self, ids: set[str]) -> bool:
        self._unsaved = [row for row in self._unsaved if row[1] not in ids]
        return self._write("DELETE FROM updates WHERE id = ?", [(update_id,) for update_id in ids])

    def _drop_minor(self) -> bool:
        """Drops the oldest update that is not critical; returns False if there is none."""
        minor = self._oldest(1, is_critical=False)
        if not minor or not self._remove({minor[0][1]}):
            return False
        self.dropped += 1
        dropped_total.inc()
        logger.warning(
            "The queue is full (%d updates): the oldest one that was not critical was dropped, %d in all",
            len(self),
            self.dropped,
            extra={"action": "update_dropped", "dropped": self.dropped},
        )
        return True


def _open(path: Path) -> sqlite3.Connection:
    """Opens and locks a file. Raises OperationalError if another process holds it."""
    file = sqlite3.connect(path, timeout=0, check_same_thread=False)  # the spool's lock serializes the threads
    try:
        file.executescript(_SCHEMA)
    except sqlite3.Error:
        file.close()
        raise
    return file
