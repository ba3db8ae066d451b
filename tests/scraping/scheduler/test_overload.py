"""Overload: the choice of the matches that are read, and the limits of the sources."""

from __future__ import annotations

import random
import threading
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise

import dramatiq
import pytest
from django.db import connection
from django.db.models import F
from dramatiq.brokers.stub import StubBroker

from scraping import journal
from scraping.configuration import policies
from scraping.errors import Blocked, ReadTimeout, ResourceLost, SchemaBreak
from scraping.models import (
    OPEN_STATES,
    Importance,
    Match,
    MatchLifecycle,
    MatchRef,
    Priority,
    ScrapeTask,
    Source,
    TaskState,
)
from scraping.payloads import Payload, Resource, Status
from scraping.reading.reader import Target
from scraping.readings import Reading, ReadMode
from scraping.scheduler import due, limits
from scraping.scheduler.due import open_due
from scraping.scheduler.hint import dispatch_due, hint_due_tasks
from scraping.scheduler.other_tasks import open_gap_tasks
from scraping.scheduler.recover import rescue_expired
from scraping.worker.engine import Engine
from scraping.worker.scrape import run
from tests.factories import NOW, cricket_state, make_match, make_ref, make_source
from tests.patience import stretched
from tests.scraping.attempts import Clock, stopped_clock
from tests.scraping.builders import LEASE_SECONDS, POLICIES, ScriptedReader, later, open_task, payload_of
from tests.scraping.due_tasks import open_due_tasks
from victoryline.lib.hint_broker import QUEUE

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "current", lambda: POLICIES)


def a_crowd(source: Source, number: int, *, interval: float, late: float = 0.0, **fields: int | str) -> list[int]:
    """Creates due matches of one kind at a source, each read a little later than the one before."""
    made = Match.objects.bulk_create(
        Match(sport="cricket", lifecycle=MatchLifecycle.ACTIVE, created_at=NOW, **fields) for _ in range(number)
    )
    refs = MatchRef.objects.bulk_create(
        MatchRef(
            source=source,
            match=match,
            source_event_id=f"{match.pk}",
            next_poll_at=later(-late),
            captured_at=later(-late - interval + place / 1000),
            polling_interval_seconds=interval,
            created_at=NOW,
        )
        for place, match in enumerate(made)
    )
    return [ref.pk for ref in refs]


def finish_all(now: datetime) -> None:
    """Finishes every open task; its match is due again after its interval."""
    refs = MatchRef.objects.filter(tasks__state__in=OPEN_STATES)
    for seconds in set(refs.values_list("polling_interval_seconds", flat=True)):
        due_at = now + timedelta(seconds=seconds)
        read = MatchRef.objects.filter(
            pk__in=list(refs.filter(polling_interval_seconds=seconds).values_list("pk", flat=True))
        )
        read.update(captured_at=now, next_poll_at=due_at)
    ScrapeTask.objects.filter(state__in=OPEN_STATES).update(state=TaskState.SUCCESS, finished_at=now)


def opened_refs(now: datetime) -> list[int]:
    ids = [task.task_id for task in open_due(now)]
    return list(ScrapeTask.objects.filter(pk__in=ids).order_by("pk").values_list("ref_id", flat=True))


SECONDS = 100


