"""Live matches that have gone silent: each rung does something, sends a signal, and is undone when data returns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from scraping.matches import ingest, lifecycle, watches
from scraping.models import (
    Breaker,
    Importance,
    Match,
    MatchRef,
    OrderKind,
    Scraper,
    ScrapeTask,
    Source,
    Worker,
    WorkerOrder,
)
from scraping.policies.ladder import Rung
from scraping.recovery import ladder, silent_matches, worker_commands
from scraping.recovery.ladder_steps import StepContext
from scraping.recovery.silent_matches import silence_of
from scraping.scheduler.recover import escalate_silent_matches
from scraping.signals import silence_climbed, silence_over
from tests.factories import NOW, make_match, make_ref, make_scraper, make_source
from tests.scraping.builders import POLICIES, chasing, later, open_task, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("BX-18")]
THRESHOLD = 300.0


def heartbeat(name: str, at: datetime) -> None:
    fields = {"host": "here", "pid": 1, "started_at": NOW, "heartbeat_at": at}
    Worker.objects.update_or_create(worker_id=name, defaults=fields)


def look(seconds: float, *workers: str) -> int:
    for name in workers or ("w1",):
        heartbeat(name, later(seconds))
    return ladder.advance(later(seconds), staleness_threshold=THRESHOLD)


def rung_of(match: Match) -> Rung:
    match.refresh_from_db()
    return Rung(match.silence_rung)


@pytest.fixture
def sent() -> Iterator[list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []

    def climbed(sender: object, **announced: Any) -> None:
        found.append({"up": announced["rung_name"], "detail": announced["detail"]})

    def over(sender: object, **announced: Any) -> None:
        found.append({"over": announced["rung"], "seconds": announced["seconds"], "source": announced["source_key"]})

    silence_climbed.connect(climbed)
    silence_over.connect(over)
    yield found
    silence_climbed.disconnect(climbed)
    silence_over.disconnect(over)


@pytest.fixture
def ref() -> MatchRef:
    """A live match, read at NOW, every 2.5 seconds."""
    match = make_match(lifecycle="ACTIVE", last_scraper_update=NOW, scraper_status="active")
    ref = make_ref(match=match, captured_at=NOW, read_mode="direct", read_mode_since=NOW, next_poll_at=later(2.5))
    make_scraper(ref, worker_id="w1", last_update_time=NOW)
    open_task(ref)
    return ref


def is_heard(ref: MatchRef, at: datetime, runs: int = 99) -> None:
    attempt = ingest.Attempt("w1", at, had_failures=False, now=at)
    ingest.apply(payload_of(ref, chasing(runs), at=at), ref_id=ref.pk, pace=POLICIES.pace, attempt=attempt)


class TestTheWayUp:
    def test_all_rungs_in_their_order_with_a_signal_each(self, ref: MatchRef, sent: list[dict[str, Any]]) -> None:
        for seconds in range(0, 320, 5):
            look(seconds)
        assert [one["up"] for one in sent] == ["hint", "session", "browser", "other_source", "frozen"]
        match = Match.objects.get()
        assert (match.silent_since, match.frozen_at) == (NOW, later(305))
        assert all(one["detail"]["did"] for one in sent)

    def test_a_match_that_is_read_is_left_alone(self, ref: MatchRef) -> None:
        assert look(10) == 0
        is_heard(ref, later(14))
        assert look(25) == 0

    def test_a_break_is_not_a_silence(self, ref: MatchRef) -> None:
        MatchRef.objects.update(polling_interval_seconds=30)
        assert look(44) == 0
        assert look(46) == 1

    def test_the_hint_makes_a_waiting_task_known_again(self, ref: MatchRef) -> None:
        ScrapeTask.objects.update(hinted_at=later(19), run_at=NOW)
        look(20)
        assert ScrapeTask.objects.get().hinted_at is None

    def test_the_hint_makes_a_match_due_whose_next_poll_is_far_off(self, ref: MatchRef) -> None:
        """A clock that was set back an hour leaves such rows behind."""
        ScrapeTask.objects.all().delete()
        MatchRef.objects.update(next_poll_at=later(3600))
        look(20)
        assert MatchRef.objects.get().next_poll_at == later(20)

    def test_a_fresh_session_at_its_source_for_every_worker_and_a_fresh_start(self, ref: MatchRef) -> None:
        look(20)
        look(50, "w1", "w2")
        given = WorkerOrder.objects.filter(kind=OrderKind.FRESH_SESSION)
        assert set(given.values_list("worker_id", "source_key")) == {("w1", "crex"), ("w2", "crex")}
        assert MatchRef.objects.get().read_mode == ""

    @pytest.mark.parametrize(("seconds", "kind"), [(50, OrderKind.FRESH_SESSION), (95, OrderKind.RECYCLE_BROWSER)])
    def test_a_commanded_step_ends_with_a_read_in_place_of_the_back_off(
        self, ref: MatchRef, seconds: float, kind: OrderKind
    ) -> None:
        """The retry of a refused task may lie minutes ahead; the fresh session must be tried at once."""
        for earlier in (20, 50, 95):
            if earlier <= seconds:
                look(earlier)
        ScrapeTask.objects.update(run_at=later(240), hinted_at=later(seconds), error_class="blocked")
        order = WorkerOrder.objects.get(kind=kind)
        assert worker_commands.finish(order, outcome="done", now=later(seconds + 3))
        task = ScrapeTask.objects.get()
        assert (task.run_at, task.hinted_at) == (later(seconds + 3), None)

    @pytest.mark.parametrize("seconds", [20, 155, 310])
    def test_every_other_step_reads_at_once(self, ref: MatchRef, seconds: float) -> None:
        for earlier in (20, 50, 95, 155, 310):
            if earlier == seconds:
                ScrapeTask.objects.update(run_at=later(999), hinted_at=later(earlier))
            if earlier <= seconds:
                look(earlier)
        task = ScrapeTask.objects.get()
        assert (task.run_at, task.hinted_at) == (later(seconds), None)

    def test_a_retry_after_of_the_source_is_waited_for(self, ref: MatchRef) -> None:
        error = {"retry_after_until": later(600).timestamp()}
        ScrapeTask.objects.update(run_at=later(600), error=error)
        look(20)
        assert ScrapeTask.objects.get().run_at == later(600)

    def test_a_match_behind_an_open_breaker_is_not_read(self, ref: MatchRef) -> None:
        Breaker.objects.create(name="b", ref=ref, state="OPEN", open_until=later(80), last_state_change=NOW)
        ScrapeTask.objects.update(run_at=later(80))
        look(20)
        assert ScrapeTask.objects.get().run_at == later(80)

    def test_the_browser_of_the_worker_that_reads_it(self, ref: MatchRef) -> None:
        for seconds in (20, 50, 95):
            look(seconds, "w1", "w2")
        recycled = WorkerOrder.objects.filter(kind=OrderKind.RECYCLE_BROWSER)
        assert list(recycled.values_list("worker_id", flat=True)) == ["w1"]

    def test_another_source_that_was_not_watched_is_called_in(self, ref: MatchRef) -> None:
        other = make_ref(match=ref.match, source=make_source("board"), source_event_id="b1", is_watched=False)
        for seconds in (20, 50, 95, 155):
            look(seconds)
        other.refresh_from_db()
        assert (other.is_watched, other.next_poll_at, other.called_in_at) == (True, later(155), later(155))

    def test_where_no_other_source_is_known_their_lists_are_looked_through(self, ref: MatchRef) -> None:
        make_source("board", sport=ref.match.sport, last_discovery_at=NOW)
        for seconds in (20, 50, 95, 155):
            look(seconds)
        assert Source.objects.get(key="board").last_discovery_at is None

    def test_an_important_match_twice_as_soon(self, ref: MatchRef) -> None:
        Match.objects.update(importance=Importance.HIGH)
        assert look(11) == 1

    def test_two_schedulers_take_a_rung_once(self, ref: MatchRef, sent: list[dict[str, Any]]) -> None:
        stale = Match.objects.prefetch_related("refs__source").get()
        look(20)
        found = silence_of(stale, has_workers=True, now=later(20))
        means = StepContext(("w1",), THRESHOLD, later(20))
        assert not ladder._climb(stale, Rung.HINT, found, means)
        assert len(sent) == 1

    def test_without_workers_only_the_last_rungs_are_left(self, ref: MatchRef, sent: list[dict[str, Any]]) -> None:
        for seconds in range(0, 320, 5):
            ladder.advance(later(seconds), staleness_threshold=THRESHOLD)
        assert [one["up"] for one in sent] == ["other_source", "frozen"]

    def test_who_only_waits_for_his_turn_gets_no_session_and_no_browser(
        self, ref: MatchRef, sent: list[dict[str, Any]]
    ) -> None:
        """Its source is asked for as much as it bears, and others were more urgent: fairness is what helps."""
        ScrapeTask.objects.all().delete()
        for seconds in range(5, 320, 5):
            look(seconds)
        assert [one["up"] for one in sent] == ["other_source", "frozen"]

    def test_whose_turn_has_only_just_come_is_given_the_time_to_be_read(self, ref: MatchRef) -> None:
        ScrapeTask.objects.update(created_at=later(95), attempt=0)
        assert look(100) == 0
        assert look(103) == 1, "its poll has had its time"

    def test_an_attempt_that_failed_was_its_turn(self, ref: MatchRef) -> None:
        ScrapeTask.objects.update(created_at=later(90), attempt=2)
        assert look(100) == 1


class TestNeverAStorm:
    def test_forty_silent_matches_are_one_session_and_one_browser(self) -> None:
        for number in range(40):
            match = make_match(lifecycle="ACTIVE", last_scraper_update=NOW)
            ref = make_ref(match=match, source_event_id=f"m{number}", captured_at=NOW)
            make_scraper(ref, worker_id="w1")
            open_task(ref)
        for seconds in range(20, 140, 5):
            look(seconds)
            for order in worker_commands.take("w1", now=later(seconds)):
                worker_commands.finish(order, outcome="did", now=later(seconds))
        assert WorkerOrder.objects.filter(kind=OrderKind.FRESH_SESSION).count() == 1
        assert WorkerOrder.objects.filter(kind=OrderKind.RECYCLE_BROWSER).count() == 1
        assert set(Match.objects.values_list("silence_rung", flat=True)) == {Rung.BROWSER}

    def quiet(self, name: str, **fields: Any) -> Match:
        match = make_match(lifecycle="ACTIVE", last_scraper_update=NOW, **fields)
        open_task(make_ref(match=match, source_event_id=name, captured_at=NOW))
        return match

    def test_a_crowd_climbs_a_few_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ladder, "MAX_MOVES", 2)
        crowd = [self.quiet(f"m{number}") for number in range(3)]
        assert [look(20), look(21), look(22)] == [2, 1, 0]
        assert {rung_of(match) for match in crowd} == {Rung.HINT}

    def test_the_frozen_stand_in_nobodys_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing is done for them until they are read: otherwise many of them would hide later ones."""
        monkeypatch.setattr(silent_matches, "MAX_MATCHES", 1)
        frozen = {"silence_rung": Rung.FROZEN, "silence_rung_at": NOW, "silent_since": NOW, "frozen_at": NOW}
        first, second = (self.quiet(name, importance=Importance.HIGH, **frozen) for name in ("first", "second"))
        other = self.quiet("other")
        look(20)
        assert [rung_of(match) for match in (first, second, other)] == [Rung.FROZEN, Rung.FROZEN, Rung.HINT]
        Match.objects.filter(pk=first.pk).update(last_scraper_update=later(21))
        Match.objects.filter(pk=second.pk).update(lifecycle="PAUSED", pause_until=later(99))
        look(25)
        look(30)
        assert {rung_of(match) for match in (first, second)} == {Rung.GROUND}

    def test_the_good_day_costs_three_queries(self, django_assert_num_queries: Any) -> None:
        for number in range(30):
            match = make_match(lifecycle="ACTIVE", last_scraper_update=NOW)
            make_ref(match=match, source_event_id=f"m{number}", captured_at=NOW)
        with django_assert_num_queries(3):
            ladder.advance(later(3), staleness_threshold=THRESHOLD)


