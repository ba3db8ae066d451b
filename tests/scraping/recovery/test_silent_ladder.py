"""Silent live matches: the step of each rung, its signal, and the return of data."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from monitoring.models import AuditEntry
from scraping.matches import ingest, lifecycle, watches
from scraping.models import (
    Breaker,
    CommandKind,
    Importance,
    Match,
    MatchRef,
    Scraper,
    ScrapeTask,
    Source,
    Worker,
    WorkerCommand,
)
from scraping.policies.ladder import RUNGS, Rung
from scraping.recovery import ladder, silent_matches, worker_commands
from scraping.recovery.ladder import StepContext
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


def advance(seconds: float, *workers: str) -> int:
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


def read_match(ref: MatchRef, at: datetime, runs: int = 99) -> None:
    attempt = ingest.Attempt("w1", at, had_failures=False, now=at)
    ingest.apply(payload_of(ref, chasing(runs), at=at), ref_id=ref.pk, pace=POLICIES.pace, attempt=attempt)


class TestEscalation:
    def test_all_rungs_in_their_order_with_a_signal_each(self, ref: MatchRef, sent: list[dict[str, Any]]) -> None:
        for seconds in range(0, 320, 5):
            advance(seconds)
        assert [one["up"] for one in sent] == ["hint", "session", "browser", "other_source", "frozen"]
        match = Match.objects.get()
        assert (match.silent_since, match.frozen_at) == (NOW, later(305))
        assert all(one["detail"]["did"] for one in sent)

    @pytest.mark.requirement("BX-11")
    def test_every_rung_is_in_the_audit_with_its_commands(self, ref: MatchRef) -> None:
        for seconds in range(0, 320, 5):
            advance(seconds)
        steps = AuditEntry.objects.filter(match=ref.match).order_by("pk")
        assert [one.action_type for one in steps] == [rung.action for rung in RUNGS]
        commands = WorkerCommand.objects.order_by("pk").values_list("pk", flat=True)
        assert [one.metadata["commands"] for one in steps[1:3]] == [str(pk) for pk in commands]

    def test_a_match_that_is_read_is_left_alone(self, ref: MatchRef) -> None:
        assert advance(10) == 0
        read_match(ref, later(14))
        assert advance(25) == 0

    def test_a_break_is_not_a_silence(self, ref: MatchRef) -> None:
        MatchRef.objects.update(polling_interval_seconds=30)
        assert advance(44) == 0
        assert advance(46) == 1

    def test_the_hint_rung_hints_a_waiting_task_again(self, ref: MatchRef) -> None:
        ScrapeTask.objects.update(hinted_at=later(19), run_at=NOW)
        advance(20)
        assert ScrapeTask.objects.get().hinted_at is None

    def test_the_hint_makes_a_match_due_whose_next_poll_is_far_off(self, ref: MatchRef) -> None:
        """Such rows exist after the clock was set back."""
        ScrapeTask.objects.all().delete()
        MatchRef.objects.update(next_poll_at=later(3600))
        advance(20)
        assert MatchRef.objects.get().next_poll_at == later(20)

    def test_a_fresh_session_at_its_source_for_every_worker_and_a_fresh_start(self, ref: MatchRef) -> None:
        advance(20)
        advance(50, "w1", "w2")
        given = WorkerCommand.objects.filter(kind=CommandKind.FRESH_SESSION)
        assert set(given.values_list("worker_id", "source_key")) == {("w1", "crex"), ("w2", "crex")}
        assert MatchRef.objects.get().read_mode == ""

    @pytest.mark.parametrize("has_failed", [False, True])
    @pytest.mark.parametrize(("seconds", "kind"), [(50, CommandKind.FRESH_SESSION), (95, CommandKind.RECYCLE_BROWSER)])
    def test_a_commanded_step_ends_with_a_read_in_place_of_the_back_off(
        self, ref: MatchRef, seconds: float, kind: CommandKind, has_failed: bool
    ) -> None:
        """The retry of a failed task may be minutes away; the fresh session must be used at once."""
        for earlier in (20, 50, 95):
            if earlier <= seconds:
                advance(earlier)
        ScrapeTask.objects.update(run_at=later(240), hinted_at=later(seconds), error_class="blocked")
        command = WorkerCommand.objects.get(kind=kind)
        assert worker_commands.finish(command, outcome="done", now=later(seconds + 3), has_failed=has_failed)
        task = ScrapeTask.objects.get()
        assert (task.run_at, task.hinted_at) == (later(seconds + 3), None)

    @pytest.mark.parametrize("seconds", [20, 155, 310])
    def test_every_other_step_reads_at_once(self, ref: MatchRef, seconds: float) -> None:
        for earlier in (20, 50, 95, 155, 310):
            if earlier == seconds:
                ScrapeTask.objects.update(run_at=later(999), hinted_at=later(earlier))
            if earlier <= seconds:
                advance(earlier)
        task = ScrapeTask.objects.get()
        assert (task.run_at, task.hinted_at) == (later(seconds), None)

    def test_a_retry_after_of_the_source_is_waited_for(self, ref: MatchRef) -> None:
        error = {"retry_after_until": later(600).timestamp()}
        ScrapeTask.objects.update(run_at=later(600), error=error)
        advance(20)
        assert ScrapeTask.objects.get().run_at == later(600)

    def test_a_match_behind_an_open_breaker_is_not_read(self, ref: MatchRef) -> None:
        Breaker.objects.create(name="b", ref=ref, state="OPEN", open_until=later(80), last_state_change=NOW)
        ScrapeTask.objects.update(run_at=later(80))
        advance(20)
        assert ScrapeTask.objects.get().run_at == later(80)

    def test_the_browser_of_the_worker_that_reads_it(self, ref: MatchRef) -> None:
        for seconds in (20, 50, 95):
            advance(seconds, "w1", "w2")
        recycled = WorkerCommand.objects.filter(kind=CommandKind.RECYCLE_BROWSER)
        assert list(recycled.values_list("worker_id", flat=True)) == ["w1"]

    def test_another_source_that_was_not_watched_is_called_in(self, ref: MatchRef) -> None:
        other = make_ref(match=ref.match, source=make_source("board"), source_event_id="b1", is_watched=False)
        for seconds in (20, 50, 95, 155):
            advance(seconds)
        other.refresh_from_db()
        assert (other.is_watched, other.next_poll_at, other.called_in_at) == (True, later(155), later(155))

    def test_without_another_source_their_lists_are_read(self, ref: MatchRef) -> None:
        make_source("board", sport=ref.match.sport, last_discovery_at=NOW)
        for seconds in (20, 50, 95, 155):
            advance(seconds)
        assert Source.objects.get(key="board").last_discovery_at is None

    def test_an_important_match_twice_as_soon(self, ref: MatchRef) -> None:
        Match.objects.update(importance=Importance.HIGH)
        assert advance(11) == 1

    def test_two_schedulers_take_a_rung_once(self, ref: MatchRef, sent: list[dict[str, Any]]) -> None:
        stale = Match.objects.prefetch_related("refs__source").get()
        advance(20)
        found = silence_of(stale, has_workers=True, now=later(20))
        means = StepContext(("w1",), THRESHOLD, later(20))
        assert not ladder._climb(stale, Rung.HINT, found, means)
        assert len(sent) == 1

    def test_without_workers_only_the_last_rungs_are_left(self, ref: MatchRef, sent: list[dict[str, Any]]) -> None:
        for seconds in range(0, 320, 5):
            ladder.advance(later(seconds), staleness_threshold=THRESHOLD)
        assert [one["up"] for one in sent] == ["other_source", "frozen"]

    def test_a_match_that_waits_for_a_place_gets_no_session_or_browser(
        self, ref: MatchRef, sent: list[dict[str, Any]]
    ) -> None:
        """Its source is at its limit and other matches were more urgent: a session or browser would not help."""
        ScrapeTask.objects.all().delete()
        for seconds in range(5, 320, 5):
            advance(seconds)
        assert [one["up"] for one in sent] == ["other_source", "frozen"]

    def test_a_match_that_just_got_a_place_is_given_time(self, ref: MatchRef) -> None:
        ScrapeTask.objects.update(created_at=later(95), attempt=0)
        assert advance(100) == 0
        assert advance(103) == 1, "its poll had enough time"

    def test_a_failed_attempt_counts_as_its_turn(self, ref: MatchRef) -> None:
        ScrapeTask.objects.update(created_at=later(90), attempt=2)
        assert advance(100) == 1


class TestManySilentMatches:
    def test_forty_silent_matches_are_one_session_and_one_browser(self) -> None:
        for number in range(40):
            match = make_match(lifecycle="ACTIVE", last_scraper_update=NOW)
            ref = make_ref(match=match, source_event_id=f"m{number}", captured_at=NOW)
            make_scraper(ref, worker_id="w1")
            open_task(ref)
        for seconds in range(20, 140, 5):
            advance(seconds)
            for command in worker_commands.take("w1", now=later(seconds)):
                worker_commands.finish(command, outcome="did", now=later(seconds))
        assert WorkerCommand.objects.filter(kind=CommandKind.FRESH_SESSION).count() == 1
        assert WorkerCommand.objects.filter(kind=CommandKind.RECYCLE_BROWSER).count() == 1
        assert set(Match.objects.values_list("silence_rung", flat=True)) == {Rung.BROWSER}

    def quiet(self, name: str, **fields: Any) -> Match:
        match = make_match(lifecycle="ACTIVE", last_scraper_update=NOW, **fields)
        open_task(make_ref(match=match, source_event_id=name, captured_at=NOW))
        return match

    def test_moves_are_limited_per_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ladder, "MAX_MOVES", 2)
        crowd = [self.quiet(f"m{number}") for number in range(3)]
        assert [advance(20), advance(21), advance(22)] == [2, 1, 0]
        assert {rung_of(match) for match in crowd} == {Rung.HINT}

    def test_frozen_matches_do_not_hide_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Frozen matches are skipped: otherwise many of them would hide others."""
        monkeypatch.setattr(silent_matches, "MAX_MATCHES", 1)
        frozen = {"silence_rung": Rung.FROZEN, "silence_rung_at": NOW, "silent_since": NOW, "frozen_at": NOW}
        first, second = (self.quiet(name, importance=Importance.HIGH, **frozen) for name in ("first", "second"))
        other = self.quiet("other")
        advance(20)
        assert [rung_of(match) for match in (first, second, other)] == [Rung.FROZEN, Rung.FROZEN, Rung.HINT]
        Match.objects.filter(pk=first.pk).update(last_scraper_update=later(21))
        Match.objects.filter(pk=second.pk).update(lifecycle="PAUSED", pause_until=later(99))
        advance(25)
        advance(30)
        assert {rung_of(match) for match in (first, second)} == {Rung.GROUND}

    def test_without_silent_matches_three_queries_are_made(self, django_assert_num_queries: Any) -> None:
        for number in range(30):
            match = make_match(lifecycle="ACTIVE", last_scraper_update=NOW)
            make_ref(match=match, source_event_id=f"m{number}", captured_at=NOW)
        with django_assert_num_queries(3):
            ladder.advance(later(3), staleness_threshold=THRESHOLD)


