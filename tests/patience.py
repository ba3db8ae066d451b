"""Time limits of tests: those of a quiet machine, longer where it is busy.

A limit states how long something may take, such as a restart. On a machine with more work than cores each step takes
longer without any fault, so the limit grows with the load: a test fails for what it tests, not for its neighbours.
"""

import os
import time
from collections.abc import Callable
from typing import Any


def stretched(seconds: float) -> float:
    """Returns the limit, multiplied by the present load per core where that is above one."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def wait_for(condition: Callable[[], Any], seconds: float = 20, what: object = "") -> Any:
    """Returns the first true value of `condition`; fails with `what` if there is none in time."""
    began = time.monotonic()
    while not (value := condition()):
        assert time.monotonic() - began < stretched(seconds), f"not within {seconds:g} s: {what or condition}"
        time.sleep(0.02)
    return value
