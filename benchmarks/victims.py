"""Whom the benches kill: a browser, one of its renderers, its driver, a worker."""

from __future__ import annotations

import contextlib

import psutil

from benchmarks.arena import Arena

BROWSER_KINDS = ("browser", "renderer", "driver")
KINDS = (*BROWSER_KINDS, "worker")


def kill(place: Arena, kind: str) -> int | None:
    """SIGKILL one of the kind, and nobody else; its process number. None where there is none now."""
    for process in _of(place, kind):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
            return process.pid
    return None


def _of(place: Arena, kind: str) -> list[psutil.Process]:
    parts = place.trees()
    if kind == "driver":
        return parts.get("driver", [])
    if kind == "worker":
        return [one for name in ("worker", "engine") for one in parts.get(name, []) if "manage.py" in _words(one)]
    browsers = [(one, _words(one)) for one in parts.get("browser", [])]
    if kind == "renderer":
        # Newest first: an older one may be a spare that nobody would miss.
        found = [one for one, words in browsers if "--type=renderer" in words]
        return sorted(found, key=_started, reverse=True)
    return [one for one, words in browsers if words and "--type=" not in words and "crashpad" not in words]


def _words(process: psutil.Process) -> str:
    """As one text: some builds of Chromium write the whole command line of a child as one word."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def _started(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        return process.create_time()
    return 0.0
