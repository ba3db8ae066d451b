"""Builds payloads, tasks and attempts; a test passes only the values that matter to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import Context
from datetime import datetime, timedelta
from typing import Any

from scraping import journal
from scraping.configuration.policies import Policies
from scraping.journal import Claim
from scraping.matches import ingest
from scraping.models import MatchRef, ScrapeTask
from scraping.payloads import Event, Innings, MatchState, Payload, Resource, Score, SideScore
from scraping.policies.breaker import BreakerPolicy
from scraping.policies.interval import Pace
from scraping.policies.retry import RetryPolicy
from scraping.reading.reader import BatchResult, Reader, Target
from scraping.readings import Reading, ReadMode, report_stage
from scraping.worker.engine import Engine
from tests.factories import NOW, cricket_state

LEASE_SECONDS = 15.0
POLICIES = Policies(
    lease_seconds=LEASE_SECONDS,
    max_rescues=3,
    hint_again_seconds=2.0,
    discovery_interval_seconds=30.0,
    pause_after_failures=5,
    pause_seconds=300.0,
    max_lifetime_seconds=6 * 3600.0,
    staleness_threshold_seconds=300.0,
    retry=RetryPolicy(),
    breaker=BreakerPolicy(),
    pace=Pace(),
)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def ball(number: int, **fields: Any) -> Event:
    """The ball with this number, one run."""
    values: dict[str, Any] = {
        "id": f"2-{number}",
        "kind": "run",
        "innings": 2,
        "over": f"{(number - 1) // 6}.{(number - 1) % 6 + 1}",
        "ordinal": number,
        "runs": 1,
    }
    return Event(**values | fields)


def balls(*numbers: int) -> tuple[Event, ...]:
    return tuple(ball(number) for number in numbers)


def chasing(runs: int, wickets: int = 3, overs: str = "12.3", **fields: Any) -> MatchState:
    """The second innings at this score."""
    first = Innings(number=1, team="team_a", runs=187, wickets=5, overs="20.0")
    second = Innings(number=2, team="team_b", runs=runs, wickets=wickets, overs=overs)
    score = Score(
        team_a=SideScore(runs=187, wickets=5, overs="20.0"),
        team_b=SideScore(runs=runs, wickets=wickets, overs=overs),
    )
    return cricket_state(innings=(first, second), score=score, **fields)


def payload_of(
    ref: MatchRef, state: MatchState | None = None, *, at: datetime = NOW, events: Iterable[Event] = (), **fields: Any
) -> Payload:
    return Payload(
        source=ref.source.key,
        captured_at=at,
        source_event_id=ref.source_event_id,
        state=state or cricket_state(),
        events=tuple(events),
        **fields,
    )


def open_task(ref: MatchRef, *, at: datetime = NOW, resource: Resource = Resource.SCORECARD) -> int:
    """A new PENDING task, due at once."""
    new = journal.NewTask(ref.source_id, ref.pk, resource, priority=0, run_at=at)
    assert journal.open_tasks([new], now=at) == 1
    return ScrapeTask.objects.filter(ref=ref, resource=resource).latest("pk").pk


def claimed(task_id: int, *, worker: str = "w-1", at: datetime = NOW) -> Claim:
    claim = journal.claim(task_id, worker_id=worker, lease_seconds=LEASE_SECONDS, now=at)
    assert claim is not None
    return claim


def new_claim(ref: MatchRef, *, at: datetime = NOW, resource: Resource = Resource.SCORECARD) -> Claim:
    return claimed(open_task(ref, at=at, resource=resource), at=at)


def read(
    ref: MatchRef,
    payload: Payload,
    *,
    at: datetime | None = None,
    had_failures: bool = False,
    pace: Pace | None = None,
    clock: Callable[[], datetime] | None = None,
) -> ingest.IngestResult:
    """One poll that brought this payload, from the claim to the commit."""
    now = at or payload.captured_at
    with journal.finishing(new_claim(ref, at=now), now=now):
        attempt = ingest.Attempt("w-1", payload.captured_at, had_failures=had_failures, now=now, clock=clock)
        return ingest.apply(payload, ref_id=ref.pk, pace=pace or Pace(), attempt=attempt)


Outcome = Payload | Exception


class ReaderInTurn(Reader):
    """Reads the matches of a batch one by one with `scorecard`."""

    def batches(self, targets: Sequence[Target], contexts: Sequence[Context]) -> Iterator[list[BatchResult]]:
        numbers = range(len(targets))
        yield [self._read(number, targets[number], contexts[number]) for number in numbers]

    def _read(self, number: int, target: Target, context: Context) -> BatchResult:
        try:
            return BatchResult(number, *context.run(self.scorecard, target), None)
        except Exception as error:  # noqa: BLE001 - as the real reader
            return BatchResult(number, None, None, error)


class ScriptedReader(ReaderInTurn):
    """Returns scripted outcomes in turn, the last one repeatedly."""

    def __init__(self, *outcomes: Outcome, before: Callable[[], None] = lambda: None) -> None:
        self._outcomes = list(outcomes)
        self._before = before
        self.reads = 0

    def _next(self) -> Payload:
        self.reads += 1
        report_stage("NAVIGATING")
        self._before()
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        payload = self._next()
        return Reading(target.ref, ReadMode.DIRECT, payload.captured_at, documents={}), payload

    def older_events(self, target: Target, *, is_enough: Callable[[Payload], bool]) -> list[Payload]:
        return [self._next()]


def engine_with(*outcomes: Outcome, policies: Policies = POLICIES, before: Callable[[], None] = lambda: None) -> Engine:
    return Engine(worker_id="w-1", reader=ScriptedReader(*outcomes, before=before), policies=policies)
