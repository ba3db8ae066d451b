"""CPU seconds of each part between two times. Unlike rates they are also valid on a busy machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class CpuTimes:
    """CPU seconds of the processes of every part at one time, including ended children."""

    at: float
    seconds: dict[str, dict[int, float]]

    @classmethod
    def of(cls, parts: Mapping[str, Iterable[psutil.Process]]) -> CpuTimes:
        seconds: dict[str, dict[int, float]] = {}
        for part, processes in parts.items():
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    times = process.cpu_times()
                    own, ended = times.user + times.system, times.children_user + times.children_system
                    seconds.setdefault(part, {})[process.pid] = own + ended
        return cls(time.monotonic(), seconds)

    def until(self, later: CpuTimes) -> Cpu:
        used = {
            part: sum(value - self.seconds.get(part, {}).get(pid, 0.0) for pid, value in processes.items())
            for part, processes in later.seconds.items()
        }
        return Cpu(later.at - self.at, used)


@dataclass(frozen=True)
class Cpu:
    """CPU seconds that each part has used in a time span."""

    elapsed: float
    used: dict[str, float]

    def percent(self) -> dict[str, float]:
        """100 is one core."""
        return {part: round(100 * value / max(self.elapsed, 0.001), 1) for part, value in sorted(self.used.items())}


def milliseconds_each(turns: Iterable[Cpu], count: int) -> dict[str, float]:
    """Returns the CPU milliseconds of one of `count` units of work over all turns, by part and in total."""
    sums: dict[str, float] = {}
    for turn in turns:
        for part, value in turn.used.items():
            sums[part] = sums.get(part, 0.0) + value
    each = {part: round(1000 * value / count, 2) for part, value in sorted(sums.items())} if count else {}
    return each | {"all": round(sum(each.values()), 2)}


def tree(pid: int) -> list[psutil.Process]:
    """Returns a process and all its descendants; an empty list if it has ended."""
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    return []
