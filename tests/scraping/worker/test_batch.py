"""Batches of polls: unchanged readings are written together, with the same result as single ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from scraping import journal
from scraping.errors import Transient
from scraping.matches import lifecycle, validate
from scraping.models import (
    Breaker,
    Match,
    MatchEvent,
    MatchLifecycle,
    MatchRef,
    Scraper,
    ScrapeTask,
    Snapshot,
    Source,
    TaskState,
)
from scraping.payloads import Innings, Integrity, Payload, Resource
from scraping.reading.reader import BatchResult, Reader, Target
from scraping.readings import Reading, ReadMode
from scraping.recovery import breakers
from scraping.signals import match_updated
from scraping.worker import unchanged
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from tests.factories import make_ref, make_source, make_unread_match
from tests.scraping.attempts import stopped_clock
from tests.scraping.builders import POLICIES, balls, chasing, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db]

Outcome = Payload | Exception


class BatchStub(Reader):
    """Returns the scripted outcome of each match, read at the present time."""

    def __init__(self, outcomes: Mapping[int, Outcome], before: Callable[[], None] = lambda: None) -> None:
        self.outcomes = dict(outcomes)
        self.before = before

    def batches(self, targets: Sequence[Target], contexts: Sequence[Context]) -> Iterator[list[BatchResult]]:
        found = [self._bring(number, target) for number, target in enumerate(targets)]
        self.before()
        yield found[: len(found) // 2]
        yield found[len(found) // 2 :]

    def _bring(self, number: int, target: Target) -> BatchResult:
        outcome = self.outcomes[target.ref_id]
        if isinstance(outcome, Exception):
            return BatchResult(number, None, None, outcome)
        payload = outcome.model_copy(update={"captured_at": timezone.now()})
        return BatchResult(
            number, Reading(target.ref, ReadMode.DIRECT, payload.captured_at, documents={}), payload, None
        )


def live_refs(number: int, source: Source | None = None) -> list[MatchRef]:
    source = source or make_source()
    return [make_ref(make_unread_match(), source=source, captured_at=None) for _ in range(number)]


def engine_for(refs: Sequence[MatchRef]) -> Engine:
    reader = BatchStub({ref.pk: payload_of(ref, chasing(95), events=balls(1, 2)) for ref in refs})
    return Engine(worker_id="w-1", reader=reader, policies=POLICIES)


def outcomes_of(engine: Engine) -> dict[int, Outcome]:
    assert isinstance(engine.reader, BatchStub)
    return engine.reader.outcomes


def open_all(refs: Sequence[MatchRef]) -> list[int]:
    now = timezone.now()
    new = [journal.NewTask(ref.source_id, ref.pk, Resource.SCORECARD, 0, run_at=now) for ref in refs]
    return [task.task_id for task in journal.open_new(new, now=now)]


def poll_all(refs: Sequence[MatchRef], engine: Engine) -> list[ScrapeTask]:
    ids = open_all(refs)
    scrape(ids, engine)
    assert engine.held_tasks() == []
    return list(ScrapeTask.objects.filter(pk__in=ids).order_by("pk"))


def states(tasks: Sequence[ScrapeTask]) -> list[str]:
    return [task.state for task in tasks]


def columns(rows: Any, *but: str) -> dict[str, Any]:
    return {name: value for name, value in rows.values().get().items() if name not in but}


def test_a_state_has_the_time_of_its_write_not_of_the_begin_of_the_transaction() -> None:
    refs = live_refs(1)
    (task,) = poll_all(refs, engine_for(refs))
    assert task.finished_at is not None
    assert Snapshot.objects.get().created_at > task.finished_at


class TestUnchanged:
    def test_changes_times_and_counters_only(self) -> None:
        refs = live_refs(3)
        engine = engine_for(refs)
        poll_all(refs, engine)
        before = Match.objects.get(pk=refs[0].match_id)
        assert states(poll_all(refs, engine)) == [TaskState.SUCCESS] * 3
        after = Match.objects.get(pk=refs[0].match_id)
        assert (after.sequence, after.checksum, Snapshot.objects.count()) == (1, before.checksum, 3)
        assert before.last_scraper_update is not None
        assert after.last_scraper_update is not None
        assert after.last_scraper_update > before.last_scraper_update
        assert after.total_scrapes == before.total_scrapes + 1
        assert Scraper.objects.get(ref=refs[0]).total_updates == 2
        assert MatchEvent.objects.filter(match=after).count() == 2

    def test_equals_the_write_of_a_changed_poll(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The batched write must leave every column as ingest does."""
        together, alone = live_refs(2)
        engine = engine_for([together, alone])
        poll_all([together, alone], engine)
        (task_id,) = open_all([together])
        scrape([task_id], engine)
        (other_id,) = open_all([alone])
        monkeypatch.setattr(unchanged, "is_unchanged", lambda *_, **__: False)
        scrape([other_id], engine)
        times = ("id", "captured_at", "next_poll_at", "read_mode_since", "created_at", "source_event_id", "url")
        ids = ("match_id", "ref_id", "scraper_id", "start_time", "last_update_time", "name", "last_state_change")
        spent = ("latency_total_ms", "last_latency_ms", "last_scraper_update", "last_changed_at", "provenance")
        for table, of in ((MatchRef, "pk"), (Scraper, "ref"), (Breaker, "ref"), (Match, "refs")):
            ours, theirs = (columns(table.objects.filter(**{of: ref.pk}), *times, *ids, *spent)
                            for ref in (together, alone))  # fmt: skip
            assert ours == theirs, table

    def test_does_not_hide_that_the_list_of_events_cannot_be_read(self) -> None:
        refs = live_refs(1)
        engine = engine_for(refs)
        poll_all(refs, engine)
        before = Match.objects.get().last_scraper_update
        lacking = Integrity(missing_fields=("events",), null_field_rate=0.1)
        outcomes_of(engine)[refs[0].pk] = payload_of(refs[0], chasing(95), integrity=lacking)
        for _ in range(3):
            assert states(poll_all(refs, engine)) == [TaskState.SUCCESS]
        assert Match.objects.get().last_scraper_update == before

    def test_many_cost_no_more_statements_than_few(self) -> None:
        def statements(number: int) -> int:
            refs = live_refs(number, make_source(f"site{number}", adapter="crex"))
            engine = engine_for(refs)
            poll_all(refs, engine)
            ids = open_all(refs)
            with CaptureQueriesContext(
                connection,
            ) as queries:
                scrape(ids, engine)
            return len(queries)

        few, many = statements(4), statements(40)
        assert many == few
        assert many < 24, "two waves, each a transaction of a few statements"

    def test_sends_the_update_signal(self, django_capture_on_commit_callbacks: Any) -> None:
        refs = live_refs(2)
        engine = engine_for(refs)
        poll_all(refs, engine)
        received: list[tuple[int, bool]] = []

        def listen(match_id: int, is_changed: bool, **_: Any) -> None:
            received.append((match_id, is_changed))

        match_updated.connect(listen)
        try:
            with django_capture_on_commit_callbacks(execute=True):
                poll_all(refs, engine)
        finally:
            match_updated.disconnect(listen)
        assert received == [(ref.match_id, False) for ref in refs]

    def test_slows_down_in_breaks(self) -> None:
        refs = live_refs(1)
        engine = engine_for(refs)
        for _ in range(3):
            poll_all(refs, engine)
        ref = MatchRef.objects.get(pk=refs[0].pk)
        assert (ref.unchanged_polls, ref.recent_changes) == (2, "100")


