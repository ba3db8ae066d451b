"""Rates of each source over time: calls, failures, read latencies and ages of live data, by minute and by quarter hour.

Guards the console against the journal: a chart reads at most a hundred small rows per source. The workers add what they
have counted with their heartbeats; the scheduler adds samples of the ages, so that an outage shows as data that ages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from scraping.models import MatchLifecycle, MatchRef, SourceRate
from scraping.models.traffic import RATE_SECONDS
from scraping.payloads import Status
from victoryline.lib.bulk_sql import Sums, add_up, bucket_start, in_periods

KEY = ("source", "seconds", "starts_at")
BOUNDS_MS = (50, 100, 200, 400, 800, 1600, 3200, 6400, 12800)
LATENCIES = (*(f"within_{bound}_ms" for bound in BOUNDS_MS), "slower")
AGES = ("age_samples", "median_age_ms_total")
COLUMNS = ("calls", "bad", *LATENCIES, *AGES, "oldest_age_ms")


@dataclass(frozen=True)
class Point:
    """The rates of one source in one period. None: nothing was read, or no match was live."""

    calls_per_minute: float = 0.0
    bad_percent: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    median_age_seconds: float | None = None
    oldest_age_seconds: float | None = None


def latency_counts(milliseconds: int) -> tuple[int, ...]:
    """Returns one reading as numbers for the columns of LATENCIES."""
    place = next((number for number, bound in enumerate(BOUNDS_MS) if milliseconds <= bound), len(BOUNDS_MS))
    return tuple(int(number == place) for number in range(len(LATENCIES)))


def add_latencies(counts: Sums) -> int:
    """Adds latency counts, by source and time."""
    return add_up(SourceRate, by=KEY, sums=LATENCIES, rows=in_periods(counts, RATE_SECONDS))


def sample_ages(now: datetime) -> int:
    """Scheduler step: adds the ages of the live data of each source. Returns the number of sources."""
    refs = MatchRef.objects.filter(
        is_watched=True,
        source__is_enabled=True,
        match__status=Status.LIVE,
        match__lifecycle__in=(MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE),
    )
    ages: dict[int, list[int]] = defaultdict(list)
    for source_id, read_at, known_since in refs.values_list("source_id", "captured_at", "match__created_at"):
        ages[source_id].append(max(0, round((now - (read_at or known_since)).total_seconds() * 1000)))
    samples: Sums = {(source_id, now): (1, round(median(each)), max(each)) for source_id, each in ages.items()}
    add_up(SourceRate, by=KEY, sums=AGES, most=("oldest_age_ms",), rows=in_periods(samples, RATE_SECONDS))
    return len(samples)


def series(seconds: int, *, periods: int, now: datetime) -> tuple[list[datetime], dict[int, list[Point]]]:
    """Returns the starts of the last complete periods, and the points of each source that had any, by its id."""
    end = bucket_start(now, seconds)
    starts = [end - timedelta(seconds=seconds * ago) for ago in range(periods, 0, -1)]
    rows = SourceRate.objects.filter(seconds=seconds, starts_at__gte=starts[0], starts_at__lt=end)
    places = {start: number for number, start in enumerate(starts)}
    found: dict[int, list[Point]] = defaultdict(lambda: [Point()] * periods)
    for source_id, starts_at, *numbers in rows.values_list("source_id", "starts_at", *COLUMNS):
        found[source_id][places[starts_at]] = _point(seconds, numbers)
    return starts, dict(found)


def _point(seconds: int, numbers: Sequence[int]) -> Point:
    calls, bad, *rest = numbers
    latencies, (samples, ages, oldest) = rest[: len(LATENCIES)], rest[len(LATENCIES) :]
    return Point(
        calls_per_minute=calls * 60 / seconds,
        bad_percent=100 * bad / calls if calls else None,
        p50_ms=_quantile(latencies, 0.5),
        p95_ms=_quantile(latencies, 0.95),
        median_age_seconds=ages / samples / 1000 if samples else None,
        oldest_age_seconds=oldest / 1000 if samples else None,
    )


def _quantile(counts: Sequence[int], share: float) -> float | None:
    """Returns the latency below which this share of the readings was, interpolated within its class."""
    wanted = sum(counts) * share
    if not wanted:
        return None
    below = 0
    for number, (low, high) in enumerate(zip((0, *BOUNDS_MS), (*BOUNDS_MS, BOUNDS_MS[-1] * 2), strict=True)):
        if below + counts[number] >= wanted:
            return low + (high - low) * (wanted - below) / counts[number]
        below += counts[number]
    raise AssertionError("the counts of all classes are their sum")