class TestTheWayBack:
    def test_data_again_undoes_all_and_sends_a_signal(self, ref: MatchRef, sent: list[dict[str, Any]]) -> None:
        for seconds in range(0, 320, 5):
            look(seconds)
        is_heard(ref, later(321))
        assert look(325) == 1
        match = Match.objects.get()
        assert (match.silence_rung, match.silent_since, match.frozen_at) == (0, None, None)
        assert sent[-1] == {"over": Rung.FROZEN, "seconds": 321.0, "source": "crex"}

    def test_who_was_called_in_goes_when_the_other_speaks_again(self, ref: MatchRef) -> None:
        other = make_ref(match=ref.match, source=make_source("board"), source_event_id="b1", is_watched=False)
        for seconds in (20, 50, 95, 155):
            look(seconds)
        is_heard(other, later(157))
        look(160)
        assert rung_of(ref.match) is Rung.GROUND
        other.refresh_from_db()
        assert other.is_watched, "no other source has the match yet"
        is_heard(ref, later(200), runs=101)
        look(205)
        other.refresh_from_db()
        assert (other.is_watched, other.called_in_at, other.next_poll_at) == (False, None, None)
        assert [scraper.ref for scraper in Scraper.objects.filter(stopped_at=None)] == [ref], "its polling ended"

    @pytest.mark.parametrize("is_asked_for", [True, False], ids=["a person wants it", "not asked for"])
    def test_who_was_called_in_stays_when_a_person_asks_for_it(self, ref: MatchRef, is_asked_for: bool) -> None:
        board = make_source("board")
        make_ref(match=ref.match, source=board, source_event_id="b1", called_in_at=later(155), captured_at=NOW)
        if is_asked_for:
            watches.begin(match_id=ref.match_id, actor="ada", now=later(156))
        is_heard(ref, later(157))
        look(160)
        assert MatchRef.objects.get(source=board).is_watched is is_asked_for

    def test_a_watch_that_ends_leaves_nothing_behind(self, ref: MatchRef) -> None:
        MatchRef.objects.update(called_in_at=NOW)
        watches.end(match_id=ref.match_id, reason="enough", actor="ada", now=NOW)
        assert MatchRef.objects.get().called_in_at is None
        MatchRef.objects.update(called_in_at=NOW)
        Match.objects.update(lifecycle="COMPLETED", completed_at=NOW)
        lifecycle.archive(before=later(1))
        assert MatchRef.objects.get().called_in_at is None

    def test_a_source_that_waits_for_memory_goes_on_waiting(self, ref: MatchRef) -> None:
        board = make_source("board")
        make_ref(match=ref.match, source=board, source_event_id="b1", is_watched=False, watch_at=later(9000))
        for seconds in (20, 50, 95, 155):
            look(seconds)
        is_heard(ref, later(160))
        look(165)
        other = MatchRef.objects.get(source=board)
        assert (other.is_watched, other.watch_at) == (False, later(9000))

    @pytest.mark.parametrize("columns", [{"status": "completed", "lifecycle": "COMPLETED"}, {"lifecycle": "PAUSED"}])
    def test_nobody_waits_for_it_any_more(
        self, ref: MatchRef, sent: list[dict[str, Any]], columns: dict[str, str]
    ) -> None:
        look(20)
        Match.objects.update(pause_until=later(500), **columns)
        assert look(60) == 1
        assert rung_of(ref.match) is Rung.GROUND
        assert sent[-1]["source"] == ""

    def test_after_a_pause_it_begins_below(self, ref: MatchRef) -> None:
        look(20)
        Match.objects.update(lifecycle="PAUSED", pause_until=later(400))
        look(25)
        Match.objects.update(lifecycle="ACTIVE", pause_until=None)
        look(405)
        assert rung_of(ref.match) is Rung.HINT
        look(410)
        assert rung_of(ref.match) is Rung.HINT, "each rung has its time, however old the silence"


class TestOrders:
    def test_one_open_order_of_a_kind(self) -> None:
        def give() -> WorkerOrder | None:
            return worker_commands.issue(
                OrderKind.RECYCLE_BROWSER, worker_id="w1", reason="asked", actor="ada", now=NOW
            )

        first = give()
        assert first is not None
        assert give() is None
        assert [order.pk for order in worker_commands.take("w1", now=NOW)] == [first.pk]
        assert worker_commands.take("w1", now=NOW) == [], "each is given out once"
        worker_commands.finish(first, outcome="a fresh one", now=NOW)
        assert give() is not None

    def test_an_order_whose_worker_is_gone_is_closed(self) -> None:
        worker_commands.issue(OrderKind.RECYCLE_BROWSER, worker_id="w1", reason="asked", actor="ada", now=NOW)
        assert escalate_silent_matches(later(59)) == 0
        assert escalate_silent_matches(later(61)) == 1
        assert WorkerOrder.objects.get().outcome == "not taken in time"
