"""Figures of a night: ages sampled from the rows, requests counted as they are sent, changes received by signals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.dispatch import Signal

from benchmarks.night.site import Request
from benchmarks.night.world import moment
from monitoring.models import Alert, Grade, GradeChange, Severity
from monitoring.queries import percentile
from scraping import signals
from scraping.models import Match, MatchRef
from scraping.scheduler.loop import StepFunction

if TYPE_CHECKING:
    from benchmarks.night.night import Night

FRESH_SECONDS = 10.0  # NFR-011
DOWN_SECONDS = 60.0  # without a reading: the scraper of a match counts as down (NFR-007)
COUNTED = (
    "errors", "retries", "deaths", "pauses", "restarts", "breakers_opened", "source_breakers_opened",
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """Ages of the matches in play at one time, and what was sent since the sample before."""

    t: float
    p50: float
    p95: float
    max: float
    matches: int
    grade: str
    polls: dict[str, int]  # by source


class Recorder:
    def __init__(self, night: Night) -> None:
        self._night = night
        self.samples: list[Sample] = []
        self.polls: Counter[str] = Counter()  # by source; lists of matches are not counted
        self.counts: Counter[str] = Counter()
        self.rungs: Counter[str] = Counter()
        self._sampled_polls: Counter[str] = Counter()
        self._ages: list[float] = []
        self._live, self._up = 0, 0
        self._silent_since: dict[int, float] = {}  # by match: when its recovery began
        self._recovery_seconds: list[float] = []

    def count_request(self, request: Request, *, is_retry: bool) -> None:
        if request.match is not None:
            self.polls[request.source_key] += 1
        self.counts["errors"] += request.response.error is not None
        self.counts["retries"] += is_retry

    def read_ages(self) -> dict[str, float]:
        """Returns the age of each live match by its id at the sources; before its first reading since its start."""
        seconds, now = self._night.clock.seconds, moment(self._night.clock.seconds)
        matches = self._night.world.match_by_id
        ages: dict[str, float] = {
            key: seconds - max(0.0, match.timeline.start)
            for key, match in matches.items()
            if match.timeline.is_live(seconds)
        }
        rows = MatchRef.objects.values_list("source_event_id", "match__last_scraper_update")
        for key, read_at in rows:
            if key in ages and read_at is not None:
                ages[key] = min(ages[key], (now - read_at).total_seconds())
        return ages

    def sample(self) -> None:
        seconds, matches = self._night.clock.seconds, self._night.world.match_by_id
        ages = self.read_ages()
        in_play = [age for key, age in ages.items() if matches[key].timeline.is_in_play(seconds)]
        self._ages += in_play
        self._live += len(ages)
        self._up += sum(age < DOWN_SECONDS for age in ages.values())
        since = {source.key: self.polls[source.key] for source in self._night.world.sources}
        polls = {key: number - self._sampled_polls[key] for key, number in since.items()}
        self._sampled_polls.update(polls)
        p50, p95, oldest = percentile(in_play, 0.5), percentile(in_play, 0.95), max(in_play, default=0.0)
        self.samples.append(Sample(seconds, p50, p95, oldest, len(in_play), current_grade(), polls))

    @contextmanager
    def listening(self) -> Iterator[None]:
        receivers: dict[Signal, Callable[..., None]] = {
            signals.task_died: self._counter("deaths"),
            signals.match_paused: self._counter("pauses"),
            signals.scraper_restarted: self._counter("restarts"),
            signals.breaker_opened: self._breaker_opened,
            signals.silence_climbed: self._silence_climbed,
            signals.silence_over: self._silence_over,
        }
        for signal, receiver in receivers.items():
            signal.connect(receiver, weak=False)
        try:
            yield
        finally:
            for signal, receiver in receivers.items():
                signal.disconnect(receiver)

    def counted(self, name: str, step: StepFunction) -> StepFunction:
        """Returns the scheduler step with its results added up under its name."""

        def run(now: datetime) -> int:
            found = step(now)
            self.counts[name] += found
            return found

        return run

    def _counter(self, name: str) -> Callable[..., None]:
        def count(**_: Any) -> None:
            self.counts[name] += 1

        return count

    def _breaker_opened(self, name: str, **_: Any) -> None:
        self.counts["source_breakers_opened" if name.endswith("_source") else "breakers_opened"] += 1

    def _silence_climbed(self, match_id: int, rung_name: str, **_: Any) -> None:
        self.rungs[rung_name] += 1
        self._silent_since.setdefault(match_id, self._night.clock.seconds)

    def _silence_over(self, match_id: int, **_: Any) -> None:
        """Recovery lasts from the first rung, or from the end of the fault if that is later, to the next reading."""
        since = self._silent_since.pop(match_id, None)
        read_at = Match.objects.values_list("last_scraper_update", flat=True).get(pk=match_id)
        if since is not None and read_at is not None:
            until = (read_at - moment(0.0)).total_seconds()
            self._recovery_seconds.append(max(0.0, until - max(since, self._night.world.faults.last_end(until))))

    def figures(self) -> dict[str, Any]:
        counts, alerts = self.counts, Alert.objects.all()
        fresh = sum(age < FRESH_SECONDS for age in self._ages)
        return {
            "matches": len(self._night.world.matches),
            "hours": self._night.script.hours,
            "polls": self.polls.total(),
            **{name: counts[name] for name in COUNTED},
            "rescues": counts["rescue_expired"],
            "rungs": dict(sorted(self.rungs.items())),
            "alerts": alerts.count(),
            "critical_alerts": alerts.filter(severity=Severity.CRITICAL).count(),
            **{f"age_p{share}_s": round(percentile(self._ages, share / 100), 2) for share in (50, 95, 99)},
            "age_max_s": round(max(self._ages, default=0.0), 2),
            "fresh_share": round(fresh / len(self._ages), 4) if self._ages else 1.0,  # of the samples of play
            "uptime_share": round(self._up / self._live, 4) if self._live else 1.0,  # of the samples of live matches
            "recoveries": len(self._recovery_seconds),
            "recovery_p95_s": round(percentile(self._recovery_seconds, 0.95), 2),
            "recovery_max_s": round(max(self._recovery_seconds, default=0.0), 2),
            "grade": current_grade(),
            "grade_changes": GradeChange.objects.count(),
        }


def current_grade() -> str:
    last = GradeChange.objects.order_by("at", "pk").last()
    return last.to_grade if last is not None else Grade.HEALTHY.value
