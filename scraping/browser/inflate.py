"""Answers made small again, piece by piece and never beyond a limit.

Guards against compression bombs: a kilobyte on the wire that is a gigabyte in memory. Nobody asks zlib for more than
is still allowed, so a bomb costs the limit and nothing more.
"""

from __future__ import annotations

import zlib

# What can be unpacked within a limit; the client asks for nothing else.
ENCODINGS = "gzip, deflate"
MAX_MEMBERS = 32  # of one gzip stream: thousands of empty ones cost time and no bytes
ZLIB_METHOD = 8
GZIP_START = b"\x1f"


class TooLargeError(Exception):
    """There is more than is allowed; the rest was not unpacked."""


class BrokenError(Exception):
    """It is not what it says it is, or only a part of it."""


class Inflater:
    """Unpacks one answer. `feed` its pieces as they come, then `finish`."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._is_gzip = encoding in ("gzip", "x-gzip")
        self._left = limit
        self._members = 0
        self._stream: zlib._Decompress | None = None

    def feed(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        while data:
            if self._stream is None and self._members and not (self._is_gzip and data.startswith(GZIP_START)):
                break  # what comes after the end is no part of it
            stream = self._stream = self._stream or self._open(data)
            try:
                part = stream.decompress(data, self._left + 1)
            except zlib.error as error:
                raise BrokenError(str(error)) from error
            self._left -= len(part)
            if self._left < 0:
                raise TooLargeError
            parts.append(part)
            data = stream.unconsumed_tail
            if stream.eof:
                data, self._stream = stream.unused_data, None
        return b"".join(parts)

    def finish(self) -> None:
        if self._stream is not None:
            raise BrokenError("it ends in the middle")

    def _open(self, data: bytes) -> zlib._Decompress:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise BrokenError(f"it has more than {MAX_MEMBERS} parts")
        if self._is_gzip:
            return zlib.decompressobj(16 + zlib.MAX_WBITS)
        # Half of the servers that say "deflate" leave out the head that the word means.
        has_head = data[0] & 0x0F == ZLIB_METHOD
        return zlib.decompressobj(zlib.MAX_WBITS if has_head else -zlib.MAX_WBITS)
