"""Rounds and lists of matches: expected matches are stored before the first read, and every match is whole."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from scraping import jobs, journal
from scraping.errors import Gone, LayoutChanged, Transient
from scraping.jobs import JobState, Standing
from scraping.matches import lifecycle
from scraping.models import (
    JobItem,
    Match,
    MatchEvent,
    MatchRef,
    ScrapeError,
    ScrapeJob,
    ScrapeTask,
    Snapshot,
    TaskState,
)
from scraping.payloads import Resource, Score, SideScore, Status
from scraping.scheduler.retention import prune_often
from scraping.scheduler.upkeep import close_finished_jobs
from tests.factories import make_source
from tests.scraping.builders import balls, chasing
from tests.scraping.rounds import (
    ASKED,
    IDS,
    RoundReader,
    engine_of,
    finished,
    known,
    make_due,
    round_of,
    row,
    run_due,
    run_round,
    start,
    tasks_of,
    url_of,
    whole,
)

pytestmark = [pytest.mark.django_db, pytest.mark.both]


def view_of(job: ScrapeJob) -> jobs.JobView:
    job.refresh_from_db()
    return jobs.view(job)


def run_round_once(outcomes: Any) -> ScrapeJob:
    """Runs a round in which every match is tried run_round_once."""
    job, engine = start(), engine_of(RoundReader(outcomes=outcomes))
    run_due(engine, resource=Resource.ROUND)
    run_due(engine, resource=Resource.FULL)
    return job


def counts(job: ScrapeJob) -> dict[str, int]:
    return {standing.value: number for standing, number in view_of(job).counts.items()}


class TestStart:
    @pytest.mark.requirement("ZT-1", "ZT-7")
    def test_writes_one_task_that_lists_the_round_and_reads_nothing(self) -> None:
        job = start()
        task = ScrapeTask.objects.get()
        assert (task.resource, task.state, task.ref, task.job) == ("round", TaskState.PENDING, None, job)
        assert job.name == "Sofascore: tournament 325, season 87678, round 12"
        assert view_of(job).state is JobState.DISCOVERING

    def test_of_an_open_round_gives_the_same_job_back(self) -> None:
        first = start()
        again = jobs.start_round(source_key="sofascore", asked=ASKED, requested_by="Bob", now=timezone.now())
        assert (again.job.pk, again.is_new) == (first.pk, False)
        assert ScrapeTask.objects.count() == 1

    def test_of_a_round_that_has_ended_is_a_new_job(self) -> None:
        job, _ = run_round()
        close_finished_jobs(timezone.now())
        assert start().pk != job.pk

    def test_of_another_round_is_another_job(self) -> None:
        assert start().pk != start(asked={**ASKED, "round": 13}).pk

    def test_with_a_key_twice_is_one_job_even_when_it_has_ended(self) -> None:
        job, _ = run_round(idempotency_key="abc")
        close_finished_jobs(timezone.now())
        assert start(idempotency_key="abc").pk == job.pk
        assert start(idempotency_key="abc", requested_by="Bob").pk != job.pk

    def test_with_a_key_of_another_request_is_refused(self) -> None:
        start(idempotency_key="abc")
        with pytest.raises(jobs.KeyReused, match="Nothing was started"):
            start(idempotency_key="abc", asked={**ASKED, "round": 13})
        assert ScrapeJob.objects.count() == 1

    @pytest.mark.parametrize(
        ("asked", "said"),
        [
            ({"tournament": 325, "season": 1}, "round is missing"),
            ({**ASKED, "round": 0}, "round must be a whole number"),
            ({**ASKED, "round": "x"}, "round must be a whole number"),
            ({**ASKED, "round": True}, "round must be a whole number"),
            ({**ASKED, "week": 1}, "week is not part of it"),
        ],
    )
    def test_refuses_an_invalid_round(self, asked: dict[str, Any], said: str) -> None:
        with pytest.raises(jobs.Refused, match=said):
            start(asked=asked)
        assert not ScrapeJob.objects.exists()

    def test_refuses_a_source_without_rounds(self) -> None:
        make_source("crex")
        with pytest.raises(jobs.Refused, match="Crex has no rounds; start its matches by their addresses"):
            start(source_key="crex")

    def test_refuses_an_unknown_or_disabled_source(self) -> None:
        make_source("sofascore", is_enabled=False)
        with pytest.raises(jobs.Refused, match="switched off"):
            start()
        with pytest.raises(jobs.Refused, match="there are: sofascore"):
            start(source_key="nowhere")


@pytest.mark.requirement("ZT-2", "ZT-12")
class TestDiscovery:
    def test_writes_all_tasks_as_pending_before_the_first_is_read(self) -> None:
        job, reader = start(), RoundReader()
        run_due(engine_of(reader), resource=Resource.ROUND)
        assert tasks_of(job) == dict.fromkeys(IDS, TaskState.PENDING.value)
        assert reader.read_ids == []
        assert counts(job) == {"pending": 10}
        assert (Match.objects.count(), MatchRef.objects.count()) == (10, 10)
        assert not MatchRef.objects.exclude(next_poll_at=None).exists(), "the job reads them first"

    def test_is_all_or_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        job, reader = start(), RoundReader()

        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("killed here")

        monkeypatch.setattr(JobItem.objects, "bulk_create", fail)
        run_due(engine_of(reader))
        job.refresh_from_db()
        assert job.discovered_at is None
        assert not Match.objects.exists()
        assert not ScrapeTask.objects.filter(resource=Resource.FULL).exists()

    @pytest.mark.parametrize(
        ("listed", "said"),
        [
            (round_of(), "lists no match"),
            (round_of(*map(row, IDS[:9]), {"id": "?"}), "sofascore.list.v1: events[]"),
            (round_of(*map(row, IDS[:9]), "a word"), "sofascore.list.v1: events[]"),
            (round_of(row(IDS[0], roundInfo={"round": 11})), "received a match of round 11"),
            (round_of(row(IDS[0], season={"id": 1})), "received a match of season 1"),
            ({"v2_events": []}, "no list of the round's matches"),
            (Gone("round answered 404", http_status=404), "the source knows nothing of Sofascore: tournament 325"),
        ],
    )
    def test_refuses_a_list_that_is_short_or_wrong(self, listed: Any, said: str) -> None:
        job, reader = start(), RoundReader(listed)
        for _ in range(2):
            run_due(engine_of(reader))
            make_due()
        close_finished_jobs(timezone.now())
        view = view_of(job)
        assert (view.state, view.expected) == (JobState.FAILED, 0)
        assert said in view.problem
        assert job.finished_at is not None
        assert not Match.objects.exists()

    def test_that_failed_is_retried_with_its_job(self) -> None:
        job, reader = start(), RoundReader(Gone("round answered 404", http_status=404))
        for _ in range(2):
            run_due(engine_of(reader))
            make_due()
        close_finished_jobs(timezone.now())
        outcome = jobs.retry_failed(journal.TaskSelection(job_id=job.pk), actor="Ann", now=timezone.now())
        assert len(outcome.retried) == 1
        assert (view_of(job).state, view_of(job).job.finished_at) == (JobState.DISCOVERING, None)
        while run_due(engine_of(RoundReader())):
            pass
        assert view_of(job).state is JobState.COMPLETE

    def test_refuses_another_number_of_matches_than_requested(self) -> None:
        job, reader = start(matches=10), RoundReader(round_of(*map(row, IDS[:5])))
        run_due(engine_of(reader))
        assert "must have 10 matches and the source lists 5" in view_of(job).problem
        assert not Match.objects.exists()

    def test_happens_once_for_a_repeated_task(self) -> None:
        job, reader = start(), RoundReader()
        run_due(engine_of(reader), resource=Resource.ROUND)
        with transaction.atomic():
            assert jobs.expect(job.pk, {make_source("sofascore"): []}, now=timezone.now()) == 0
        assert counts(job) == {"pending": 10}


@pytest.mark.requirement("ZT-3", "ZT-8")
class TestRound:
    def test_ends_complete_with_every_match_read_once(self) -> None:
        job, reader = run_round()
        close_finished_jobs(timezone.now())
        view = view_of(job)
        assert sorted(reader.read_ids) == sorted(IDS)
        assert (view.state, view.percent, view.missing) == (JobState.COMPLETE, 100.0, [])
        assert job.finished_at is not None
        assert set(Match.objects.values_list("status", flat=True)) == {Status.COMPLETED.value}
        assert MatchEvent.objects.filter(is_current=True).count() == 20

    def test_continues_with_the_unfinished_matches_only(self) -> None:
        """The worker dies in its fifth match; another worker reads the rest."""
        job, first = start(), RoundReader()
        run_due(engine_of(first), resource=Resource.ROUND)
        run_due(engine_of(first), resource=Resource.FULL, limit=4)
        (in_work,) = ScrapeTask.objects.filter(state=TaskState.PENDING).order_by("pk")[:1]
        assert journal.claim(in_work.pk, worker_id="dead", lease_seconds=15, now=timezone.now())
        assert counts(job) == {"done": 4, "executing": 1, "pending": 5}
        journal.rescue(max_rescues=3, now=timezone.now() + timedelta(seconds=16))
        make_due()
        second = RoundReader()
        run_due(engine_of(second))
        assert sorted(first.read_ids + second.read_ids) == sorted(IDS)
        assert view_of(job).state is JobState.COMPLETE

    def test_one_failing_match_does_not_affect_the_others(self) -> None:
        job, reader = start(), RoundReader(outcomes={IDS[3]: LayoutChanged("the page has changed")})
        for _ in range(3):
            run_due(engine_of(reader))
            make_due()
        close_finished_jobs(timezone.now())
        view = view_of(job)
        assert view.state is JobState.INCOMPLETE
        assert counts(job) == {"done": 9, "dead": 1}
        (missing,) = view.missing
        assert (missing.ref.key, str(missing.ref.match)) == (f"sofascore_{IDS[3]}", f"Home {IDS[3]} v Away")
        assert "the page has changed" in missing.reason
        assert view.percent == 90.0

    def test_shows_when_a_failed_match_is_tried_again(self) -> None:
        job, reader = start(), RoundReader(outcomes={IDS[0]: Transient("timeout")})
        run_due(engine_of(reader))
        run_due(engine_of(reader))
        (missing,) = view_of(job).missing
        assert (missing.standing, missing.reason) == (Standing.FAILED, "timeout")
        assert missing.next_attempt_at is not None
        close_finished_jobs(timezone.now())
        assert view_of(job).job.finished_at is None

    def test_shows_a_match_that_the_source_no_longer_has_as_missing(self) -> None:
        job, reader = start(), RoundReader(outcomes={IDS[0]: Gone("page answered 404", http_status=404)})
        for _ in range(4):
            run_due(engine_of(reader))
            make_due()
        (missing,) = view_of(job).missing
        assert missing.standing is Standing.GIVEN_UP
        assert "gone" in missing.reason

    def test_an_address_that_was_never_a_match_is_not_polled_until_it_is_given_again(self) -> None:
        make_source("sofascore")
        address: Any = {"urls": [url_of("15000099")], "requested_by": "Ann", "now": timezone.now()}
        reader = RoundReader(outcomes={"15000099": Gone("page answered 404", http_status=404)})
        jobs.start_urls(**address)
        for _ in range(4):
            run_due(engine_of(reader))
            make_due()
        ref = known("15000099")
        assert (ref.is_watched, ref.next_poll_at, ref.gone_at is None) == (False, None, False)
        close_finished_jobs(timezone.now())
        reader.outcomes["15000099"] = whole("15000099", finished(status=Status.LIVE, result=""))
        assert jobs.start_urls(**address).is_new
        run_due(engine_of(reader))
        ref = known("15000099")
        assert (ref.is_watched, ref.match.status, ref.next_poll_at is None) == (True, "live", False)

    def test_a_live_match_is_read_up_to_now(self) -> None:
        live = whole(IDS[0], finished(status=Status.LIVE, result=""))
        job, _ = run_round(RoundReader(outcomes={IDS[0]: live}))
        assert view_of(job).state is JobState.COMPLETE
        assert known(IDS[0]).next_poll_at is not None

    def test_waits_for_a_paused_match_with_a_reason(self) -> None:
        job, reader = start(), RoundReader()
        run_due(engine_of(reader), resource=Resource.ROUND)
        now = timezone.now()
        until = now + timedelta(minutes=5)
        lifecycle.pause(match_id=known(IDS[0]).match_id, until=until, reason="rain", actor="Ann", now=now)
        assert "paused until" in view_of(job).missing[0].reason


@pytest.mark.requirement("ZT-9", "FS-4")
class TestSkipping:
    def test_reads_nothing_of_a_round_that_is_complete(self) -> None:
        run_round()
        close_finished_jobs(timezone.now())
        job, reader = run_round()
        assert (reader.lists, reader.read_ids) == (1, [])
        assert counts(job) == {"skipped": 10}
        assert view_of(job).state is JobState.COMPLETE
        assert view_of(job).job.finished_at is not None
        assert view_of(job).items[0].reason == "complete already: Draw 1-1"

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda ref: Match.objects.filter(pk=ref.match_id).update(status=Status.LIVE),
            lambda ref: MatchRef.objects.filter(pk=ref.pk).update(payload={**ref.payload, "result": ""}),
            lambda ref: MatchRef.objects.filter(pk=ref.pk).update(events_seen=9, events_through=8),
            lambda ref: MatchEvent.objects.filter(match_id=ref.match_id).first().delete(),
            lambda ref: MatchEvent.objects.filter(match_id=ref.match_id).delete(),
        ],
        ids=["not over", "no result", "a hole", "a goal missing", "no events"],
    )
    def test_reads_what_is_not_complete(self, spoil: Any) -> None:
        run_round()
        close_finished_jobs(timezone.now())
        spoil(known(IDS[2]))
        job, reader = start(), RoundReader()
        run_due(engine_of(reader), resource=Resource.ROUND)
        run_due(engine_of(reader))
        assert reader.read_ids == [IDS[2]]
        assert counts(job)["skipped"] == 9

    def test_reading_again_changes_nothing(self) -> None:
        run_round()
        before = (MatchEvent.objects.count(), Snapshot.objects.count(), Match.objects.count())
        Match.objects.update(status=Status.LIVE)
        close_finished_jobs(timezone.now())
        _, reader = run_round()
        assert len(reader.read_ids) == 10
        assert MatchEvent.objects.count() == before[0]
        assert Match.objects.count() == before[2]


@pytest.mark.requirement("ZT-8")
class TestWholeMatch:
    def test_is_not_written_where_its_events_have_a_gap(self) -> None:
        """A cricket list with ball 3 missing: neither the state nor the other balls are stored."""
        url = "https://crex.example/cricket-live-score/ind-vs-aus-match-updates-13KM"
        make_source("crex")
        job = jobs.start_urls(urls=[url], requested_by="Ann", now=timezone.now()).job
        pages = [
            whole("13KM", chasing(95), source="crex", events=balls(*numbers), events_are_complete=False)
            for numbers in ((5, 4), (2, 1))
        ]
        reader = RoundReader(outcomes={"13KM": pages[0]})
        reader.older_events = lambda target, is_enough: pages  # type: ignore[method-assign]
        run_due(engine_of(reader))
        (missing,) = view_of(job).missing
        assert "has a gap after number 2 of 5" in missing.reason
        assert not MatchEvent.objects.exists()
        assert not Snapshot.objects.exists()
        assert Match.objects.get().sequence == 0

    def test_is_not_written_where_only_a_part_was_read(self) -> None:
        partial = whole(IDS[0], is_partial_state=True)
        job, reader = start(), RoundReader(outcomes={IDS[0]: partial})
        run_due(engine_of(reader))
        run_due(engine_of(reader))
        assert "only a part of the match" in view_of(job).missing[0].reason
        assert known(IDS[0]).match.sequence == 0

    def test_is_not_written_where_the_list_of_events_lags_behind_the_score(self) -> None:
        lagging = whole(IDS[0], events=(), events_are_complete=False)
        reader = RoundReader(outcomes={IDS[0]: lagging})
        reader.older_events = lambda target, is_enough: [lagging]  # type: ignore[method-assign]
        job = start()
        run_due(engine_of(reader))
        run_due(engine_of(reader))
        assert "does not agree with the score" in view_of(job).missing[0].reason
        assert known(IDS[0]).match.sequence == 0

    def test_accepts_a_lower_score_at_the_third_reading(self) -> None:
        run_round()
        close_finished_jobs(timezone.now())
        Match.objects.filter(refs__source_event_id=IDS[0]).update(status=Status.LIVE)
        lower = finished(score=Score(team_a=SideScore(goals=0), team_b=SideScore(goals=1)), result="Away won 1-0")
        job, reader = start(), RoundReader(outcomes={IDS[0]: lambda: whole(IDS[0], lower)})
        run_due(engine_of(reader), resource=Resource.ROUND)
        run_due(engine_of(reader))
        assert reader.read_ids == [IDS[0]] * 3
        assert view_of(job).state is JobState.COMPLETE
        assert known(IDS[0]).match.payload["result"] == "Away won 1-0"

    @pytest.mark.requirement("NFR-008")
    def test_that_a_poll_has_overtaken_is_a_success_and_read_once(self) -> None:
        run_round()
        close_finished_jobs(timezone.now())
        later = timezone.now() + timedelta(seconds=5)
        live = finished(status=Status.LIVE, score=Score(team_a=SideScore(goals=3), team_b=SideScore(goals=3)))
        MatchRef.objects.filter(source_event_id=IDS[0]).update(captured_at=later, payload=live.model_dump(mode="json"))
        Match.objects.filter(refs__source_event_id=IDS[0]).update(status=Status.LIVE)
        job, reader = start(), RoundReader(outcomes={IDS[0]: lambda: whole(IDS[0])})
        run_due(engine_of(reader), resource=Resource.ROUND)
        run_due(engine_of(reader))
        assert (reader.read_ids, view_of(job).state) == ([IDS[0]], JobState.COMPLETE)
        assert known(IDS[0]).captured_at == later
        assert not ScrapeError.objects.exists()


class TestSharing:
    def test_an_open_task_of_the_same_match_serves_both_jobs(self) -> None:
        round_job, reader = start(), RoundReader()
        run_due(engine_of(reader), resource=Resource.ROUND)
        urls_job = jobs.start_urls(
            urls=[url_of(IDS[0]), url_of("15000099")], requested_by="Bob", now=timezone.now()
        ).job
        assert ScrapeTask.objects.filter(resource=Resource.FULL).count() == 11
        run_due(engine_of(reader))
        assert reader.read_ids.count(IDS[0]) == 1
        assert view_of(round_job).state is view_of(urls_job).state is JobState.COMPLETE


class TestUrls:
    def test_are_written_at_once(self) -> None:
        make_source("sofascore")
        make_source("crex")
        urls = [url_of(IDS[0]), url_of(IDS[1]), "https://crex.example/scoreboard/L61/1GH/4th-ODI/Q/S/aus-vs-eng/live"]
        started = jobs.start_urls(urls=urls, requested_by="Ann", now=timezone.now())
        assert (started.is_new, started.job.source, started.job.name) == (True, None, "3 matches by address")
        assert counts(started.job) == {"pending": 3}
        assert ScrapeTask.objects.filter(resource=Resource.FULL, state=TaskState.PENDING).count() == 3

    def test_of_one_match_count_once(self) -> None:
        make_source("sofascore")
        urls = [url_of(IDS[0]), url_of(IDS[0]) + ",tab:statistics", f" {url_of(IDS[0])} ", ""]
        assert jobs.start_urls(urls=urls, requested_by="Ann", now=timezone.now()).job.items.count() == 1

    def test_of_an_open_list_give_the_same_job_back(self) -> None:
        make_source("sofascore")
        first, again = (
            jobs.start_urls(urls=urls, requested_by="Ann", now=timezone.now())
            for urls in ([url_of(IDS[0]), url_of(IDS[1])], [url_of(IDS[1]), url_of(IDS[0])])
        )
        assert (again.job, again.is_new) == (first.job, False)

    def test_each_bad_one_is_named_and_nothing_is_written(self) -> None:
        make_source("sofascore")
        make_source("crex", is_enabled=False)
        bad = {
            "https://evil.example/en/football/match/a-b/XY#id:1": "at none of our sources",
            "http://sofascore.example/en/football/match/a-b/XY#id:1": "at none of our sources",
            "https://sofascore.example:81/en/football/match/a-b/XY#id:1": "at none of our sources",
            "https://user@sofascore.example/en/football/match/a-b/XY#id:1": "at none of our sources",
            "https://sofascore.example/en/football/match/a-b/XY": "not the address of a match",
            "https://sofascore.example/en/tennis/match/a-b/XY#id:1": "not the address of a match",
            "https://sofascore.example/": "not the address of a match",
            "https://crex.example/cricket-live-score/a-match-updates-13KM": "Crex is switched off",
            "http://[": "at none of our sources",
            "https://sofascore.example/\x00": "printable",
            "https://sofascore.example/en/../football/match/a-b/XY#id:1": "'.' or '..'",
            "https://sofascore.example/en/football/match/a-b/%2E%2e/XY#id:1": "'.' or '..'",
            "https://sofascore.example/en\\..\\football/match/a-b/XY#id:1": "'.' or '..'",
            f"https://sofascore.example/{'x' * 600}": "from 1 to 500 characters",
        }
        with pytest.raises(jobs.Refused) as refused:
            jobs.start_urls(urls=[url_of(IDS[0]), *bad], requested_by="Ann", now=timezone.now())
        assert refused.value.field == "urls"
        assert len(refused.value.reasons) == len(bad)
        for said, (url, why) in zip(refused.value.reasons, bad.items(), strict=True):
            assert said.startswith(url[:100])
            assert why in said
        assert not ScrapeJob.objects.exists()
        assert not MatchRef.objects.exists()

    @pytest.mark.parametrize("number", [0, 501])
    def test_are_limited_in_number(self, number: int) -> None:
        with pytest.raises(jobs.Refused, match="from 1 to 500"):
            jobs.start_urls(urls=["https://x.example"] * number, requested_by="Ann", now=timezone.now())


class TestOutcome:
    def test_survives_the_retention_of_its_task(self) -> None:
        job, _ = run_round(RoundReader(outcomes={IDS[0]: LayoutChanged("changed")}))
        make_due()
        run_due(engine_of(RoundReader(outcomes={IDS[0]: LayoutChanged("changed")})))
        close_finished_jobs(timezone.now())
        before = counts(job)
        ScrapeTask.objects.filter(job_items__job=job).delete()
        assert before == counts(job) == {"done": 9, "dead": 1}
        assert set(job.items.values_list("outcome", flat=True)) == {"SUCCESS", "DEAD"}

    def test_of_a_success_is_kept_without_the_scheduler(self) -> None:
        job, _ = run_round()
        ScrapeTask.objects.filter(job_items__job=job).update(finished_at=timezone.now() - timedelta(hours=2))
        prune_often(timezone.now())
        assert counts(job) == {"done": 10}
        assert view_of(job).state is JobState.COMPLETE

    def test_follows_a_retry(self) -> None:
        job, reader = start(), RoundReader(outcomes={IDS[0]: LayoutChanged("changed")})
        for _ in range(3):
            run_due(engine_of(reader))
            make_due()
        close_finished_jobs(timezone.now())
        assert view_of(job).state is JobState.INCOMPLETE
        dead = ScrapeTask.objects.get(state=TaskState.DEAD)
        journal.retry(task_ids=[dead.pk], actor="Ann", now=timezone.now())  # on the task's own page
        close_finished_jobs(timezone.now())
        assert (view_of(job).state, view_of(job).job.finished_at) == (JobState.RUNNING, None)
        run_due(engine_of(RoundReader()))
        close_finished_jobs(timezone.now())
        assert view_of(job).state is JobState.COMPLETE
        assert view_of(job).job.finished_at is not None


class TestViews:
    def test_counts_of_many_jobs_are_those_of_each(self, django_assert_num_queries: Any) -> None:
        reader = RoundReader(outcomes={IDS[0]: Transient("timeout"), IDS[1]: LayoutChanged("changed")})
        first = start()
        run_due(engine_of(reader))
        run_due(engine_of(reader), limit=5)
        second = start(asked={**ASKED, "round": 13})
        first.refresh_from_db()
        with django_assert_num_queries(2):
            many = jobs.views([first, second])
        assert [one.counts for one in many] == [view_of(first).counts, view_of(second).counts]
        assert [one.state for one in many] == [view_of(first).state, view_of(second).state]


@pytest.mark.requirement("ZT-10")
def test_every_line_of_a_task_names_job_match_and_attempt(caplog: pytest.LogCaptureFixture) -> None:
    from structlog.contextvars import get_contextvars

    seen: list[tuple[str, dict[str, Any]]] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append((record.getMessage(), get_contextvars()))

    listener = Listener()
    logging.getLogger("scraping").addHandler(listener)
    try:
        with caplog.at_level(logging.DEBUG, logger="scraping"):
            job = run_round_once({IDS[1]: Transient("timeout")})
    finally:
        logging.getLogger("scraping").removeHandler(listener)
    about = {message: names for message, names in seen if "read as a whole" in message or "failed" in message}
    assert len(about) == 10
    for names in about.values():
        assert names["job_id"] == job.pk
        assert names["attempt"] == 1
        assert names["task_id"]
    assert {names["match_id"] for names in about.values()} == {f"sofascore_{one}" for one in IDS}
    assert "match_id" not in get_contextvars()


def test_errors_of_a_job_are_rows_like_all_others() -> None:
    run_round_once({IDS[0]: LayoutChanged("changed")})
    error = ScrapeError.objects.get()
    assert (error.operation, error.error_code) == ("full", "layout")
