"""Measures a running system for a time: age of its data, memory, CPU. Needs Django set up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, Subquery, Sum
from django.utils import timezone

from benchmarks import polling, results
from benchmarks.cpu import Cpu, CpuTimes, milliseconds_each
from benchmarks.environment import BenchEnvironment
from benchmarks.ground_truth import EVENT_KINDS, EventLatencies, event_latencies
from benchmarks.progress import let_run, say
from benchmarks.sampler import Sampler, is_ours
from scraping.models import MatchEvent, MatchRef, Scraper, Snapshot

EVENT_MARGIN = timedelta(seconds=10)  # events of the last seconds may not have been read yet


@dataclass(frozen=True)
class Measurement:
    seconds: float
    matches: int
    sampler: Sampler
    window: polling.PollWindow
    commit_ms: float
    cpu: Cpu
    event_seconds: dict[str, list[float]]  # from the event at the source to the commit, by kind
    missing_events: int

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
            **{f"{kind}_p90_s": round(results.percentile(all_, 90), 2) for kind, all_ in self.event_seconds.items()},
            **{f"{kind}s": len(all_) for kind, all_ in self.event_seconds.items()},
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
        if self.missing_events:
            found.append(f"{self.missing_events} balls and dismissals of {self.matches} matches were not written")
        return found


def measure(environment: BenchEnvironment, *, matches: int, seconds: float) -> Measurement:
    """Measures a running system."""
    say(f"measuring {matches} matches for {seconds:g} s")
    sampler, updates, start, cpu = Sampler(environment), _updates(), timezone.now(), CpuTimes.of(environment.trees())
    let_run(seconds, what=f"{matches} matches", progress=sampler.progress, do=sampler.sample)
    used, end = cpu.until(CpuTimes.of(environment.trees())), timezone.now()
    sampler.sample_resources()
    event_seconds, missing = _event_seconds(environment, start, end - EVENT_MARGIN)
    return Measurement(
        seconds=(end - start).total_seconds(),
        matches=matches,
        sampler=sampler,
        window=polling.between(start, end),
        commit_ms=_commit_ms(updates),
        cpu=used,
        event_seconds=event_seconds,
        missing_events=missing,
    )


def _event_seconds(environment: BenchEnvironment, since: datetime, until: datetime) -> EventLatencies:
    """Returns the latencies of all matches. An event was written with the snapshot of its sequence."""
    snapshots = Snapshot.objects.filter(match=OuterRef("match"), sequence=OuterRef("sequence"))
    rows = MatchEvent.objects.filter(revision=1, created_at__gte=since).annotate(
        written_at=Subquery(snapshots.values("created_at")[:1])
    )
    found: dict[str, list[float]] = {kind: [] for kind in EVENT_KINDS.values()}
    missing = 0
    for ref in MatchRef.objects.filter(source__key=polling.SITE, is_watched=True):
        written = dict(rows.filter(match=ref.match_id).values_list("event_id", "written_at"))
        truth = environment.stadium.truth(polling.SITE, ref.source_event_id)["events"]
        seconds, lost = event_latencies(truth, written, since=since, until=until)
        missing += lost
        for kind, values in seconds.items():
            found[kind] += values
    return found, missing


def _updates() -> tuple[int, int]:
    sums = Scraper.objects.aggregate(updates=Sum("total_updates"), milliseconds=Sum("latency_total_ms"))
    return sums["updates"] or 0, sums["milliseconds"] or 0


def _commit_ms(before: tuple[int, int]) -> float:
    """Returns the mean time from a reading to the end of its transaction."""
    updates, milliseconds = (after - earlier for after, earlier in zip(_updates(), before, strict=True))
    return round(milliseconds / updates, 1) if updates else 0.0
