"""The spool: readings made while the database was unreachable, in a bounded queue mirrored to disk. Without Django.

Guards against losing readings of an outage, also when the worker itself dies in it. Every update is on disk before it
counts as kept. A file belongs to the process that holds its lock; another process adopts it when the lock is free.

Over the limit the oldest update that is not critical is dropped. Critical ones are never dropped: beyond the limit they
are kept on disk only. If the disk is full too, they stay in memory whatever their number: losing a wicket would be
worse than some megabytes more, and their number is bounded by what the matches can show.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from prometheus_client import Counter
from pydantic import TypeAdapter

from scraping.outage.spool_file import SUFFIX, SpoolFile
from scraping.payloads import Payload
from scraping.readings import Site

logger = logging.getLogger(__name__)
dropped_total = Counter("victoryline_spool_dropped", "Updates that were not critical and found no room.")


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


@dataclass
class Entry:
    update_id: uuid.UUID
    is_critical: bool
    size: int
    line: bytes | None  # None: on disk alone
    file: SpoolFile | None  # None: in memory alone
    place: tuple[int, int] = (0, 0)
    read_at: float = 0.0


class Spool:
    """Shared by the threads of one worker."""

    def __init__(self, folder: Path, *, name: str, limits: SpoolLimits) -> None:
        self._folder = folder
        self._path = folder / f"{name}{SUFFIX}"
        self._limits = limits
        self._entries: deque[Entry] = deque()
        self._memory_items = self.memory_bytes = 0
        self._own: SpoolFile | None = None
        self._adopted: list[SpoolFile] = []
        self._lock = threading.RLock()
        self.dropped = 0
        self.is_on_disk = True

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def disk_bytes(self) -> int:
        with self._lock:
            files = [*self._adopted, *([self._own] if self._own else [])]
            return sum(file.size_bytes for file in files)

    def put(self, update: Update) -> None:
        """Adds an update; it is on disk when this returns (only in memory if the disk is full)."""
        line = encode(update)
        with self._lock:
            places = self._write([line])
            entry = Entry(update.update_id, update.is_critical, len(line), line, self._own if places else None)
            if places and self._own:
                entry.place = places[0]
            self._entries.append(entry)
            self._memory_items += 1
            self.memory_bytes += entry.size
            self._keep_within_limits()

    def hold(self, matches: Iterable[HeldMatch]) -> None:
        """Writes the matches that are polled meanwhile, for the process that adopts this file."""
        with self._lock:
            self._write([encode(match) for match in matches])

    def batch(self, limit: int) -> list[Update]:
        """Returns the oldest updates. They stay in the queue until `done` is called with them."""
        with self._lock:
            found: list[Update] = []
            for entry in list(islice(self._entries, limit)):
                record = self._read(entry)
                if record is None:
                    self._forget(entry)
                else:
                    found.append(record)
            return found

    def done(self, updates: Sequence[Update]) -> None:
        """Removes updates that the database has. A file without any needed entry is emptied."""
        ids = {update.update_id for update in updates}
        with self._lock:
            for entry in [entry for entry in islice(self._entries, len(ids)) if entry.update_id in ids]:
                self._forget(entry)
            needed = {entry.file for entry in self._entries}
            for file in [file for file in self._adopted if file not in needed]:
                file.close(remove=True)
                self._adopted.remove(file)
            if self._own is not None and self._own not in needed and self._own.size_bytes:
                self._own.empty()

    def adopt(self) -> list[HeldMatch]:
        """Takes over the files of processes that have ended; returns the matches that they polled."""
        held: dict[int, HeldMatch] = {}
        old: list[Entry] = []
        with self._lock:
            ours = {self._path, *(file.path for file in self._adopted)}
            for path in sorted(set(self._folder.glob(f"*{SUFFIX}")) - ours):
                file = SpoolFile.take(path)
                if file is None:
                    continue
                entries, found = _scan(file)
                if not entries and not found:
                    file.close(remove=True)
                    continue
                self._adopted.append(file)
                old += entries
                held |= {match.ref_id: match for match in found}
                logger.warning(
                    "%d updates of a worker that has ended were found in %s and will be written",
                    len(entries),
                    path.name,
                    extra={"action": "spool_adopted", "updates": len(entries)},
                )
            old.sort(key=lambda entry: entry.read_at)
            self._entries.extendleft(reversed(old))  # read before ours
        return list(held.values())

    def close(self) -> None:
        """Closes the files; their entries are adopted at the next start."""
        with self._lock:
            for file in self._adopted:
                file.close()
            if self._own is not None:
                self._own.close(remove=self._own.size_bytes == 0)
            self._adopted, self._own = [], None

    def _write(self, lines: Sequence[bytes]) -> list[tuple[int, int]]:
        try:
            if self._own is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._own = SpoolFile.take(self._path)
            if self._own is None:
                raise OSError(f"{self._path.name} is held by another process")
            places = self._own.append(lines)
        except OSError as error:
            if self.is_on_disk:
                logger.critical(
                    "The spool cannot be written; updates are in memory only and do not survive a restart: %s. "
                    "Free disk space or repair the folder of the spool",
                    error,
                    extra={"action": "spool_not_written"},
                )
            self.is_on_disk = False
            return []
        self.is_on_disk = True
        return places

    def _keep_within_limits(self) -> None:
        while self._memory_items > self._limits.items or self.memory_bytes > self._limits.bytes:
            minor = next((entry for entry in self._entries if not entry.is_critical and entry.line is not None), None)
            newest = next((entry for entry in reversed(self._entries) if entry.line is not None and entry.file), None)
            if minor is not None:
                self._drop(minor)
            elif newest is not None:
                self._leave_memory(newest)
            else:
                return

    def _drop(self, entry: Entry) -> None:
        self._forget(entry)
        self.dropped += 1
        dropped_total.inc()
        if entry.file is self._own:
            self._write([orjson.dumps({"dropped": str(entry.update_id)})])
        logger.warning(
            "The queue is full (%d updates): the oldest one that was not critical was dropped, %d in all",
            len(self._entries),
            self.dropped,
            extra={"action": "update_dropped", "dropped": self.dropped},
        )

    def _forget(self, entry: Entry) -> None:
        self._entries.remove(entry)
        self._leave_memory(entry)

    def _leave_memory(self, entry: Entry) -> None:
        if entry.line is not None:
            entry.line = None
            self._memory_items -= 1
            self.memory_bytes -= entry.size

    def _read(self, entry: Entry) -> Update | None:
        try:
            line = entry.line if entry.line is not None else entry.file.line_at(entry.place) if entry.file else b""
            record = decode(line)
            return record if isinstance(record, Update) else None
        except (OSError, ValueError) as error:
            logger.error(  # noqa: TRY400 - a damaged line has no stack worth reading
                "An update in the spool cannot be read and is left out: %s", error, extra={"action": "update_damaged"}
            )
            return None


def _scan(file: SpoolFile) -> tuple[list[Entry], list[HeldMatch]]:
    """Returns the entries of a file that were not dropped, and the matches."""
    entries: dict[uuid.UUID, Entry] = {}
    held: dict[int, HeldMatch] = {}
    for place, line in file.lines():
        try:
            record = decode(line)
        except ValueError as error:
            logger.warning("A line of %s is left out: %s", file.path.name, error, extra={"action": "update_damaged"})
            continue
        if isinstance(record, Update):
            read_at = record.payload.captured_at.timestamp()
            entries[record.update_id] = Entry(
                record.update_id, record.is_critical, len(line), None, file, place, read_at
            )
        elif isinstance(record, HeldMatch):
            held[record.ref_id] = record
        else:
            entries.pop(record, None)
    return list(entries.values()), list(held.values())


def encode(record: Update | HeldMatch) -> bytes:
    if isinstance(record, HeldMatch):
        return orjson.dumps({"held": record})
    values = _UPDATE.dump_python(record, mode="json")
    return orjson.dumps({"id": values.pop("update_id"), **values})


def decode(line: bytes) -> Update | HeldMatch | uuid.UUID:
    """Returns the record of a line; a bare id means that this update was dropped. Raises ValueError otherwise."""
    try:
        values: dict[str, Any] = orjson.loads(line)
        if "dropped" in values:
            return uuid.UUID(values["dropped"])
        if "held" in values:
            return _HELD.validate_python(values["held"])
        return _UPDATE.validate_python({"update_id": values.pop("id"), **values})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a record of the spool: {error!r}") from error
