"""Kills a browser, one of its renderers, its driver or a worker."""

from __future__ import annotations

import contextlib

import psutil

from benchmarks.environment import BenchEnvironment

BROWSER_KINDS = ("browser", "renderer", "driver")
KINDS = (*BROWSER_KINDS, "worker")


def kill(environment: BenchEnvironment, kind: str) -> int | None:
    """Sends SIGKILL to one process of the kind and returns its id; None if there is none."""
    for process in _of(environment, kind):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
            return process.pid
    return None


def _of(environment: BenchEnvironment, kind: str) -> list[psutil.Process]:
    parts = environment.trees()
    if kind == "driver":
        return parts.get("driver", [])
    if kind == "worker":
        return [
            one for name in ("worker", "engine") for one in parts.get(name, []) if "manage.py" in _command_line(one)
        ]
    browsers = [(one, _command_line(one)) for one in parts.get("browser", [])]
    if kind == "renderer":
        # Newest first: an older one may be an unused spare.
        found = [one for one, text in browsers if "--type=renderer" in text]
        return sorted(found, key=_started, reverse=True)
    return [one for one, text in browsers if text and "--type=" not in text and "crashpad" not in text]


def _command_line(process: psutil.Process) -> str:
    """Returns it as one text: some builds of Chromium have the whole command line of a child as one argument."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _started(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        return process.create_time()
    return 0.0
