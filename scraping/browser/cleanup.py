"""What a browser leaves behind: processes and folders. Both are gone ten seconds after its end, and that is checked.

Guards against remains that pile up: a renderer that hangs outlives its browser, a driver that was killed removes no
folders, and Chromium itself leaves one behind whenever it is killed.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from prometheus_client import Counter, Histogram

from scraping.browser.processes import kill, own_memory_bytes, profile_of, runs, using_profile, wait_gone
from victoryline.lib.processes import remove_tree

logger = logging.getLogger(__name__)

WITHIN_SECONDS = 10.0
POLITE_SECONDS = 2.0  # so long what is ending by itself may take
LEFTOVERS = ("playwright_", "playwright-artifacts-", "org.chromium.", ".org.chromium.")

_seconds = Histogram(
    "victoryline_browser_cleanup_seconds",
    "From the end of a browser until its processes and folders were gone.",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
_late = Counter("victoryline_browser_cleanup_late", "Browsers of which something was left after ten seconds.")


@dataclass(frozen=True)
class Remains:
    processes: list[psutil.Process]
    memory_bytes: int


@dataclass(frozen=True)
class Belongings:
    """What belongs to one browser: noted while it runs, since afterwards nobody knows."""

    profile: str
    driver: psutil.Process | None

    def remains(self) -> Remains:
        """The processes that still run, the driver included."""
        found = [*using_profile(self.profile), *([self.driver] if self.driver else [])]
        processes = [process for process in found if runs(process)]
        return Remains(processes, own_memory_bytes(processes))


@dataclass(frozen=True)
class Cleanup:
    pids: tuple[int, ...]
    memory_bytes: int
    killed: int
    left: int
    folders: int
    seconds: float


def belongings_of(pid: int) -> Belongings:
    driver = None
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid).parent()
        driver = parent if parent is not None and "run-driver" in parent.cmdline() else None
    return Belongings(profile_of(pid), driver)


def leftover_folders(own_temp_dir: Path | None, belongings: Belongings | None) -> list[Path]:
    """The folders that go with it. In a temporary folder that is ours alone: all that no living browser can need."""
    found: list[Path] = []
    if own_temp_dir is not None:
        with contextlib.suppress(OSError):
            found = [each for each in own_temp_dir.iterdir() if each.name.startswith(LEFTOVERS)]
    profile = Path(belongings.profile) if belongings is not None and belongings.profile else None
    # Only one that Playwright made for this browser: a profile that somebody chose is not ours to remove.
    if profile is not None and profile not in found and profile.name.startswith(LEFTOVERS) and profile.exists():
        found.append(profile)
    return found


def clean_up(remains: Remains, folders: list[Path], *, polite_seconds: float) -> Cleanup:
    """Wait for what is ending, end the rest, remove the folders, and say what that was. Blocks: not for the loop."""
    began = time.monotonic()
    processes = remains.processes
    killed = kill(wait_gone(processes, polite_seconds))
    left = [process.pid for process in wait_gone(processes, max(0.5, WITHIN_SECONDS - polite_seconds))]
    for folder in folders:
        remove_tree(folder)
    kept = [str(folder) for folder in folders if folder.exists()]
    done = Cleanup(
        pids=tuple(process.pid for process in processes),
        memory_bytes=remains.memory_bytes,
        killed=killed,
        left=len(left) + len(kept),
        folders=len(folders) - len(kept),
        seconds=time.monotonic() - began,
    )
    _tell(done, left, kept)
    return done


def _tell(done: Cleanup, left: list[int], kept: list[str]) -> None:
    _seconds.observe(done.seconds)
    details = {"pids": done.pids, "memory_bytes": done.memory_bytes, "killed": done.killed, "folders": done.folders}
    if done.left or done.seconds > WITHIN_SECONDS:
        _late.inc()
        logger.error(
            "After %.1f s there is something left of a browser that has ended: processes %s, folders %s. The next "
            "search for orphans tries again",
            done.seconds,
            left or "none",
            kept or "none",
            extra={"action": "browser_cleanup_late", **details},
        )
        return
    logger.info(
        "Of the browser that ended nothing is left after %.1f s: %d processes (%.0f MB, %d of them killed), %d folders",
        done.seconds,
        len(done.pids),
        done.memory_bytes / 1e6,
        done.killed,
        done.folders,
        extra={"action": "browser_cleaned_up", **details},
    )
