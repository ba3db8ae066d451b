"""Progress of a bench on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from benchmarks.errors import BenchError

_began = time.monotonic()


def say(text: str) -> None:
    minutes, seconds = divmod(int(time.monotonic() - _began), 60)
    print(f"{minutes:02}:{seconds:02} {text}", file=sys.stderr, flush=True)


def wait_until(
    is_done: Callable[[], bool],
    *,
    seconds: float,
    what: str,
    progress: Callable[[], str] = lambda: "",
    every_seconds: float = 0.1,
) -> None:
    """Waits and reports the progress every five seconds; raises BenchError after `seconds`."""
    started = reported = time.monotonic()
    while not is_done():
        now = time.monotonic()
        if now - started > seconds:
            raise BenchError(f"not within {seconds:g} s: {what} {progress()}".rstrip())
        if now - reported >= 5:
            reported = now
            say(f"  {what} {progress()}".rstrip())
        time.sleep(every_seconds)


def let_run(seconds: float, *, what: str, progress: Callable[[], str], do: Callable[[], None] = lambda: None) -> None:
    """Waits while something is measured. `do` is called about twice a second."""
    until = time.monotonic() + seconds
    reported = time.monotonic()
    while (left := until - time.monotonic()) > 0:
        do()
        if time.monotonic() - reported >= 5:
            reported = time.monotonic()
            say(f"  {what}: {left:.0f} s left, {progress()}")
        time.sleep(max(0.0, min(0.5, until - time.monotonic())))
