"""What a bench is doing and how far it is, on stderr."""

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
    how_far: Callable[[], str] = lambda: "",
    every_seconds: float = 0.1,
) -> None:
    """Wait, saying now and then how far it is; BenchError when it takes too long."""
    started = spoke = time.monotonic()
    while not is_done():
        now = time.monotonic()
        if now - started > seconds:
            raise BenchError(f"not within {seconds:g} s: {what} {how_far()}".rstrip())
        if now - spoke >= 5:
            spoke = now
            say(f"  {what} {how_far()}".rstrip())
        time.sleep(every_seconds)


def let_run(seconds: float, *, what: str, how_far: Callable[[], str], do: Callable[[], None] = lambda: None) -> None:
    """Let time pass while something is measured. `do` is called about twice a second."""
    until = time.monotonic() + seconds
    spoke = time.monotonic()
    while (left := until - time.monotonic()) > 0:
        do()
        if time.monotonic() - spoke >= 5:
            spoke = time.monotonic()
            say(f"  {what}: {left:.0f} s left, {how_far()}")
        time.sleep(max(0.0, min(0.5, until - time.monotonic())))
