"""Samples a running system from outside: ages of the data, memory, processes, files. Needs Django set up.

The age is sampled twice a second for every live match: the time since the reading that is served. Memory is sampled
less often, because reading it costs the browser time too.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from django.utils import timezone

from benchmarks import results
from benchmarks.environment import BenchEnvironment
from scraping.models import Match

OURS = ("worker", "scheduler", "engine", "browser", "driver")  # parts whose memory and CPU are counted
RESOURCES_EVERY_SECONDS = 3.0
POINTS = 240  # of a series that is kept


def is_ours(part: str) -> bool:
    return part.partition("-")[0] in OURS


@dataclass(frozen=True)
class ResourceSample:
    """Resources of our processes at one moment."""

    at: float
    memory_bytes: dict[str, int]  # by part; pages that processes share are divided among them (PSS)
    processes: int
    files: int  # open in our Python processes; those of a browser vary
    folders: int  # in the temporary folders of our processes

    @property
    def memory(self) -> int:
        return sum(self.memory_bytes.values())


def sample_resources(environment: BenchEnvironment, *, at: float = 0.0) -> ResourceSample:
    memory: dict[str, int] = {}
    processes = files = 0
    for part, members in environment.trees().items():
        name = part.partition("-")[0]
        for process in members if is_ours(part) else ():
            with contextlib.suppress(psutil.Error):
                memory[name] = memory.get(name, 0) + process.memory_full_info().pss
                processes += 1
                files += process.num_fds() if name not in {"browser", "driver"} else 0
    return ResourceSample(at, memory, processes, files, _folders(environment.folder))


def _folders(folder: Path) -> int:
    """Returns the number of entries in the temporary folders of the bench and of the supervised processes."""
    with contextlib.suppress(FileNotFoundError):  # a folder was removed meanwhile
        return sum(1 for parent in (folder / "tmp", *(folder / "var" / "tmp").glob("*")) for _ in parent.iterdir())
    return 0


@dataclass(frozen=True)
class Mark:
    """An event of the bench, such as a kill."""

    at: float
    kind: str
    what: str


@dataclass
class Sampler:
    environment: BenchEnvironment
    began: float = field(default_factory=time.monotonic)
    ages: list[tuple[float, list[float]]] = field(default_factory=list)
    resource_samples: list[ResourceSample] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    def sample(self) -> None:
        self.environment.check()
        moment = timezone.now()
        seen = Match.objects.live().exclude(last_scraper_update=None).values_list("last_scraper_update", flat=True)
        self.ages.append((self.now, [(moment - at).total_seconds() for at in seen if at is not None]))
        if not self.resource_samples or self.now - self.resource_samples[-1].at >= RESOURCES_EVERY_SECONDS:
            self.sample_resources()

    def sample_resources(self) -> None:
        """Must also be called at the end, so that the memory series is complete."""
        self.resource_samples.append(sample_resources(self.environment, at=self.now))

    def mark(self, kind: str, what: str) -> None:
        self.mark_at(self.now, kind, what)

    def mark_at(self, at: float, kind: str, what: str) -> None:
        self.marks.append(Mark(at, kind, what))

    def all_ages(self) -> list[float]:
        return [age for _, ages in self.ages for age in ages]

    def progress(self) -> str:
        latest = self.ages[-1][1] if self.ages else []
        memory = self.resource_samples[-1].memory / 2**20 if self.resource_samples else 0.0
        middle, high = (results.percentile(latest, percent) for percent in (50, 99))
        return f"age p50 {middle:.1f} s, p99 {high:.1f} s, {memory:.0f} MB"

    def figures(self) -> dict[str, Any]:
        """Returns the keys of a result about ages and memory."""
        ages, memory = self.all_ages(), [one.memory / 2**20 for one in self.resource_samples]
        peak = max(self.resource_samples, key=lambda one: one.memory, default=ResourceSample(0.0, {}, 0, 0, 0))
        return {
            **{f"age_p{percent}_s": round(results.percentile(ages, percent), 2) for percent in (50, 95, 99)},
            "age_max_s": round(max(ages, default=0.0), 2),
            "memory_mb": round(max(memory, default=0.0)),
            "memory_mean_mb": round(sum(memory) / len(memory)) if memory else 0,
            "memory_mb_by_part": {part: round(value / 2**20) for part, value in sorted(peak.memory_bytes.items())},
        }

    def series(self) -> dict[str, Any]:
        """Ages and memory over time, in as many points as a picture can show; `benchmarks.pictures` draws it."""
        step = max(1.0, self.now / POINTS)
        ages = _in_steps([(at, age) for at, seen in self.ages for age in seen], step)
        parts = sorted({part for one in self.resource_samples for part in one.memory_bytes})
        return {
            "age": {
                "at_s": [at for at, _ in ages],
                **{f"p{n}_s": [round(results.percentile(seen, n), 2) for _, seen in ages] for n in (50, 99)},
            },
            "memory": {
                "at_s": [round(one.at, 1) for one in self.resource_samples],
                **{
                    f"{part}_mb": [round(one.memory_bytes.get(part, 0) / 2**20, 1) for one in self.resource_samples]
                    for part in parts
                },
            },
            "marks": [{"at_s": round(one.at, 1), "kind": one.kind, "what": one.what} for one in self.marks],
        }


def _in_steps(points: Sequence[tuple[float, float]], step: float) -> list[tuple[float, list[float]]]:
    """Groups values by time step; each group has the middle of its step."""
    by_step: dict[int, list[float]] = {}
    for at, value in points:
        by_step.setdefault(int(at // step), []).append(value)
    return [(round((number + 0.5) * step, 1), values) for number, values in sorted(by_step.items())]


def slope_an_hour(points: Sequence[tuple[float, float]]) -> float:
    """Returns the slope per hour of the least-squares line through (seconds, value)."""
    if len(points) < 2:
        return 0.0
    mean_at = sum(at for at, _ in points) / len(points)
    mean = sum(value for _, value in points) / len(points)
    spread = sum((at - mean_at) ** 2 for at, _ in points)
    return 3600 * sum((at - mean_at) * (value - mean) for at, value in points) / spread if spread else 0.0
