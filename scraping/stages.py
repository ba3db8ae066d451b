"""How far an attempt has come, told from wherever that happens: the browser need not know what a task is.

The listener travels with the context, as the fields of log lines do: from the task's thread to the loop and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("stage_listener", default=None)


@contextmanager
def told_to(listener: Callable[[str], None]) -> Iterator[None]:
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(listener: Callable[[str], None]) -> None:
    """For the rest of this context."""
    _listener.set(listener)


def reached(stage: str) -> None:
    """Say that this stage has begun; outside of an attempt nobody hears it."""
    listener = _listener.get()
    if listener is not None:
        listener(stage)
