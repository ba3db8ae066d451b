"""Measures a running system for a time: age of its data, memory, CPU. Needs Django set up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Sum
from django.utils import timezone

from benchmarks import polling, results
from benchmarks.cpu import Cpu, CpuTimes, milliseconds_each
from benchmarks.environment import BenchEnvironment
from benchmarks.progress import let_run, say
from benchmarks.sampler import Sampler, is_ours
from scraping.models import Scraper


@dataclass(frozen=True)
class Measurement:
    seconds: float
    matches: int
    sampler: Sampler
    window: polling.PollWindow
    commit_ms: float
    cpu: Cpu

    @property
    def cost(self) -> dict[str, float]:
        """CPU milliseconds per poll: by part, of all, and of ours (without servers and stadium)."""
        each = milliseconds_each([self.cpu], self.window.polls)
        return each | {"ours": round(sum(value for part, value in each.items() if is_ours(part)), 2)}

    def figures(self) -> dict[str, Any]:
        percent = self.cpu.percent()
        return {
            "matches": self.matches,
            "seconds": round(self.seconds),
            **self.sampler.figures(),
            "commit_ms": self.commit_ms,
            "cpu_percent": round(sum(value for part, value in percent.items() if is_ours(part)), 1),
            "cpu_percent_by_part": percent,
            "cpu_ms_a_poll": self.cost,
            "polls_a_second": round(self.window.polls / self.seconds, 1),
            "poll_p50_ms": round(results.percentile(self.window.milliseconds, 50), 1),
            "poll_p95_ms": round(results.percentile(self.window.milliseconds, 95), 1),
        }

    def problems(self) -> list[str]:
        errors = self.window.errors
        found = [f"{len(errors)} errors with {self.matches} matches, the first: {errors[0]}"] if errors else []
        if self.window.matches < self.matches:
            found.append(f"only {self.window.matches} of {self.matches} matches were polled")
        return found


def measure(environment: BenchEnvironment, *, matches: int, seconds: float) -> Measurement:
    """Measures a running system."""
    say(f"measuring {matches} matches for {seconds:g} s")
    sampler, updates, start, cpu = Sampler(environment), _updates(), timezone.now(), CpuTimes.of(environment.trees())
    let_run(seconds, what=f"{matches} matches", progress=sampler.progress, do=sampler.sample)
    used, end = cpu.until(CpuTimes.of(environment.trees())), timezone.now()
    sampler.sample_resources()
    return Measurement(
        seconds=(end - start).total_seconds(),
        matches=matches,
        sampler=sampler,
        window=polling.between(start, end),
        commit_ms=_commit_ms(updates),
        cpu=used,
    )


def _updates() -> tuple[int, int]:
    sums = Scraper.objects.aggregate(updates=Sum("total_updates"), milliseconds=Sum("latency_total_ms"))
    return sums["updates"] or 0, sums["milliseconds"] or 0


def _commit_ms(before: tuple[int, int]) -> float:
    """Returns the mean time from a reading to the end of its transaction."""
    updates, milliseconds = (after - earlier for after, earlier in zip(_updates(), before, strict=True))
    return round(milliseconds / updates, 1) if updates else 0.0