@pytest.mark.requirement("FR-025")
class TestOverload:
    @pytest.fixture
    def source(self) -> Source:
        return make_source(max_concurrency=10, burst_allowance=10)

    @pytest.mark.parametrize("batch", [500, 40])
    def test_polls_live_matches_first_and_starves_none(
        self, source: Source, batch: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """200 live matches that need 80 reads a second, 50 completed ones, ten places; also in small batches."""
        monkeypatch.setattr(due, "BATCH", batch)
        live = {"status": Status.LIVE.value, "priority": Priority.LIVE.value}
        kinds = {
            "high": a_crowd(source, 10, interval=2.0, importance=Importance.HIGH, **live),
            "normal": a_crowd(source, 160, interval=2.5, importance=Importance.NORMAL, **live),
            "low": a_crowd(source, 30, interval=5.0, importance=Importance.LOW, **live),
            "over": a_crowd(source, 50, interval=300.0, late=1170.0, priority=Priority.COMPLETED.value),
        }
        reads: defaultdict[int, list[datetime]] = defaultdict(list)
        for second in range(SECONDS):
            for ref_id in opened_refs(later(second)):
                reads[ref_id].append(later(second))
            assert ScrapeTask.objects.filter(state__in=OPEN_STATES).count() == 10, "no place is left empty"
            finish_all(later(second))
        assert {ref_id for kind in kinds.values() for ref_id in kind} == set(reads), "none was left out"
        gap = {name: worst_gap(reads, refs) for name, refs in kinds.items() if name != "over"}
        assert gap["high"] <= 3.0, "the most important are read without delay"
        assert gap["high"] < gap["normal"] < 100.0, "the others are read less often"
        before_starved = [at for ref_id in kinds["over"] for at in reads[ref_id] if at < later(30)]
        assert before_starved == [], "completed matches wait for live ones until they are starved"

    @pytest.mark.both
    def test_more_than_a_batch_hides_no_source(self, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
        """The most urgent and the longest waiting matches of each source are considered."""
        monkeypatch.setattr(due, "BATCH", 5)
        a_crowd(source, 30, interval=2.5, priority=Priority.LIVE.value)
        (starved,) = a_crowd(source, 1, interval=300.0, late=5000.0, priority=Priority.COMPLETED.value)
        elsewhere = a_crowd(make_source("espn"), 2, interval=300.0, priority=Priority.COMPLETED.value)
        got = opened_refs(NOW)
        assert (len(got), {starved, *elsewhere} <= set(got)) == (12, True)

    @pytest.mark.both
    def test_polls_the_stalest_of_the_highest_priority_first(self, source: Source) -> None:
        live = a_crowd(source, 30, interval=2.5, priority=Priority.LIVE.value)
        a_crowd(source, 5, interval=2.5, priority=Priority.IMMINENT.value)
        important = a_crowd(source, 3, interval=2.0, priority=Priority.LIVE.value, importance=Importance.HIGH)
        assert opened_refs(NOW) == [*important, *live[:7]]

    def test_gives_one_place_in_four_to_the_longest_waiting(self, source: Source) -> None:
        starved = a_crowd(source, 20, interval=300.0, late=5000.0, priority=Priority.COMPLETED.value)
        a_crowd(source, 20, interval=2.5, priority=Priority.LIVE.value)
        Source.objects.update(max_concurrency=1)
        got = []
        for tick in range(16):
            got += opened_refs(later(tick))
            finish_all(later(tick))
        assert sum(ref_id in starved for ref_id in got) == 4

    def test_writes_the_priority_of_the_match_to_the_task(self, source: Source) -> None:
        a_crowd(source, 1, interval=2.5, priority=Priority.LIVE.value, importance=Importance.LOW)
        a_crowd(source, 1, interval=300.0, priority=Priority.COMPLETED.value, importance=Importance.HIGH)
        open_due_tasks(NOW)
        assert list(ScrapeTask.objects.order_by("pk").values_list("priority", flat=True)) == [0, 2]

    def test_costs_one_query_when_nothing_is_due(self, source: Source, django_assert_num_queries: object) -> None:
        a_crowd(source, 5, interval=2.5, late=-60.0, priority=Priority.LIVE.value)
        with django_assert_num_queries(1):  # type: ignore[operator]
            assert open_due_tasks(NOW) == 0

    def test_costs_the_same_however_many_are_due(self, source: Source, django_assert_max_num_queries: object) -> None:
        a_crowd(source, 300, interval=2.5, priority=Priority.LIVE.value)
        with django_assert_max_num_queries(11):  # type: ignore[operator]
            assert open_due_tasks(NOW) == 10

    def test_gaps_after_an_outage_leave_places_to_polls(self, source: Source) -> None:
        a_crowd(source, 40, interval=2.5, priority=Priority.LIVE.value)
        MatchRef.objects.update(events_seen=9)
        assert [open_gap_tasks(NOW), open_gap_tasks(later(1)), open_due_tasks(later(1))] == [3, 0, 7]

    def test_gives_a_place_to_background_work(self, source: Source, broker: StubBroker) -> None:
        """Line-ups wait for live polls, but get a place."""
        a_crowd(source, 60, interval=2.5, priority=Priority.LIVE.value)
        lineups = open_task(make_ref(source=source), resource=Resource.LINEUPS)
        for tick in range(8):
            dispatch_due(later(tick))
            hint_due_tasks(later(tick))
            assert under_way(later(tick))[source.pk] <= 10
            if ScrapeTask.objects.get(pk=lineups).hinted_at:
                break
            polls = ScrapeTask.objects.filter(resource=Resource.SCORECARD)
            polls.update(state=TaskState.SUCCESS, finished_at=later(tick))
            MatchRef.objects.update(captured_at=later(tick), next_poll_at=later(tick + 0.5))
        assert ScrapeTask.objects.get(pk=lineups).hinted_at is not None


def worst_gap(reads: dict[int, list[datetime]], refs: list[int]) -> float:
    gaps = [
        (second - first).total_seconds()
        for ref_id in refs
        for first, second in zip([NOW, *reads[ref_id]], [*reads[ref_id], later(SECONDS)], strict=True)
    ]
    return max(gaps)


@pytest.mark.both
@pytest.mark.requirement("SO-2")
class TestHints:
    def hinted(self, broker: StubBroker) -> list[int]:
        queue = broker.queues[QUEUE]
        messages = [dramatiq.Message.decode(queue.get_nowait()) for _ in range(queue.qsize())]
        return [task_id for message in messages for task_id in message.args]

    def test_orders_by_priority_importance_and_age(self, broker: StubBroker) -> None:
        rows = [  # priority of the task, importance of its match, age of its data
            (2, Importance.HIGH, 900),
            (0, Importance.LOW, 500),
            (0, Importance.NORMAL, 5),
            (0, Importance.NORMAL, 50),
            (0, Importance.HIGH, 1),
            (1, Importance.NORMAL, 70),
        ]
        ids = []
        for priority, importance, age in rows:
            ref = make_ref(make_match(importance=importance, last_scraper_update=later(-age)))
            new = journal.NewTask(ref.source_id, ref.pk, Resource.SCORECARD, priority, run_at=NOW)
            ids += [task.task_id for task in journal.open_new([new], now=NOW)]
        hint_due_tasks(NOW)
        assert self.hinted(broker) == [ids[place] for place in (4, 3, 2, 1, 5, 0)]

    def test_keeps_to_the_concurrency_of_a_source(self, broker: StubBroker) -> None:
        """An operator retries forty dead tasks at once: they are hinted as places become free."""
        source = make_source(max_concurrency=3)
        for _ in range(8):
            open_task(make_ref(source=source))
        assert [hint_due_tasks(NOW), hint_due_tasks(later(0.5))] == [3, 0]
        ScrapeTask.objects.filter(hinted_at=NOW).update(state=TaskState.SUCCESS, finished_at=later(1))
        assert hint_due_tasks(later(1)) == 3

    def test_a_full_source_does_not_hide_another(self, broker: StubBroker, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("scraping.scheduler.hint.BATCH", 4)
        crowded = make_source(max_concurrency=1)
        for _ in range(6):
            open_task(make_ref(source=crowded))
        other = journal.NewTask(make_source("sofascore").pk, None, Resource.DISCOVERY, 1, run_at=NOW)
        hint_due_tasks(NOW)
        (opened,) = journal.open_new([other], now=NOW)
        hint_due_tasks(later(0.5))
        assert opened.task_id in self.hinted(broker)


class RandomReader(ScriptedReader):
    """Fails at random and records the time of each read."""

    def __init__(self, chance: random.Random, clock: Clock) -> None:
        super().__init__(ReadTimeout("slow"))
        self._chance, self._clock = chance, clock
        self.looks: defaultdict[int, list[datetime]] = defaultdict(list)

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        self.looks[target.ref_id].append(self._clock.now)
        faults = (ReadTimeout("slow"), Blocked("no", http_status=429), SchemaBreak("what?"), ResourceLost("browser"))
        if self._chance.random() < 0.3:
            raise self._chance.choice(faults)
        ref = MatchRef.objects.select_related("source").get(pk=target.ref_id)
        state = cricket_state(clock=f"{self._chance.randrange(3)}")
        payload = payload_of(ref, state, at=self._clock.now)
        return Reading(target.ref, ReadMode.DIRECT, payload.captured_at, documents={}), payload


def under_way(now: datetime) -> Counter[int]:
    return limits._under_way(now - timedelta(seconds=POLICIES.hint_again_seconds))[0]


@pytest.mark.requirement("FR-025")
@pytest.mark.parametrize("seed", [1, 2])
def test_keeps_every_limit_of_a_source_under_random_load(
    seed: int, broker: StubBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two schedulers, dying workers, failing sources, and operators who resume and retry."""
    chance = random.Random(seed)
    source = make_source(max_concurrency=4, burst_allowance=2, min_interval_seconds=1.0)
    for place in range(9):
        make_ref(make_match(importance=place % 3, priority=Priority.LIVE), source=source, next_poll_at=NOW)
    with stopped_clock(monkeypatch) as clock:
        reader = RandomReader(chance, clock)
        engine = Engine(worker_id="w-1", reader=reader, policies=POLICIES)
        held: list[journal.Claim] = []
        for _ in range(50):
            clock.forward(0.4)
            for _scheduler in range(2):
                before = ScrapeTask.objects.count()
                dispatch_due(clock.now)
                assert ScrapeTask.objects.count() - before <= 2, "no more at once than its burst"
                hint_due_tasks(clock.now)
                assert under_way(clock.now)[source.pk] <= 4, "no more under way than its concurrency"
                assert ScrapeTask.objects.filter(state__in=OPEN_STATES).count() <= 4
                due._given[source.pk] = chance.randrange(8)  # the other scheduler counts for itself
            for task_id in TestHints().hinted(broker):
                claim = journal.claim(task_id, worker_id="w-1", lease_seconds=LEASE_SECONDS, now=clock.now)
                held += [claim] if claim else []
            chance.shuffle(held)
            done, held = held[:2], held[2:]
            for claim in done:
                if chance.random() > 0.05:  # else the worker has died
                    run([claim], engine)
            rescue_expired(clock.now)
            if chance.random() < 0.3:  # a person resumes a match, or its scraper is restarted
                MatchRef.objects.exclude(tasks__state=TaskState.DEAD).update(next_poll_at=clock.now)
    assert sum(map(len, reader.looks.values())) > 15
    for looks in reader.looks.values():
        gaps = [(second - first).total_seconds() for first, second in pairwise(looks)]
        assert min(gaps, default=1.0) >= 1.0, "a match was read twice within its shortest interval"


@pytest.mark.requirement("SO-7")
def test_spaces_the_tasks_of_a_source_whatever_they_read(broker: StubBroker) -> None:
    source = make_source(max_concurrency=100, burst_allowance=4, min_interval_seconds=0.5)
    refs = [make_ref(make_match(), source=source, next_poll_at=NOW, captured_at=later(-100)) for _ in range(20)]
    assert dispatch_due(NOW) == 4
    new = [journal.NewTask(source.pk, ref.pk, Resource.COMMENTARY, 0, run_at=NOW) for ref in refs]
    journal.open_tasks(new, now=NOW)
    assert [hint_due_tasks(NOW), dispatch_due(NOW)] == [0, 0]
    assert [hint_due_tasks(NOW + timedelta(seconds=0.5)), dispatch_due(NOW + timedelta(seconds=0.5))] == [1, 0]
    began = 0
    for tick in range(6, 56):  # ten more seconds, five ticks each
        began += dispatch_due(NOW + timedelta(seconds=tick * 0.2)) + hint_due_tasks(NOW + timedelta(seconds=tick * 0.2))
        ScrapeTask.objects.filter(resource=Resource.SCORECARD).update(hinted_at=NOW + timedelta(days=1))
    assert 20 <= began <= 22


def test_a_source_without_an_interval_has_its_burst_only(broker: StubBroker) -> None:
    source = make_source(max_concurrency=100, burst_allowance=4, min_interval_seconds=0)
    for _ in range(20):
        make_ref(make_match(), source=source, next_poll_at=NOW, captured_at=later(-100))
    assert [dispatch_due(NOW) for _ in range(3)] == [4, 4, 4]


@pytest.mark.both
@pytest.mark.django_db(transaction=True)
def test_two_schedulers_at_once_keep_to_the_limit() -> None:
    """Their clocks differ, so other refs are due, and both count the open tasks at the same time."""
    source = make_source(max_concurrency=6, burst_allowance=6)
    a_crowd(source, 40, interval=2.5, priority=Priority.LIVE.value)
    MatchRef.objects.update(next_poll_at=F("captured_at"))
    gate = threading.Barrier(6)
    errors: list[Exception] = []

    def schedule(shift: float) -> None:
        try:
            gate.wait(stretched(10))
            open_due(later(-shift))
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=schedule, args=(place / 1000,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(stretched(30))
    assert errors == []
    assert 0 < ScrapeTask.objects.filter(state__in=OPEN_STATES).count() <= 6
