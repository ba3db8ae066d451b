"""The same night through the real steps, the real journal and the real ingest: what keeps the simulator honest.

The world, its faults and the answers of its sources are the simulator's; everything else is the system's own code on an
empty database. Its clock is the night's: `django.utils.timezone.now`, which all of our code asks, is replaced while the
night lasts. Left out: what goes wrong with ourselves (workers, broker, database), for which there are real fault tests.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from heapq import heappop, heappush
from itertools import count
from typing import Any
from unittest import mock

import dramatiq
from django.conf import settings
from django.utils.module_loading import import_string
from dramatiq.brokers.stub import StubBroker

from scraping import errors, journal
from scraping.errors import ErrorClass
from scraping.journal import Claim
from scraping.models import ScrapeTask, TaskState, Worker
from scraping.payloads import MatchState, Payload, Resource, Score, SideScore, Sport, Team, Teams
from scraping.reading.reader import Reader, Target
from scraping.readings import Reading, ReadMode
from scraping.signals import breaker_opened, match_paused, silence_climbed
from scraping.worker import scrape
from scraping.worker.engine import Engine
from victoryline.lib.hint_broker import QUEUE
from victoryline.night import answers
from victoryline.night.answers import Answer
from victoryline.night.comparison import ROUND_SECONDS, Counts, only_outside
from victoryline.night.engine import Night
from victoryline.night.moments import BEGIN, moment
from victoryline.night.rows import Task, Watch
from victoryline.night.working import HEARTBEAT_SECONDS
from victoryline.night.world import Script, World

WORKER = "night-1"
STEPS = frozenset(
    {
        "rescue_expired", "end_pauses", "evaluate_source_breakers", "dispatch_due", "hint_due_tasks",
        "restart_scrapers", "escalate_silent_matches",
    }
)  # fmt: skip
RAISED: dict[ErrorClass, Callable[[str], Exception]] = {
    ErrorClass.TRANSIENT: errors.Transient,
    ErrorClass.BLOCKED: errors.Blocked,
    ErrorClass.BUG: RuntimeError,
}


class NightReader(Reader):
    """Brings back what the source would have answered: decided when the request set out."""

    def __init__(self, night: Night, watches: dict[int, Watch]) -> None:
        self._night, self._watches = night, watches
        self.answers: dict[int, Answer] = {}

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        watch, answer = self._watches[target.ref_id], self.answers.pop(target.ref_id)
        if answer.error is not None:
            error = RAISED[answer.error](answer.message)
            if isinstance(error, errors.ScrapingError):
                error.retry_after_seconds = answer.retry_after
            raise error
        payload = payload_of(watch, self._night.t)
        return Reading(target.ref, ReadMode.DIRECT, payload.captured_at, documents={}), payload


def payload_of(watch: Watch, t: float) -> Payload:
    """The match as it is; its score is the number of things that have happened."""
    state = watch.game.play.at(t)
    number = watch.game.match.pk
    return Payload(
        source=watch.site.row.key,
        captured_at=moment(t),
        source_event_id=watch.ref.source_event_id,
        state=MatchState(
            sport=Sport.CRICKET,
            title=watch.game.match.title,
            status=state.status,
            phase=state.phase,
            teams=Teams(team_a=Team(name=f"Home {number}"), team_b=Team(name=f"Away {number}")),
            score=Score(team_a=SideScore(runs=state.version, wickets=0)),
            start_time=watch.game.match.start_time,
        ),
    )


class DatabaseNight:
    def __init__(self, script: Script) -> None:
        self.night = only_outside(Night(script, tick_seconds=ROUND_SECONDS))
        self.counts = Counts()
        self._watches = {watch.ref.pk: watch for watch in self.night.world.watches}
        self._reader = NightReader(self.night, self._watches)
        self._engine = Engine(worker_id=WORKER, reader=self._reader, policies=self.night.policies)
        self._broker = StubBroker()
        self._steps = [
            (import_string(path), every, [0.0])
            for path, every in settings.SCHEDULER_STEPS
            if path.rpartition(".")[2] in STEPS
        ]
        self._work: list[tuple[float, int, Claim]] = []
        self._numbers = count()

    def run(self) -> Counts:
        """On an empty database, which is full afterwards."""
        with self._clock(), self._listening(), _quiet():
            _save(self.night.world)
            ticks = round(self.night.script.seconds / ROUND_SECONDS)
            for number in range(ticks + 1):
                self._finish_until(number * ROUND_SECONDS)
                self._set(number * ROUND_SECONDS)
                self._round(is_heartbeat=number % round(HEARTBEAT_SECONDS / ROUND_SECONDS) == 0)
        dead = ScrapeTask.objects.filter(state=TaskState.DEAD)
        self.counts.deaths = dead.count()
        return self.counts

    def _set(self, t: float) -> None:
        self.night.t, self.night.now = t, moment(t)

    def _now(self) -> datetime:
        return self.night.now

    def _round(self, *, is_heartbeat: bool) -> None:
        now = self.night.now
        if is_heartbeat:
            row = {"host": "night", "pid": 1, "started_at": BEGIN, "heartbeat_at": now}
            Worker.objects.update_or_create(worker_id=WORKER, defaults=row)
            self._engine.outcomes.flush(now=now)
        for step, every, due in self._steps:
            if self.night.t >= due[0]:
                due[0] = self.night.t + every
                step(now)
        self._take_hints()

    def _take_hints(self) -> None:
        """The worker's side: claim what was hinted, ask the source, and be done when it has answered."""
        queue = self._broker.queues.get(QUEUE)
        while queue is not None and not queue.empty():
            message = dramatiq.Message.decode(queue.get())
            for task_id in message.args:
                lease = self.night.policies.lease_seconds
                claim = journal.claim(task_id, worker_id=WORKER, lease_seconds=lease, now=self.night.now)
                if claim is not None:
                    self._ask(claim)

    def _ask(self, claim: Claim) -> None:
        if claim.resource is not Resource.SCORECARD or claim.ref_id is None:
            ScrapeTask.objects.filter(pk=claim.task_id).delete()  # whole matches are no part of this comparison
            return
        watch = self._watches[claim.ref_id]
        answer = answers.ask(self.night, Task(claim.task_id, watch, run_at=self.night.t))
        self._reader.answers[claim.ref_id] = answer
        self.counts.polls += 1
        number = watch.game.match.pk
        self.counts.polls_by_match[number] = self.counts.polls_by_match.get(number, 0) + 1
        self.counts.errors += answer.error is not None
        heappush(self._work, (self.night.t + answer.seconds, next(self._numbers), claim))

    def _finish_until(self, t: float) -> None:
        while self._work and self._work[0][0] <= t:
            at, _, claim = heappop(self._work)
            self._set(at)
            scrape.run(claim, self._engine)

    @contextmanager
    def _clock(self) -> Iterator[None]:
        before = dramatiq.get_broker()
        dramatiq.set_broker(self._broker)
        try:
            with mock.patch("django.utils.timezone.now", self._now):
                yield
        finally:
            dramatiq.set_broker(before)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        seen: Counter[str] = Counter()

        def opened(name: str, **_: Any) -> None:
            seen["source" if name.endswith("_source") else "match"] += 1

        def paused(**_: Any) -> None:
            seen["paused"] += 1

        def climbed(**_: Any) -> None:
            seen["climbed"] += 1

        heard = ((breaker_opened, opened), (match_paused, paused), (silence_climbed, climbed))
        for signal, receiver in heard:
            signal.connect(receiver, weak=False)
        try:
            yield
        finally:
            for signal, receiver in heard:
                signal.disconnect(receiver)
        self.counts.breakers_opened, self.counts.source_breakers_opened = seen["match"], seen["source"]
        self.counts.pauses, self.counts.rungs = seen["paused"], seen["climbed"]


def _save(world: World) -> None:
    """The rows of the world, as discovery would have left them."""
    for site in world.sites:
        site.row.sport, site.row.base_url, site.row.adapter = "cricket", f"https://{site.row.key}.example", "crex"
        site.row.save(force_insert=True)
    for game in world.games:
        game.match.sport = Sport.CRICKET
        game.match.save(force_insert=True)
        for watch in game.watches:
            watch.ref.next_poll_at = BEGIN if watch.ref.is_watched else None
            watch.ref.save(force_insert=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """A night has thousands of warnings to give; they are what it is about, and nobody needs to read them."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