class TestSlowedByErrors:
    def test_uses_ingest_until_the_errors_are_cleared(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with stopped_clock(monkeypatch) as clock:
            refs = live_refs(1)
            engine = engine_for(refs)
            poll_all(refs, engine)
            slowed = {"slowed_seconds": 5.0, "slowed_until": clock.now + timedelta(seconds=300), "error_level": 5.0}
            MatchRef.objects.filter(pk=refs[0].pk).update(**slowed, error_level_at=clock.now)
            found = []
            for _ in range(4):
                clock.forward(100)
                with CaptureQueriesContext(connection) as queries:
                    poll_all(refs, engine)
                is_short = any('"match_external_refs" SET' in q["sql"] and "(VALUES" in q["sql"] for q in queries)
                found.append((is_short, MatchRef.objects.get(pk=refs[0].pk).polling_interval_seconds))
            assert found == [(False, 5.0), (False, 5.0), (False, 2.5), (True, 2.5)]

    def test_reads_a_finished_innings_as_a_whole_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with stopped_clock(monkeypatch) as clock:
            refs = live_refs(1)
            engine = engine_for(refs)
            done = Innings(number=1, team="team_a", runs=187, wickets=10, overs="18.2")
            state = chasing(0).model_copy(update={"innings": (done,), "current_innings": 1})
            outcomes_of(engine)[refs[0].pk] = payload_of(refs[0], state)
            opened = []
            for _ in range(13):
                clock.forward(3)
                poll_all(refs, engine)
                opened.append(ScrapeTask.objects.filter(resource=Resource.FULL).count())
            assert opened == [0] * 10 + [1] * 3


class TestChanged:
    def test_is_ingested_beside_unchanged_ones(self) -> None:
        refs = live_refs(3)
        engine = engine_for(refs)
        poll_all(refs, engine)
        outcomes_of(engine)[refs[1].pk] = payload_of(refs[1], chasing(99), events=balls(1, 2, 3))
        poll_all(refs, engine)
        assert [Match.objects.get(pk=ref.match_id).sequence for ref in refs] == [1, 2, 1]
        assert MatchEvent.objects.filter(match=refs[1].match_id).count() == 3

    def test_a_lower_score_is_not_cached_as_the_last_payload(self) -> None:
        refs = live_refs(1)
        engine = engine_for(refs)
        poll_all(refs, engine)
        down = payload_of(refs[0], chasing(90), events=balls(1, 2))
        outcomes_of(engine)[refs[0].pk] = down
        for _ in range(validate.CONFIRMING_READINGS):
            assert Match.objects.get(pk=refs[0].match_id).payload["score"]["team_b"]["runs"] != 90
            poll_all(refs, engine)
        assert Match.objects.get(pk=refs[0].match_id).payload["score"]["team_b"]["runs"] == 90

    @pytest.mark.parametrize(("seconds", "is_short"), [(0, True), (60, False)], ids=["side by side", "one is behind"])
    def test_two_sources_use_ingest_when_one_falls_behind(self, seconds: int, is_short: bool) -> None:
        """Then the other source has more weight."""
        first, second = live_refs(2)
        at = timezone.now() - timedelta(seconds=seconds)
        MatchRef.objects.filter(pk=second.pk).update(
            match=first.match_id, source=make_source("other", adapter="crex"), captured_at=at
        )
        engine = engine_for([first])
        poll_all([first], engine)
        with CaptureQueriesContext(connection) as queries:
            poll_all([first], engine)
        took_the_long_way = any(query["sql"].count("provenance") for query in queries if "SELECT" in query["sql"][:8])
        assert took_the_long_way is not is_short

    def test_two_sources_of_a_match_in_one_batch_both_count(self) -> None:
        first, second = live_refs(2)
        MatchRef.objects.filter(pk=second.pk).update(match=first.match_id, source=make_source("other", adapter="crex"))
        second = MatchRef.objects.select_related("source", "match").get(pk=second.pk)
        engine = engine_for([first, second])
        for _ in range(3):
            poll_all([first, second], engine)
        match = Match.objects.get(pk=first.match_id)
        assert (match.total_scrapes, MatchRef.objects.get(pk=second.pk).unchanged_polls) == (6, 2)


class TestFailureOfOne:
    def test_a_failed_reading_affects_its_own_task_only(self) -> None:
        refs = live_refs(3)
        engine = engine_for(refs)
        poll_all(refs, engine)
        outcomes_of(engine)[refs[1].pk] = Transient("502")
        tasks = poll_all(refs, engine)
        assert states(tasks) == [TaskState.SUCCESS, TaskState.PENDING, TaskState.SUCCESS]
        assert tasks[1].charged_attempts == 1

    def test_after_a_failure_the_next_reading_resolves_it(self) -> None:
        refs = live_refs(2)
        engine = engine_for(refs)
        poll_all(refs, engine)
        good = outcomes_of(engine)[refs[0].pk]
        outcomes_of(engine)[refs[0].pk] = Transient("502")
        poll_all(refs, engine)
        outcomes_of(engine)[refs[0].pk] = good
        ScrapeTask.objects.filter(state=TaskState.PENDING).update(run_at=timezone.now())
        scrape(list(ScrapeTask.objects.filter(state=TaskState.PENDING).values_list("pk", flat=True)), engine)
        assert Scraper.objects.get(ref=refs[0]).error_count == 0
        assert Breaker.objects.get(ref=refs[0]).failure_count == 0

    def test_a_lost_lease_writes_nothing_and_the_others_do(self) -> None:
        refs = live_refs(3)
        engine = engine_for(refs)
        poll_all(refs, engine)
        ids = open_all(refs)
        assert isinstance(engine.reader, BatchStub)
        engine.reader.before = lambda: ScrapeTask.objects.filter(pk=ids[1]).update(fence=9) and None
        before = MatchRef.objects.get(pk=refs[1].pk).captured_at
        scrape(ids, engine)
        assert states(ScrapeTask.objects.filter(pk__in=ids).order_by("pk")) == [  # type: ignore[arg-type]
            TaskState.SUCCESS,
            TaskState.EXECUTING,
            TaskState.SUCCESS,
        ]
        assert MatchRef.objects.get(pk=refs[1].pk).captured_at == before

    def test_a_match_that_was_paused_meanwhile_stays_paused(self) -> None:
        refs = live_refs(2)
        engine = engine_for(refs)
        poll_all(refs, engine)

        def pause() -> None:
            until = timezone.now() + timedelta(minutes=5)
            lifecycle.pause(match_id=refs[0].match_id, until=until, reason="x", actor="Ann", now=timezone.now())

        assert isinstance(engine.reader, BatchStub)
        engine.reader.before = pause
        assert states(poll_all(refs, engine)) == [TaskState.SUCCESS] * 2
        assert Match.objects.get(pk=refs[0].match_id).lifecycle == MatchLifecycle.PAUSED

    def test_does_not_overwrite_rows_that_changed_meanwhile(self) -> None:
        """Another worker read the same match for a job while this poll was under way."""
        refs = live_refs(2)
        engine = engine_for(refs)
        poll_all(refs, engine)

        def read_elsewhere() -> None:
            newer = payload_of(refs[0], chasing(120)).normalized()
            MatchRef.objects.filter(pk=refs[0].pk).update(
                captured_at=timezone.now() - timedelta(seconds=1), payload=newer
            )

        assert isinstance(engine.reader, BatchStub)
        engine.reader.before = read_elsewhere
        poll_all(refs, engine)
        ref = MatchRef.objects.get(pk=refs[0].pk)
        assert ref.suspect_checksum, "95 after 120 is a lower score, which needs confirmation"
        assert ref.payload["score"]["team_b"]["runs"] == 120

    @pytest.mark.parametrize("runs", [95, 90, 99], ids=["unchanged", "lower", "higher"])
    def test_that_a_newer_one_has_overtaken_is_a_success_and_changes_nothing(self, runs: int) -> None:
        """The whole match was read after this poll, and written before it."""
        refs = live_refs(1)
        engine = engine_for(refs)
        poll_all(refs, engine)
        outcomes_of(engine)[refs[0].pk] = payload_of(refs[0], chasing(runs), events=balls(1, 2))
        newer = timezone.now() + timedelta(seconds=5)
        assert isinstance(engine.reader, BatchStub)
        engine.reader.before = lambda: MatchRef.objects.update(captured_at=newer) and None
        assert states(poll_all(refs, engine)) == [TaskState.SUCCESS]
        ref = MatchRef.objects.get()
        assert (ref.captured_at, ref.payload["score"]["team_b"]["runs"], ref.suspect_checksum) == (newer, 95, "")
        engine.reader.before = lambda: None
        assert states(poll_all(refs, engine)) == [TaskState.SUCCESS]
        assert MatchRef.objects.get().captured_at == newer

    def test_an_open_breaker_postpones_its_own_task_only(self) -> None:
        refs = live_refs(2)
        engine = engine_for(refs)
        poll_all(refs, engine)
        row = Breaker.objects.get(ref=refs[0])
        breakers.force_open(row, minutes=5, reason="maintenance", actor="Ann", now=timezone.now())
        tasks = poll_all(refs, engine)
        assert states(tasks) == [TaskState.PENDING, TaskState.SUCCESS]
        assert tasks[0].attempt == 0


class TestClaimingMany:
    def test_claims_due_and_free_tasks(self) -> None:
        refs = live_refs(3)
        ids = open_all(refs)
        ScrapeTask.objects.filter(pk=ids[0]).update(run_at=timezone.now() + timedelta(hours=1))
        assert journal.claim(ids[1], worker_id="w-2", lease_seconds=15, now=timezone.now()) is not None
        claims = journal.claim_many([*ids, 999_999], worker_id="w-1", lease_seconds=15, now=timezone.now())
        assert [(claim.task_id, claim.fence, claim.attempt) for claim in claims] == [(ids[2], 1, 1)]

    def test_runs_other_resources_of_a_hint(self) -> None:
        refs = live_refs(2)
        engine = engine_for(refs)
        now = timezone.now()
        new = [journal.NewTask(ref.source_id, ref.pk, kind, 0, run_at=now)
               for ref, kind in zip(refs, (Resource.SCORECARD, Resource.FULL), strict=True)]  # fmt: skip
        ids = [task.task_id for task in journal.open_new(new, now=now)]
        scrape(ids, engine)
        assert not ScrapeTask.objects.filter(pk__in=ids, state=TaskState.EXECUTING).exists()
