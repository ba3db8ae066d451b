"""One file of the spool: lines with a checksum, appended and synced, locked by the process that owns it.

The kernel's lock ends with the process, however that ends: a file whose lock is free has no owner, whatever its name.
A line truncated by a crash has a wrong checksum and is skipped.
"""

from __future__ import annotations

import errno
import fcntl
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

SUFFIX = ".spool"


class SpoolFile:
    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle = handle
        self._end = os.fstat(handle).st_size

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Opens and locks a file; returns None if another process holds it or has just removed it."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.stat().st_ino == os.fstat(handle).st_ino:
                return cls(path, handle)
        except OSError:
            pass
        os.close(handle)
        return None

    @property
    def size_bytes(self) -> int:
        return self._end

    def append(self, lines: Sequence[bytes]) -> list[tuple[int, int]]:
        """Appends and syncs lines; returns start and length of each. After an OSError none of them counts."""
        data = [b"%08x %s\n" % (zlib.crc32(line), line) for line in lines]
        begin = self._end
        try:
            if os.pwrite(self._handle, b"".join(data), begin) < sum(map(len, data)):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(self._handle)
        except OSError:
            os.ftruncate(self._handle, begin)
            raise
        places = []
        for line in data:
            places.append((self._end, len(line)))
            self._end += len(line)
        return places

    def line_at(self, place: tuple[int, int]) -> bytes:
        line = _checked(os.pread(self._handle, place[1], place[0]))
        if line is None:
            raise ValueError(f"{self.path.name}: the line at {place[0]} is damaged")
        return line

    def lines(self) -> Iterator[tuple[tuple[int, int], bytes]]:
        """Yields every valid line with its place; damaged ones are skipped."""
        begin = 0
        with os.fdopen(os.dup(self._handle), "rb") as reader:
            reader.seek(0)
            for raw in reader:
                line = _checked(raw)
                if line is not None:
                    yield (begin, len(raw)), line
                begin += len(raw)

    def empty(self) -> None:
        os.ftruncate(self._handle, 0)
        self._end = 0

    def close(self, *, remove: bool = False) -> None:
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._handle)


def _checked(raw: bytes) -> bytes | None:
    checksum, _, line = raw.rstrip(b"\n").partition(b" ")
    is_whole = raw.endswith(b"\n") and len(checksum) == 8 and checksum == b"%08x" % zlib.crc32(line)
    return line if is_whole else None