class TestReturnOfData:
    def test_new_data_resets_the_rung_and_sends_a_signal(self, ref: MatchRef, sent: list[dict[str, Any]]) -> None:
        for seconds in range(0, 320, 5):
            advance(seconds)
        read_match(ref, later(321))
        assert advance(325) == 1
        match = Match.objects.get()
        assert (match.silence_rung, match.silent_since, match.frozen_at) == (0, None, None)
        assert sent[-1] == {"over": Rung.FROZEN, "seconds": 321.0, "source": "crex"}

    def test_a_called_in_source_stops_when_the_regular_one_has_data(self, ref: MatchRef) -> None:
        other = make_ref(match=ref.match, source=make_source("board"), source_event_id="b1", is_watched=False)
        for seconds in (20, 50, 95, 155):
            advance(seconds)
        read_match(other, later(157))
        advance(160)
        assert rung_of(ref.match) is Rung.GROUND
        other.refresh_from_db()
        assert other.is_watched, "no other source has the match yet"
        read_match(ref, later(200), runs=101)
        advance(205)
        other.refresh_from_db()
        assert (other.is_watched, other.called_in_at, other.next_poll_at) == (False, None, None)
        assert [scraper.ref for scraper in Scraper.objects.filter(stopped_at=None)] == [ref], "its polling ended"

    @pytest.mark.parametrize("is_asked_for", [True, False], ids=["a person wants it", "not asked for"])
    def test_a_called_in_source_stays_if_an_operator_watches_it(self, ref: MatchRef, is_asked_for: bool) -> None:
        board = make_source("board")
        make_ref(match=ref.match, source=board, source_event_id="b1", called_in_at=later(155), captured_at=NOW)
        if is_asked_for:
            watches.begin(match_id=ref.match_id, actor="ada", now=later(156))
        read_match(ref, later(157))
        advance(160)
        assert MatchRef.objects.get(source=board).is_watched is is_asked_for

    def test_a_watch_that_ends_leaves_nothing_behind(self, ref: MatchRef) -> None:
        MatchRef.objects.update(called_in_at=NOW)
        watches.end(match_id=ref.match_id, reason="enough", actor="ada", now=NOW)
        assert MatchRef.objects.get().called_in_at is None
        MatchRef.objects.update(called_in_at=NOW)
        Match.objects.update(lifecycle="COMPLETED", completed_at=NOW)
        lifecycle.archive_old_matches(later(1) + lifecycle.ARCHIVE_AFTER)
        assert MatchRef.objects.get().called_in_at is None

    def test_a_source_that_waits_for_memory_goes_on_waiting(self, ref: MatchRef) -> None:
        board = make_source("board")
        make_ref(match=ref.match, source=board, source_event_id="b1", is_watched=False, watch_at=later(9000))
        for seconds in (20, 50, 95, 155):
            advance(seconds)
        read_match(ref, later(160))
        advance(165)
        other = MatchRef.objects.get(source=board)
        assert (other.is_watched, other.watch_at) == (False, later(9000))

    @pytest.mark.parametrize("columns", [{"status": "completed", "lifecycle": "COMPLETED"}, {"lifecycle": "PAUSED"}])
    def test_a_match_that_is_not_polled_any_more_leaves_the_ladder(
        self, ref: MatchRef, sent: list[dict[str, Any]], columns: dict[str, str]
    ) -> None:
        advance(20)
        Match.objects.update(pause_until=later(500), **columns)
        assert advance(60) == 1
        assert rung_of(ref.match) is Rung.GROUND
        assert sent[-1]["source"] == ""

    def test_starts_at_the_ground_after_a_pause(self, ref: MatchRef) -> None:
        advance(20)
        Match.objects.update(lifecycle="PAUSED", pause_until=later(400))
        advance(25)
        Match.objects.update(lifecycle="ACTIVE", pause_until=None)
        advance(405)
        assert rung_of(ref.match) is Rung.HINT
        advance(410)
        assert rung_of(ref.match) is Rung.HINT, "each rung has its time, however old the silence"


class TestWorkerCommands:
    def test_one_open_command_of_a_kind(self) -> None:
        def give() -> WorkerCommand | None:
            return worker_commands.issue(
                CommandKind.RECYCLE_BROWSER, worker_id="w1", reason="asked", actor="ada", now=NOW
            )

        first = give()
        assert first is not None
        assert give() is None
        assert [command.pk for command in worker_commands.take("w1", now=NOW)] == [first.pk]
        assert worker_commands.take("w1", now=NOW) == [], "each command is returned once"
        worker_commands.finish(first, outcome="a fresh one", now=NOW)
        assert give() is not None

    def test_a_command_to_a_dead_worker_is_closed(self) -> None:
        worker_commands.issue(CommandKind.RECYCLE_BROWSER, worker_id="w1", reason="asked", actor="ada", now=NOW)
        assert escalate_silent_matches(later(59)) == 0
        assert escalate_silent_matches(later(61)) == 1
        assert WorkerCommand.objects.get().outcome == "not taken in time"
