"""Submissions are written into their match: in order, once, by the rules for readings."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.utils import timezone

from monitoring.queries import live_matches, matches_to_watch
from scraping import journal
from scraping.configuration import policies
from scraping.documents.cached_match import CachedMatch
from scraping.documents.freshness import DataState
from scraping.documents.publisher import Publisher
from scraping.documents.queries import find_match
from scraping.errors import StaleFence
from scraping.jobs import submissions
from scraping.jobs.submission_schema import SentMatch
from scraping.matches import endings, ingest, lifecycle, scrapers, watches
from scraping.matches.endings import settle_ended_matches
from scraping.models import (
    Match,
    MatchEvent,
    MatchLifecycle,
    MatchRef,
    Scraper,
    ScraperStatus,
    ScrapeTask,
    Snapshot,
    Source,
    Submission,
    SubmissionState,
    TaskState,
)
from scraping.payloads import Resource, Status
from scraping.policies.ladder import Rung
from scraping.recovery import ladder
from scraping.recovery.ladder import StepContext, take_step
from scraping.scheduler.hint import _groups
from scraping.scheduler.loop import load_steps
from scraping.scheduler.other_tasks import (
    open_discovery_tasks,
    open_final_submission_tasks,
    open_gap_tasks,
    open_lineup_tasks,
    open_submission_tasks,
)
from scraping.signals import match_updated
from scraping.worker.scrape import scrape
from tests.factories import cricket_state, make_match, make_ref
from tests.scraping.builders import POLICIES, payload_of, read
from tests.scraping.due_tasks import open_due_tasks
from tests.scraping.submission_steps import ball, claim, earlier, engine, open_tasks, pushed_source, sent, work

pytestmark = [pytest.mark.django_db, pytest.mark.both]
PARTNER = submissions.Submitter("consumer-1", "Partner")


@pytest.fixture(autouse=True)
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setattr(policies, "current", lambda: POLICIES)
    return pushed_source()


def send(runs: int = 91, *, now: datetime | None = None, **fields: Any) -> Submission:
    body = SentMatch.model_validate(sent(runs, **fields))
    now, count = now or timezone.now(), Submission.objects.count()
    accepted = submissions.accept([body], sender=PARTNER, key=f"k{count}", body_hash="0" * 64, now=now)
    return accepted.submissions[0]


def again(one: Submission) -> Submission:
    one.refresh_from_db()
    return one


def the_match() -> Match:
    return Match.objects.get()


def runs_of(match: Match) -> int:
    runs: int = match.payload["score"]["team_a"]["runs"]
    return runs


class TestOpening:
    @pytest.mark.requirement("ZT-1")
    def test_one_task_per_match_for_any_number(self) -> None:
        for runs in (91, 92, 93):
            send(runs)
        send(5, match_id="other", teams={"team_a": {"name": "Kenya"}, "team_b": {"name": "Nepal"}})
        assert open_submission_tasks(timezone.now()) == 2
        assert open_submission_tasks(timezone.now()) == 0
        tasks = ScrapeTask.objects.all()
        assert {(task.resource, task.state, task.priority) for task in tasks} == {(Resource.SUBMISSION, "PENDING", 0)}

    def test_opens_nothing_without_submissions(self) -> None:
        assert open_submission_tasks(timezone.now()) == 0
        send()
        work()
        assert open_submission_tasks(timezone.now()) == 0

    def test_a_paused_match_is_left_alone_until_its_pause_ends(self) -> None:
        match = send().ref.match
        lifecycle.pause(
            match_id=match.pk,
            until=timezone.now() + timedelta(hours=1),
            reason="quiet",
            actor="ann",
            now=timezone.now(),
        )
        assert open_submission_tasks(timezone.now()) == 0
        lifecycle.resume(match_id=match.pk, actor="ann", now=timezone.now())
        assert open_submission_tasks(timezone.now()) == 1

    def test_a_source_that_is_switched_off_opens_none(self, source: Source) -> None:
        send()
        Source.objects.filter(pk=source.pk).update(is_enabled=False)
        assert open_submission_tasks(timezone.now()) == 0

    def test_after_a_death_it_waits_a_while(self) -> None:
        """A submission that has killed three workers is retried later, neither at once nor never."""
        now = timezone.now()
        ref = send().ref
        task_id = journal.open_new(
            [journal.NewTask(ref.source_id, ref.pk, Resource.SUBMISSION, 0, run_at=now)], now=now
        )[0].task_id
        ScrapeTask.objects.filter(pk=task_id).update(state=TaskState.DEAD, finished_at=now, reason="killed")
        assert open_submission_tasks(now + timedelta(minutes=4)) == 0
        assert open_submission_tasks(now + timedelta(minutes=6)) == 1

    def test_is_a_step_of_the_scheduler_twice_a_second(self) -> None:
        steps = dict(settings.SCHEDULER_STEPS)
        assert steps["scraping.scheduler.other_tasks.open_submission_tasks"] == 0.5
        assert "open_submission_tasks" in {step.name for step in load_steps(settings.SCHEDULER_STEPS)}

    def test_are_hinted_alone(self) -> None:
        due = [(1, 7, Resource.SCORECARD.value), (2, 7, Resource.SUBMISSION.value), (3, 7, Resource.SCORECARD.value)]
        assert [2] in list(_groups(due))


class TestWriting:
    def test_in_order_and_in_one_task(self) -> None:
        sent_ones = [send(runs, at=earlier(30 - runs % 90)) for runs in (91, 92, 95)]
        assert work() == 1
        assert [again(one).state for one in sent_ones] == [SubmissionState.DONE] * 3
        assert [one.result["sequence"] for one in sent_ones] == [1, 2, 3]
        assert [shot.payload["score"]["team_a"]["runs"] for shot in Snapshot.objects.order_by("sequence")] == [
            91,
            92,
            95,
        ]
        task = ScrapeTask.objects.get()
        assert task.state == TaskState.SUCCESS
        assert {one.task_id for one in sent_ones} == {task.pk}

    def test_reads_nothing_and_starts_no_watch(self) -> None:
        send(events=[ball(1)])
        work()
        ref = MatchRef.objects.get()
        assert (ref.is_watched, ref.next_poll_at, ref.read_mode) == (False, None, "")
        assert not Scraper.objects.exists()
        assert Snapshot.objects.get().data_source == "manual"
        assert the_match().lifecycle == MatchLifecycle.ACTIVE

    def test_announces_the_update_as_manual(self, django_capture_on_commit_callbacks: Any) -> None:
        received: list[MatchRef] = []

        def note(ref: MatchRef, **_: object) -> None:
            received.append(ref)

        match_updated.connect(note)
        with django_capture_on_commit_callbacks(execute=True):
            send()
            work()
        match_updated.disconnect(note)
        own, again = Publisher(), MatchRef.objects.select_related("match", "source").get()
        assert own._can_render(received[0])
        assert own._render(received[0]).data_source == "manual"
        assert not own._can_render(again)  # unknown for an unchanged reading
        own._rendered[again.match_id] = own._render(received[0])
        assert own._render(again).data_source == "manual"

    def test_the_age_counts_from_the_senders_reading(self) -> None:
        at = earlier(40)
        send(at=at)
        work()
        assert the_match().last_scraper_update == at

    def test_events_are_added_corrected_and_taken_back(self) -> None:
        send(at=earlier(30), events=[ball(1), ball(2), ball(3)], events_are_complete=True)
        send(at=earlier(20), events=[ball(1), ball(2, runs=4, kind="four"), ball(3)], events_are_complete=True)
        last = send(at=earlier(10), events=[ball(1), ball(2, runs=4, kind="four")], events_are_complete=True)
        work()
        actions = MatchEvent.objects.order_by("pk").values_list("event_id", "action")
        assert list(actions) == [
            ("1-1", "add"), ("1-2", "add"), ("1-3", "add"), ("1-2", "update"), ("1-3", "retract")
        ]  # fmt: skip
        assert again(last).result["events"] == {"added": 0, "updated": 0, "retracted": 1}

    def test_an_older_submission_adds_its_events_only(self) -> None:
        send(95, at=earlier(10), events=[ball(3)])
        late = send(91, at=earlier(20), events=[ball(2), ball(3, runs=6)])
        work()
        assert runs_of(the_match()) == 95
        assert set(MatchEvent.objects.values_list("event_id", "runs")) == {("1-3", 1), ("1-2", 1)}
        assert again(late).state == SubmissionState.DONE
        assert late.reason == submissions.OLD
        assert (late.result["is_taken"], late.result["sequence"]) == (False, 2)

    def test_two_with_the_same_time_are_both_accepted(self) -> None:
        """Many senders have times without fractions of a second: the later request counts as later."""
        at = earlier(10)
        send(91, at=at)
        send(92, at=at)
        work()
        assert runs_of(the_match()) == 92

    def test_a_score_that_goes_down_waits_until_it_is_sent_three_times(self) -> None:
        send(95, at=earlier(40))
        lower = [send(91, at=earlier(30 - number)) for number in range(3)]
        work()
        assert [again(one).result["is_taken"] for one in lower] == [False, False, True]
        assert [one.reason for one in lower] == [submissions.PROVISIONAL] * 2 + [""]
        assert runs_of(the_match()) == 91
        assert MatchRef.objects.get().next_poll_at is None

    def test_a_further_batch_is_left_to_the_next_task(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(submissions, "AT_ONCE", 2)
        for runs in (91, 92, 93):
            send(runs)
        assert work() == 1
        assert Submission.objects.filter(state=SubmissionState.ACCEPTED).count() == 1
        assert work() == 1
        assert runs_of(the_match()) == 93

    def test_sources_with_more_weight_count_more(self) -> None:
        now = timezone.now()
        crex = make_ref(make_match(state=cricket_state(start_time=now), start_time=now, now=now), now=now)
        read(crex, payload_of(crex, cricket_state(venue="Eden Gardens", start_time=now), at=now))
        one = send(start_time=now.isoformat(), venue="Lord's", innings=[], now=now, at=now)
        work()
        assert again(one).ref.match_id == crex.match_id
        crex.match.refresh_from_db()
        assert crex.match.payload["venue"] == "Eden Gardens"
        crex.refresh_from_db()
        assert crex.next_poll_at is not None, "our own watch continues"


class TestRefusal:
    def test_another_match_under_the_same_id(self) -> None:
        send(at=earlier(9))
        wrong = send(teams={"team_a": {"name": "Kenya"}, "team_b": {"name": "Nepal"}})
        right = send(95)
        work()
        assert (again(wrong).state, again(right).state) == (SubmissionState.REFUSED, SubmissionState.DONE)
        assert "you had sent India and Australia" in wrong.reason
        assert (runs_of(the_match()), the_match().team_a) == (95, "India")

    def test_teams_may_be_named_before_the_start(self) -> None:
        send(status="upcoming", innings=[], teams={"team_a": {"name": "TBC"}, "team_b": {"name": "TBD"}}, at=earlier(9))
        send()
        work()
        assert the_match().team_a == "India"

    def test_a_team_may_be_spelt_in_another_way(self) -> None:
        send(at=earlier(9))
        send(95, teams={"team_a": {"name": "IND"}, "team_b": {"name": "Australia Men"}})
        work()
        assert runs_of(the_match()) == 95

    def test_half_a_list_of_events_is_refused(self) -> None:
        send(at=earlier(9), events=[ball(number) for number in range(1, 13)], events_are_complete=True)
        half = send(93, events=[ball(1)], events_are_complete=True)
        work()
        assert again(half).state == SubmissionState.REFUSED
        assert "11 of 12 known events are missing" in half.reason
        assert runs_of(the_match()) == 91
        assert MatchEvent.objects.count() == 12

    def test_a_match_that_is_archived(self) -> None:
        send(at=earlier(9))
        work()
        Match.objects.update(lifecycle=MatchLifecycle.ARCHIVED)
        late = send(95)
        work()
        assert again(late).state == SubmissionState.REFUSED
        assert "archived" in late.reason

    def test_one_that_cannot_be_written_does_not_block_the_others(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        apply = ingest.apply

        def breaks(payload: Any, **more: Any) -> Any:
            done = apply(payload, **more)
            if payload.state.innings[0].runs == 92:
                raise ZeroDivisionError("a bug of ours")
            return done

        monkeypatch.setattr(ingest, "apply", breaks)
        ones = [send(runs) for runs in (91, 92, 93)]
        work()
        assert [again(one).state for one in ones] == ["done", "refused", "done"]
        assert ones[1].reason == submissions.OUR_FAULT
        assert [one.result.get("sequence") for one in ones] == [1, None, 2], "the partial write was rolled back"
        assert "a bug of ours" in caplog.text


@pytest.mark.requirement("BX-13")
class TestExactlyOnce:
    def test_a_worker_that_lost_its_task_writes_nothing(self) -> None:
        one = send()
        open_submission_tasks(timezone.now())
        (task_id,) = open_tasks()
        late = claim(task_id, worker_id="w-slow")
        ScrapeTask.objects.update(state=TaskState.PENDING)  # its lease ran out
        scrape([task_id], engine(worker_id="w-quick"))
        with pytest.raises(StaleFence), journal.finishing(late, now=timezone.now()):
            pytest.fail("the effects of a stale claim are never begun")
        assert again(one).state == SubmissionState.DONE
        assert Snapshot.objects.count() == 1

    def test_a_hint_that_comes_twice_does_nothing_the_second_time(self) -> None:
        send()
        open_submission_tasks(timezone.now())
        (task_id,) = open_tasks()
        for _ in range(3):
            scrape([task_id], engine())
        assert (Snapshot.objects.count(), the_match().total_scrapes) == (1, 1)

    def test_a_database_that_goes_away_in_between_leaves_it_as_it_was(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ones = [send(91), send(92)]
        monkeypatch.setattr("scraping.worker.failures.close_old_connections", lambda: None)
        replay, calls = ingest.apply, []

        def away(payload: Any, **more: Any) -> Any:
            calls.append(payload)
            if len(calls) == 2:
                raise OperationalError("server closed the connection unexpectedly")
            return replay(payload, **more)

        monkeypatch.setattr(ingest, "apply", away)
        work()
        assert [again(one).state for one in ones] == ["accepted"] * 2
        assert not Snapshot.objects.exists()
        task = ScrapeTask.objects.get()
        assert (task.state, task.charged_attempts, task.error_class) == (TaskState.PENDING, 0, "store")
        assert MatchRef.objects.get().next_poll_at is None
        ScrapeTask.objects.update(run_at=timezone.now())
        work()
        assert [again(one).state for one in ones] == ["done"] * 2
        assert the_match().sequence == 2


class TestOtherParts:
    """A match without another source: its age is shown, and it is neither polled nor repaired."""

    @pytest.fixture
    def match(self) -> Match:
        send(at=earlier(1), start_time=earlier(3600).isoformat())
        work()
        return the_match()

    def test_is_never_polled_discovered_or_read_for_line_ups(self, match: Match) -> None:
        later = timezone.now() + timedelta(hours=1)
        MatchRef.objects.update(events_seen=9)
        for step in (open_due_tasks, open_discovery_tasks, open_gap_tasks, open_lineup_tasks):
            assert step(later) == 0
        assert ScrapeTask.objects.count() == 1

    def test_becomes_stale_without_an_alert(self, match: Match) -> None:
        found = find_match(str(match.pk))
        assert found is not None
        now = timezone.now()
        states = [
            CachedMatch.from_row(found).freshness(now + timedelta(seconds=seconds)).state for seconds in (0, 60, 600)
        ]
        assert states == [DataState.FRESH, DataState.AGING, DataState.STALE]
        assert not matches_to_watch().exists()
        assert live_matches(now + timedelta(hours=1)) == []
        assert ladder.advance(now + timedelta(hours=1), staleness_threshold=300) == 0
        match.refresh_from_db()
        assert match.silence_rung == Rung.GROUND

    def test_cannot_be_watched(self, match: Match) -> None:
        with pytest.raises(lifecycle.NotAllowed, match="is sent in"):
            watches.begin(match_id=match.pk, actor="ann", now=timezone.now())
        assert not MatchRef.objects.filter(is_watched=True).exists()

    def test_a_silent_source_is_not_replaced_by_it(self, match: Match) -> None:
        make_ref(match)
        done = take_step(match, Rung.OTHER_SOURCE, StepContext(("w-1",), 300.0, timezone.now()))
        assert (done.summary, done.detail) == ("no other source has it", {"searched": []})
        assert not MatchRef.objects.filter(source__key="pushed", is_watched=True).exists()

    def test_is_not_searched_for_a_silent_match_of_another_source(self, source: Source) -> None:
        match = make_ref(make_match()).match
        Source.objects.filter(pk=source.pk).update(last_discovery_at=timezone.now())
        assert take_step(match, Rung.OTHER_SOURCE, StepContext((), 300.0, timezone.now())).detail == {"searched": []}
        source.refresh_from_db()
        assert source.last_discovery_at is not None

    def test_leaves_the_scraper_status_alone(self, match: Match) -> None:
        make_ref(match)
        Match.objects.update(scraper_status=ScraperStatus.STALE, consecutive_failure_count=3, failing_since=earlier(60))
        send(95)
        work()
        match.refresh_from_db()
        assert (match.scraper_status, match.consecutive_failure_count) == (ScraperStatus.STALE, 3)
        assert scrapers.stop_unread(now=timezone.now()) == 0

    def test_its_end_is_settled_with_what_was_sent(self, match: Match, caplog: pytest.LogCaptureFixture) -> None:
        send(180, overs="20.0", status="completed", result="India won")
        work()
        assert the_match().lifecycle == MatchLifecycle.COMPLETED
        settle_ended_matches(timezone.now())
        match = the_match()
        assert match.final_sync_at is not None
        assert endings.missing_parts(endings.check(match)) == []
        assert (match.final_checks["result"], match.final_checks["events"]) == (True, None)
        assert "still no" not in caplog.text
        found = find_match(str(match.pk))
        assert found is not None
        assert CachedMatch.from_row(found).freshness(timezone.now() + timedelta(days=1)).state == DataState.FINAL

    def test_ends_a_match_without_new_submissions(self, match: Match) -> None:
        assert open_final_submission_tasks(timezone.now() + timedelta(days=2)) == 0
        MatchRef.objects.update(captured_at=earlier(4 * 86_400))
        assert open_final_submission_tasks(timezone.now()) == 1
        work()
        match.refresh_from_db()
        assert (match.status, match.lifecycle) == (Status.COMPLETED, MatchLifecycle.COMPLETED)
        assert (match.sequence, Snapshot.objects.count()) == (2, 2)
        assert MatchRef.objects.get().next_poll_at is None
        assert open_final_submission_tasks(timezone.now()) == 0
        send(95)
        work()
        match.refresh_from_db()
        assert (match.status, match.lifecycle) == (Status.LIVE, MatchLifecycle.ACTIVE), "the match had not ended"

    def test_a_match_with_a_new_submission_stays_live(self, match: Match) -> None:
        MatchRef.objects.update(captured_at=earlier(4 * 86_400))
        open_final_submission_tasks(timezone.now())
        send(95)
        work()
        assert the_match().status == Status.LIVE

    def test_stays_live_where_another_source_has_it(self, match: Match) -> None:
        make_ref(match)
        MatchRef.objects.filter(source__key="pushed").update(captured_at=earlier(4 * 86_400))
        assert open_final_submission_tasks(timezone.now()) == 1
        work()
        assert the_match().status == Status.LIVE
        assert open_final_submission_tasks(timezone.now()) == 0

    def test_an_end_without_a_result_raises_no_alert(self, match: Match, caplog: pytest.LogCaptureFixture) -> None:
        send(180, overs="20.0", status="completed")
        work()
        settle_ended_matches(timezone.now())
        assert the_match().final_sync_at is not None
        assert the_match().status == Status.COMPLETED
        assert "still no" not in caplog.text
