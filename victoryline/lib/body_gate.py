"""How many requests may wait for their bodies at once: fewer than there are threads, and of one caller fewer still.

A thread that reads a body waits for the caller, for as long as that likes, and the server has no deadline for it. So
that a few callers who stop in the middle of theirs (a bad line is enough) can't take every thread, only some may wait
at a time, and one address can't take the places of all others. Whoever finds no place is told to come back at once;
reading matches needs no body and goes on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import IO, Any

from django.conf import settings

from victoryline.lib.http import address_in

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 4  # of the 8 threads that a web process has
MOST_OF_ONE = 2
PATIENCE_SECONDS = 0.05
TELL_EVERY_SECONDS = 60.0
CROWDED = (
    "Too many bodies are on their way to us at once, and some don't arrive. Nothing of yours was used; send it again."
)


class Crowded(OSError):  # noqa: N818 - reads as what it says at every `except`
    """There is no place to wait for a body. Django shows it as the cause of an UnreadablePostError."""


def is_crowded(error: BaseException | None) -> bool:
    return isinstance(error, Crowded) or (error is not None and isinstance(error.__cause__, Crowded))


class Places:
    """By the address of who waits there."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._tell_again_at = float("-inf")

    def take(self, caller: str) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_room_for(caller), PATIENCE_SECONDS):
                self._tell()
                raise Crowded(CROWDED)
            self._taken[caller] += 1

    def give_back(self, caller: str) -> None:
        with self._changed:
            self._taken[caller] -= 1
            self._taken += Counter()  # who has none is forgotten
            self._changed.notify_all()

    def _has_room_for(self, caller: str) -> bool:
        return self._taken.total() < MOST_AT_ONCE and self._taken[caller] < MOST_OF_ONE

    def _tell(self) -> None:
        """Once a minute: whoever holds them goes on, and so does everybody who is turned away."""
        if time.monotonic() >= self._tell_again_at:
            self._tell_again_at = time.monotonic() + TELL_EVERY_SECONDS
            logger.warning(
                "Bodies of requests don't arrive, and others are turned away (503) meanwhile. If it stays, block who "
                "holds the places, or put a proxy in front that reads bodies whole",
                extra={"action": "bodies_stuck", "held_by": dict(self._taken)},
            )


places = Places()


class Gate:
    """A WSGI application, but for the bodies that it reads."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"] = GatedBody(environ["wsgi.input"], environ)
        return self._application(environ, start_response)


class GatedBody:
    def __init__(self, stream: IO[bytes], environ: dict[str, Any]) -> None:
        self._stream, self._environ = stream, environ

    def read(self, *size: int) -> bytes:
        return self._in_turn(self._stream.read, *size)

    def readline(self, *size: int) -> bytes:
        return self._in_turn(self._stream.readline, *size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _in_turn(self, read: Callable[..., bytes], *size: int) -> bytes:
        caller = address_in(self._environ, settings.CONFIG.trusted_proxies)
        places.take(caller)
        try:
            return read(*size)
        finally:
            places.give_back(caller)
