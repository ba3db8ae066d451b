"""Client-side timeouts for PostgreSQL.

Guards against a server that is frozen, not dead: its connections stay open without an answer. psycopg2 would wait for
ever, past statement_timeout (the server's clock), keepalives and tcp_user_timeout (the kernel still answers). With a
wait callback psycopg2 does not block and leaves the waiting to us. After a timeout it closes the connection, so that a
late answer is never read.
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


def install(*, answer_seconds: float, connect_seconds: float) -> None:
    """Sets the timeouts of all psycopg2 connections of this process."""

    def wait(connection: extensions.connection) -> None:
        """Returns when the server has answered, raises OperationalError after the timeout."""
        state = connection.poll()
        seconds = connect_seconds if connection.status == CONNECTING else answer_seconds
        seconds = min(seconds, getattr(_thread, "seconds", seconds))
        deadline = time.monotonic() + seconds
        while state != extensions.POLL_OK:
            poller = select.poll()  # a new one: the handshake may go on through another socket, at another address
            poller.register(connection.fileno(), _EVENTS[state])
            left = deadline - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                raise OperationalError(
                    f"PostgreSQL has not answered for {seconds:g} s; the connection is given up, and its last "
                    f"statement may or may not have been executed"
                )
            state = connection.poll()

    extensions.set_wait_callback(wait)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limits waits in this thread to `seconds`, for queries that a reachable server answers at once."""
    before = getattr(_thread, "seconds", None)
    _thread.seconds = seconds if before is None else min(before, seconds)
    try:
        yield
    finally:
        if before is None:
            del _thread.seconds
        else:
            _thread.seconds = before
