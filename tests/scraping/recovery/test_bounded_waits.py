"""The longest silence of a live match behind a fault: scheduler, ladder and worker under a test clock."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from scraping.errors import Blocked, Challenged, Transient
from scraping.models import Match, MatchRef, ScrapeTask, Worker
from scraping.payloads import Payload
from scraping.reading.reader import Target
from scraping.readings import Reading, ReadMode
from scraping.recovery import breakers, ladder, worker_commands
from scraping.scheduler import due, hint
from scraping.scheduler.recover import end_pauses
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from tests.factories import NOW, make_match, make_ref
from tests.scraping.attempts import Clock, stopped_clock
from tests.scraping.builders import POLICIES, ReaderInTurn, chasing, later, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db]
TICK = 2.5
FAULT_AT = 10
LONGEST_WAIT = 60 + TICK


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as clock:
        yield clock


@dataclass
class FaultyReader(ReaderInTurn):
    """Reads the match, but for some time gets an error instead."""

    ref: MatchRef
    clock: Clock
    fault: Exception
    fault_until: datetime
    reads_at: list[float] = field(default_factory=list)

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        seconds = (self.clock.now - NOW).total_seconds()
        self.reads_at.append(seconds)
        if seconds >= FAULT_AT and self.clock.now < self.fault_until:
            raise self.fault
        payload = payload_of(self.ref, chasing(100 + int(seconds)), at=self.clock.now)
        return Reading(target.ref, ReadMode.DIRECT, payload.captured_at, documents={}), payload


def run(reader: FaultyReader, *, seconds: float) -> list[float]:
    """Runs scheduler and worker every 2.5 s, the ladder every 5 s; returns when the match was updated."""
    engine, clock, updated = Engine(worker_id="w-1", reader=reader, policies=POLICIES), reader.clock, [NOW]
    for tick in range(int(seconds / TICK)):
        clock.now = now = later(tick * TICK)
        beat = {"host": "here", "pid": 1, "started_at": NOW, "heartbeat_at": now}
        Worker.objects.update_or_create(worker_id="w-1", defaults=beat)
        for order in worker_commands.take("w-1", now=now):
            worker_commands.finish(order, outcome="done", now=now)
        engine.outcomes.flush(now=now)
        breakers.evaluate_sources(policies=POLICIES, now=now)
        end_pauses(now)
        due.open_due(now)
        hinted = [task_id for task_id, _, _ in hint._unhinted(now, 10)]
        ScrapeTask.objects.filter(pk__in=hinted).update(hinted_at=now)
        if hinted:
            scrape(hinted, engine)
        if tick % 2 == 0:
            ladder.advance(now, staleness_threshold=300)
        read_at = Match.objects.get().last_scraper_update
        if read_at and read_at != updated[-1]:
            updated.append(read_at)
    return [(at - NOW) / timedelta(seconds=1) for at in updated]


def longest_gap(times: list[float]) -> float:
    return max(after - before for before, after in itertools.pairwise(times))


@pytest.mark.requirement("FS-9")
def test_a_challenge_of_150_s_is_over_within_a_minute_of_its_end(clock: Clock) -> None:
    """It once left a match silent for 347 s: its fourth back-off was 191 s."""
    ref = make_ref(make_match(status="live", lifecycle="ACTIVE"), captured_at=None, next_poll_at=NOW)
    end = FAULT_AT + 150
    reader = FaultyReader(ref, clock, Challenged("the page is a bot challenge"), later(end))
    updated = run(reader, seconds=end + 1.5 * LONGEST_WAIT)
    assert longest_gap(updated) <= 150 + TICK + LONGEST_WAIT
    assert longest_gap(reader.reads_at) <= LONGEST_WAIT, "never a longer wait"
    assert len([at for at in reader.reads_at if FAULT_AT <= at < end]) <= 8, "and no storm"
    assert updated[-1] > end + LONGEST_WAIT, "it is polled as before"


@pytest.mark.parametrize("fault", [Transient("connection refused"), Blocked("403", http_status=403)])
def test_a_short_fault_is_over_within_a_minute_of_its_end(clock: Clock, fault: Exception) -> None:
    """Short: the fifth failed attempt in a row pauses the match for five minutes (US2.2)."""
    ref = make_ref(make_match(status="live", lifecycle="ACTIVE"), captured_at=None, next_poll_at=NOW)
    reader = FaultyReader(ref, clock, fault, later(FAULT_AT + 12))
    updated = run(reader, seconds=FAULT_AT + 12 + 1.2 * LONGEST_WAIT)
    assert longest_gap(updated) <= 12 + TICK + LONGEST_WAIT
    assert longest_gap(reader.reads_at) <= LONGEST_WAIT
