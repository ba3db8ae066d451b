"""Limits how many requests may wait for their bodies at once, in all and per client address.

Guards against clients that stop in the middle of a body: the thread that reads it waits for the client, the server has
no deadline for that, and a few of them would hold every thread. A request above the limit is refused at once (503).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import IO, Any

from django.conf import settings

from victoryline.lib.http.headers import address_in

logger = logging.getLogger(__name__)

MAX_WAITING = 4  # of the 8 threads of a web process
MAX_WAITING_PER_CLIENT = 2
WAIT_FOR_SLOT_SECONDS = 0.05
LOG_EVERY_SECONDS = 60.0
REFUSAL = "Too many request bodies are being received at once. Your request was not processed; send it again."


class TooManyBodies(OSError):  # noqa: N818 - an OSError, so that Django wraps it as UnreadablePostError
    """No slot was free to wait for a body. Django shows it as the cause of an UnreadablePostError."""


def is_refused(error: BaseException | None) -> bool:
    return isinstance(error, TooManyBodies) or (error is not None and isinstance(error.__cause__, TooManyBodies))


class BodySlots:
    """Counts the requests that wait for a body, by client address."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._log_again_at = float("-inf")

    def acquire(self, client: str) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_room_for(client), WAIT_FOR_SLOT_SECONDS):
                self._log_refusal()
                raise TooManyBodies(REFUSAL)
            self._taken[client] += 1

    def release(self, client: str) -> None:
        with self._changed:
            self._taken[client] -= 1
            self._taken += Counter()  # drops addresses whose count is zero
            self._changed.notify_all()

    def _has_room_for(self, client: str) -> bool:
        return self._taken.total() < MAX_WAITING and self._taken[client] < MAX_WAITING_PER_CLIENT

    def _log_refusal(self) -> None:
        if time.monotonic() >= self._log_again_at:
            self._log_again_at = time.monotonic() + LOG_EVERY_SECONDS
            logger.warning(
                "Request bodies do not arrive, and other requests with a body are refused (503) meanwhile. If this "
                "persists, block the addresses in held_by, or use a reverse proxy that buffers bodies",
                extra={"action": "bodies_stuck", "held_by": dict(self._taken)},
            )


slots = BodySlots()


class BodyLimit:
    """WSGI middleware: the application reads its body through a slot."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"] = LimitedBody(environ["wsgi.input"], environ)
        return self._application(environ, start_response)


class LimitedBody:
    def __init__(self, stream: IO[bytes], environ: dict[str, Any]) -> None:
        self._stream, self._environ = stream, environ

    def read(self, *size: int) -> bytes:
        return self._with_slot(self._stream.read, *size)

    def readline(self, *size: int) -> bytes:
        return self._with_slot(self._stream.readline, *size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _with_slot(self, read: Callable[..., bytes], *size: int) -> bytes:
        client = address_in(self._environ, settings.CONFIG.trusted_proxies)
        slots.acquire(client)
        try:
            return read(*size)
        finally:
            slots.release(client)
