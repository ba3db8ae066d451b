"""Every wait for PostgreSQL has an end.

Guards against a server that is frozen, not dead: its connections stay open and nobody answers. psycopg2 would wait for
ever then, past statement_timeout (the server's own clock), keepalives and tcp_user_timeout (the kernel still answers).
With a wait callback psycopg2 talks to the server without blocking and leaves the waiting to us. When we give up, it
closes the connection, so that a late answer meets nobody.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg2 import OperationalError, extensions

CONNECTING = 20  # libpq's handshake; psycopg2 shows the number but has no name for it

_EVENTS = {extensions.POLL_READ: select.POLLIN, extensions.POLL_WRITE: select.POLLOUT}
_thread = threading.local()


class WaitBounds:
    """The longest waits of this process, in seconds."""

    def __init__(self, *, answer: float, connect: float) -> None:
        self.answer, self.connect = answer, connect

    def wait(self, connection: extensions.connection) -> None:
        """psycopg2 calls this for whatever it has asked the server, and goes on when it returns."""
        state = connection.poll()
        if state == extensions.POLL_OK:
            return
        seconds = self._bound(connection)
        deadline = time.monotonic() + seconds
        while state != extensions.POLL_OK:
            poller = select.poll()  # a new one: the handshake may go on through another socket, at another address
            poller.register(connection.fileno(), _EVENTS[state])
            left = deadline - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                raise OperationalError(
                    f"PostgreSQL has not answered for {seconds:g} s; the connection is given up, "
                    "and what it was asked for may or may not be done"
                )
            state = connection.poll()

    def _bound(self, connection: extensions.connection) -> float:
        bound = self.connect if connection.status == CONNECTING else self.answer
        return min(bound, getattr(_thread, "seconds", bound))


def install(*, answer_seconds: float, connect_seconds: float) -> None:
    """For all of psycopg2's connections in this process."""
    extensions.set_wait_callback(WaitBounds(answer=answer_seconds, connect=connect_seconds).wait)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """In this thread, wait no longer than this for an answer: for questions that a living server answers at once."""
    before = getattr(_thread, "seconds", None)
    _thread.seconds = seconds if before is None else min(before, seconds)
    try:
        yield
    finally:
        if before is None:
            del _thread.seconds
        else:
            _thread.seconds = before
