"""How many requests may wait for their bodies at once: fewer than there are threads.

A thread that reads a body waits for the caller, for as long as that likes, and the server has no deadline for it. So
that a few callers who stop in the middle of theirs (a bad line is enough) can't take every thread, only some may wait
at a time. Whoever finds no place is told to come back at once; reading matches needs no body and goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import IO, Any

MOST_AT_ONCE = 4  # of the 8 threads that a web process has
PATIENCE_SECONDS = 0.05
CROWDED = (
    "Too many bodies are on their way to us at once, and some don't arrive. Nothing of yours was used; send it again."
)

_places = threading.BoundedSemaphore(MOST_AT_ONCE)


class Crowded(OSError):  # noqa: N818 - reads as what it says at every `except`
    """There is no place to wait for a body. Django shows it as the cause of an UnreadablePostError."""


def is_crowded(error: BaseException | None) -> bool:
    return isinstance(error, Crowded) or (error is not None and isinstance(error.__cause__, Crowded))


class Gate:
    """A WSGI application, but for the bodies that it reads."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"] = GatedBody(environ["wsgi.input"])
        return self._application(environ, start_response)


class GatedBody:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, *size: int) -> bytes:
        return self._in_turn(self._stream.read, *size)

    def readline(self, *size: int) -> bytes:
        return self._in_turn(self._stream.readline, *size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _in_turn(self, read: Callable[..., bytes], *size: int) -> bytes:
        if not _places.acquire(timeout=PATIENCE_SECONDS):
            raise Crowded(CROWDED)
        try:
            return read(*size)
        finally:
            _places.release()
