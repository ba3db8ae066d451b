"""The end of a match: the final reads, the completeness check and the match log."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitoring.models import Alert
from scraping.configuration import policies
from scraping.errors import Gone, Transient
from scraping.matches import endings, ingest, late_updates, lineups, match_logs
from scraping.matches.endings import settle_ended_matches
from scraping.models import (
    Match,
    MatchArchive,
    MatchLifecycle,
    MatchRef,
    Scraper,
    ScrapeTask,
    Snapshot,
    TaskState,
)
from scraping.payloads import Lineups, Phase, Resource, Status, Toss
from scraping.policies.interval import COMPLETED_SECONDS, Pace
from scraping.policies.milestones import is_milestone
from scraping.scheduler.retention import rules
from scraping.scheduler.upkeep import write_match_logs
from scraping.signals import match_incomplete, match_settled
from scraping.sources import ADAPTERS
from scraping.worker.scrape import scrape
from tests.factories import NOW, cricket_state, make_match, make_ref, make_source
from tests.scraping.attempts import Clock, attempt, stopped_clock
from tests.scraping.builders import POLICIES, balls, chasing, engine_with, later, payload_of, read
from tests.scraping.rounds import finished, goals, whole
from tests.scraping.scripted_lineups import ScriptedAdapter, engine_parsing, figures_of, rating
from victoryline.lib.times import as_utc_iso

pytestmark = [pytest.mark.both, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def scripted_adapter(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(ADAPTERS, "sofascore", ScriptedAdapter())
    monkeypatch.setattr(policies, "current", lambda: POLICIES)
    settings.STORAGE_DIR = tmp_path


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as stopped:
        yield stopped


def live_football(clock: Clock) -> MatchRef:
    ref = make_ref(make_source_match(), source="sofascore", source_event_id="77")
    state = finished(status=Status.LIVE, phase=Phase.PLAY, result="", clock="90")
    read(ref, whole("77", state).model_copy(update={"captured_at": clock.now}))
    return MatchRef.objects.select_related("match", "source").get(pk=ref.pk)


def make_source_match() -> Match:
    return Match.objects.create(sport="football", title="", lifecycle=MatchLifecycle.DISCOVERED, created_at=NOW)


def end(ref: MatchRef, clock: Clock, **fields: Any) -> None:
    """Polls the match with its final state."""
    clock.forward(5)
    read(ref, whole("77", finished(**fields)).model_copy(update={"captured_at": clock.now}))


def do_all(ref: MatchRef, *, figures: bool = True, outcome: Any = None) -> list[str]:
    """Executes the open tasks as a worker does; returns their resources."""
    open_tasks = ScrapeTask.objects.filter(state=TaskState.PENDING).order_by("pk")
    done = list(open_tasks.values_list("pk", "resource"))
    reported = figures_of(ref, rating()) if figures else figures_of(ref)
    for task_id, _ in done:
        scrape([task_id], engine_parsing(reported, outcome or whole("77")))
    return sorted(resource for _, resource in done)


def _refusing(check: Any, match_id: int) -> Any:
    def check_or_fail(match: Match) -> Any:
        if match.pk == match_id:
            raise TypeError("what is stored of it makes no sense")
        return check(match)

    return check_or_fail


def the_match() -> Match:
    return Match.objects.get()


@pytest.mark.requirement("EC-3")
class TestLastReading:
    def test_reads_everything_once_more_and_checks_it(self, clock: Clock) -> None:
        ref = live_football(clock)
        assert settle_ended_matches(clock.now) == 0, "the match has not ended"
        end(ref, clock)
        settled: list[int] = []
        match_settled.connect(lambda match_id, **_: settled.append(match_id), weak=False, dispatch_uid="t")
        assert settle_ended_matches(clock.now) == 0
        assert do_all(ref) == ["figures", "full"]
        assert settle_ended_matches(clock.now) == 1
        match = the_match()
        assert match.final_sync_at == clock.now
        assert {name: match.final_checks[name] for name in ("result", "score", "figures", "events")} == dict.fromkeys(
            ("result", "score", "figures", "events"), True
        )
        assert (match.final_checks["missing"], settled) == ([], [match.pk])
        assert settle_ended_matches(later(9000)) == 0, "once"
        assert not ScrapeTask.objects.filter(state=TaskState.PENDING).exists()
        match_settled.disconnect(dispatch_uid="t")

    def test_a_match_that_cannot_be_checked_does_not_stop_the_others(self, clock: Clock, caplog: Any) -> None:
        ref = live_football(clock)
        end(ref, clock)
        match = the_match()
        poison = make_match(lifecycle=MatchLifecycle.COMPLETED, completed_at=later(900))
        Match.objects.filter(pk=poison.pk).update(final_checks={"ended_at": as_utc_iso(later(900))})
        settle_ended_matches(clock.now)
        assert ScrapeTask.objects.filter(ref__match=match, state=TaskState.PENDING).count() == 2
        assert "could not be checked" in caplog.text

    def test_a_gap_at_a_source_that_removed_the_match_does_not_count(self, clock: Clock) -> None:
        ref = live_football(clock)
        make_ref(ref.match, source="crex", events_through=3, events_seen=9, gone_at=clock.now)
        end(ref, clock)
        assert endings.check(ref.match)["events"]
        MatchRef.objects.filter(source__key="crex").update(gone_at=None)
        assert not endings.check(ref.match)["events"]

    def test_the_match_is_completed_and_its_scraper_retired(self, clock: Clock) -> None:
        ref = live_football(clock)
        assert Scraper.objects.filter(stopped_at=None).count() == 1
        end(ref, clock)
        scraper = Scraper.objects.get()
        assert (scraper.stopped_at, scraper.stop_reason) == (clock.now, "the match is completed")
        match = the_match()
        assert (match.status, match.lifecycle) == (Status.COMPLETED, MatchLifecycle.COMPLETED)
        ref.refresh_from_db()
        assert ref.next_poll_at == clock.now + timedelta(seconds=COMPLETED_SECONDS), "corrections are still read"

    def test_a_match_that_a_job_has_read_as_a_whole_is_not_read_again(self, clock: Clock) -> None:
        ref = live_football(clock)
        clock.forward(5)
        task = attempt(ref, clock, whole("77"), resource=Resource.FULL)
        assert task.state == TaskState.SUCCESS
        settle_ended_matches(clock.now)
        assert do_all(ref) == ["figures"]

    def test_a_match_that_was_called_off_needs_no_result(self, clock: Clock) -> None:
        ref = live_football(clock)
        end(ref, clock, status=Status.ABANDONED, result="")
        settle_ended_matches(clock.now)
        do_all(ref, outcome=whole("77", finished(status=Status.ABANDONED, result="")))
        settle_ended_matches(clock.now)
        assert the_match().final_sync_at == clock.now

    def test_a_reopened_match_is_checked_again(self, clock: Clock) -> None:
        ref = live_football(clock)
        end(ref, clock)
        settle_ended_matches(clock.now)
        do_all(ref)
        settle_ended_matches(clock.now)
        first = the_match().final_sync_at
        extra = finished(status=Status.LIVE, phase=Phase.EXTRA_TIME, result="")
        for _ in range(3):
            clock.forward(60)
            read(ref, whole("77", extra).model_copy(update={"captured_at": clock.now}))
        assert the_match().lifecycle == MatchLifecycle.ACTIVE
        clock.forward(600)
        end(ref, clock)
        settle_ended_matches(clock.now)
        assert do_all(ref) == ["figures", "full"]
        assert settle_ended_matches(clock.now) == 1
        assert (the_match().final_sync_at or NOW) > (first or NOW)


@pytest.mark.requirement("EC-3")
class TestMissingParts:
    def test_are_read_again_a_few_times_and_then_raise_an_alert(
        self, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        ref = live_football(clock)
        reported: list[Any] = []
        match_incomplete.connect(lambda missing, **_: reported.append(missing), weak=False, dispatch_uid="t")
        end(ref, clock)
        waits = []
        for _ in range(4):
            settle_ended_matches(clock.now)
            assert do_all(ref, figures=False) == ["figures", "full"]
            settle_ended_matches(clock.now)
            assert the_match().final_checks["missing"] == ["figures"]
            again_at = the_match().final_checks["again_at"]
            if again_at:
                waits.append(round((datetime.fromisoformat(again_at) - clock.now).total_seconds() / 60))
                assert settle_ended_matches(clock.now + timedelta(minutes=waits[-1] - 1)) == 0
                clock.now = datetime.fromisoformat(again_at)
        assert (waits, reported) == ([5, 15, 60], [["figures"]])
        alert = Alert.objects.get(key=f"incomplete:{the_match().pk}")
        assert (alert.closed_at, "without figures" in alert.summary) == (None, True)
        assert the_match().final_checks["given_up"] is True
        assert settle_ended_matches(clock.now + timedelta(hours=3)) == 0
        assert "after 4 readings of all of it there is still no figures" in caplog.text
        lineups.store_figures(figures_of(ref, rating()), ref_id=ref.pk)
        assert write_match_logs(clock.now) == 1
        alert.refresh_from_db()
        assert alert.closed_at is not None, "a later reading had it"
        match_incomplete.disconnect(dispatch_uid="t")

    @pytest.mark.parametrize(
        ("spoil", "missing"),
        [
            pytest.param(lambda match: match.payload.update(result=""), ["result"], id="the result"),
            pytest.param(
                lambda match: match.payload["score"]["team_b"].update(goals=None), ["score"], id="the final score"
            ),
            pytest.param(lambda match: match.figures.all().delete(), ["figures"], id="figures"),
            pytest.param(lambda match: match.events.all().delete(), ["events"], id="a goal's event"),
            pytest.param(
                lambda match: match.refs.update(events_seen=9, events_through=3), ["events"], id="a hole in the events"
            ),
        ],
    )
    def test_are_found(self, clock: Clock, spoil: Any, missing: list[str]) -> None:
        ref = live_football(clock)
        end(ref, clock)
        lineups.store_figures(figures_of(ref, rating()), ref_id=ref.pk)
        match = the_match()
        assert endings.missing_parts(endings.check(match)) == []
        spoil(match)
        assert endings.missing_parts(endings.check(match)) == missing

    def test_cricket_requires_innings(self, clock: Clock) -> None:
        ref = make_ref(now=NOW)
        read(ref, payload_of(ref, chasing(188, status=Status.COMPLETED, result="won"), events=balls(1, 2)))
        assert "score" not in endings.missing_parts(endings.check(the_match()))

    def test_a_walkover_has_no_score(self, clock: Clock) -> None:
        make_ref(make_match(state=cricket_state(status=Status.COMPLETED, innings=(), result="India won by walkover")))
        assert endings.missing_parts(endings.check(the_match())) == []

    @pytest.mark.requirement("SO-12")
    def test_a_missing_toss_is_looked_for_with_the_line_ups(self, clock: Clock) -> None:
        ref = make_ref(now=NOW)
        read(ref, payload_of(ref, chasing(188, status=Status.COMPLETED, result="won"), events=balls(1, 2)))
        settle_ended_matches(clock.now)
        assert "lineups" in set(ScrapeTask.objects.values_list("resource", flat=True))
        found = Lineups(
            source="crex",
            captured_at=NOW,
            source_event_id=ref.source_event_id,
            toss=Toss(winner="India", decision="bat"),
        )
        late_updates.add_toss(
            found, ref_id=ref.pk, pace=Pace(), attempt=ingest.Attempt("w-1", NOW, had_failures=False, now=NOW)
        )
        assert the_match().payload["toss"] == {"winner": "India", "decision": "bat"}
        assert the_match().payload["result"] == "won"

    def test_a_later_correction_settles_the_match(self, clock: Clock) -> None:
        ref = live_football(clock)
        end(ref, clock)
        settle_ended_matches(clock.now)
        do_all(ref, figures=False)
        settle_ended_matches(clock.now)
        lineups.store_figures(figures_of(ref, rating()), ref_id=ref.pk)
        assert endings.check_again(the_match().pk, later(900))
        assert (the_match().final_sync_at, the_match().final_checks["missing"]) == (later(900), [])

    def test_a_failed_reading_does_not_stop_the_check(self, clock: Clock) -> None:
        ref = live_football(clock)
        end(ref, clock)
        settle_ended_matches(clock.now)
        while ScrapeTask.objects.filter(state=TaskState.PENDING).exists():
            clock.now = max(ScrapeTask.objects.filter(state=TaskState.PENDING).values_list("run_at", flat=True))
            do_all(ref, outcome=Transient("slow"))
        assert settle_ended_matches(clock.now) == 1


@pytest.mark.requirement("EC-3")
class TestRemovedMatch:
    def test_ends_if_its_only_source_removed_it(self, clock: Clock) -> None:
        ref = live_football(clock)
        for _ in range(2):
            attempt(ref, clock, Gone("410", http_status=410))
        match = the_match()
        assert (match.status, match.lifecycle) == (Status.COMPLETED, MatchLifecycle.COMPLETED)
        assert settle_ended_matches(clock.now) == 1, "there is no source to read it from"
        assert the_match().final_checks["given_up"] is True
        assert not ScrapeTask.objects.filter(state=TaskState.PENDING).exists()
        assert Scraper.objects.filter(stopped_at=None).count() == 0

    def test_continues_where_another_source_has_it(self, clock: Clock) -> None:
        ref = live_football(clock)
        make_ref(the_match(), source=make_source("other", sport="football"), captured_at=clock.now)
        for _ in range(2):
            attempt(ref, clock, Gone("404", http_status=404))
        assert (the_match().status, the_match().lifecycle) == (Status.LIVE, MatchLifecycle.ACTIVE)
        ref.refresh_from_db()
        assert ref.gone_at is not None

    def test_removed_line_ups_end_no_match(self, clock: Clock) -> None:
        ref = live_football(clock)
        task_id = ScrapeTask.objects.create(
            source=ref.source, ref=ref, resource=Resource.LINEUPS, run_at=clock.now, created_at=clock.now
        ).pk
        for _ in range(2):
            clock.now = max(clock.now, ScrapeTask.objects.get(pk=task_id).run_at)
            scrape([task_id], engine_parsing(Gone("404", http_status=404)))
        assert ScrapeTask.objects.get(pk=task_id).state == TaskState.SKIPPED
        assert the_match().status == Status.LIVE


def settled_match(clock: Clock) -> MatchRef:
    ref = live_football(clock)
    end(ref, clock)
    settle_ended_matches(clock.now)
    do_all(ref)
    settle_ended_matches(clock.now)
    return ref


def record(tmp_path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress((tmp_path / "match_logs" / MatchArchive.objects.get().file).read_bytes()))


@pytest.mark.requirement("EC-3")
class TestMatchLog:
    def test_has_everything_about_how_the_match_was_read(self, clock: Clock, tmp_path: Path) -> None:
        settled_match(clock)
        assert write_match_logs(clock.now) == 1
        row, found = MatchArchive.objects.get(), record(tmp_path)
        [file] = (tmp_path / "match_logs" / the_match().key).iterdir()
        content = file.read_bytes()
        assert (row.sha256, row.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))
        assert found["match"]["payload"]["result"] == "Draw 1-1"
        assert [ref["source_event_id"] for ref in found["refs"]] == ["77"]
        assert [one["sequence"] for one in found["snapshots"]] == [1, 2]
        assert "captured_at" in found["snapshots"][0]
        assert {row["match_id"] for name in ("snapshots", "events", "refs") for row in found[name]} == {the_match().key}
        assert len(found["events"]) == len(goals("77"))
        assert {task["resource"] for task in found["tasks"]} == {"scorecard", "full", "figures"}
        assert found["scrapers"][0]["total_updates"] == 1
        assert (len(found["figures"]), found["cut_off"]) == (1, [])
        assert match_logs.content_of(row) == content

    def test_a_full_disk_costs_no_readings(self, clock: Clock, settings: Any, tmp_path: Path) -> None:
        ref = settled_match(clock)
        write_match_logs(clock.now)
        clock.now = later(600)
        end(ref, clock, result="Draw 1-1 (corrected)")
        (tmp_path / "file").write_text("in the way")
        settings.STORAGE_DIR = tmp_path / "file"
        asked = []
        for _ in range(5):
            clock.forward(60)
            assert write_match_logs(clock.now) == 0
            asked += do_all(ref)
        assert asked == ["figures"]

    def test_one_that_fails_does_not_stop_the_others(
        self, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: Any
    ) -> None:
        settled_match(clock)
        poison = make_match(lifecycle=MatchLifecycle.COMPLETED, completed_at=later(-9000))
        Match.objects.filter(pk=poison.pk).update(final_checks={"checked_at": "-"}, payload={"innings": 3})
        monkeypatch.setattr(endings, "check", _refusing(endings.check, poison.pk))
        assert write_match_logs(clock.now) == 1
        assert "could not be written" in caplog.text

    def test_is_written_once_and_again_after_a_correction(self, clock: Clock, tmp_path: Path) -> None:
        ref = settled_match(clock)
        assert (write_match_logs(clock.now), write_match_logs(later(300))) == (1, 0)
        first = MatchArchive.objects.get().sha256
        clock.now = later(600)
        end(ref, clock, result="Draw 1-1 (corrected)")
        assert write_match_logs(clock.now + timedelta(seconds=1)) == 1
        assert record(tmp_path)["match"]["payload"]["result"] == "Draw 1-1 (corrected)"
        second = MatchArchive.objects.get().sha256
        assert second != first
        assert list(ScrapeTask.objects.filter(state=TaskState.PENDING).values_list("resource", flat=True)) == [
            "figures"
        ]
        clock.forward(60)
        better = figures_of(ref, rating(values={"rating": 9.9}), at=clock.now)
        scrape([ScrapeTask.objects.get(state=TaskState.PENDING).pk], engine_parsing(better))
        assert (write_match_logs(later(900)), write_match_logs(later(960))) == (1, 0)
        assert record(tmp_path)["figures"][0]["values"] == {"rating": 9.9}

    def test_keeps_the_earlier_file_with_rows_that_retention_has_deleted_since(
        self, clock: Clock, tmp_path: Path
    ) -> None:
        ref = settled_match(clock)
        write_match_logs(clock.now)
        first = MatchArchive.objects.get().file
        Snapshot.objects.filter(sequence=1).delete()
        clock.now = later(600)
        end(ref, clock, result="Draw 1-1 (corrected)")
        write_match_logs(clock.now + timedelta(seconds=1))
        assert [one["sequence"] for one in record(tmp_path)["snapshots"]] == [2, 3]
        earlier = json.loads(gzip.decompress((tmp_path / "match_logs" / first).read_bytes()))
        assert [one["sequence"] for one in earlier["snapshots"]] == [1, 2]

    def test_holds_no_secrets(self, clock: Clock, tmp_path: Path) -> None:
        ref = settled_match(clock)
        MatchRef.objects.filter(pk=ref.pk).update(url="https://user:hunter2@x.example/m?token=abc12345")
        ScrapeTask.objects.update(reason="Authorization: Bearer abcdefgh12345678")
        write_match_logs(clock.now)
        text = json.dumps(record(tmp_path))
        assert "hunter2" not in text
        assert "abc12345" not in text
        assert "abcdefgh12345678" not in text

    def test_is_limited_and_names_what_was_cut(
        self, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settled_match(clock)
        monkeypatch.setattr(match_logs, "MAX_BYTES", 3000)
        write_match_logs(clock.now)
        assert "snapshots" in record(tmp_path)["cut_off"]

    def test_a_full_disk_costs_only_the_log(
        self, clock: Clock, settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        settled_match(clock)
        (tmp_path / "file").write_text("not a folder")
        settings.STORAGE_DIR = tmp_path / "file"
        with caplog.at_level(logging.WARNING):
            assert write_match_logs(clock.now) == 0
        assert "could not be written" in caplog.text
        assert MatchArchive.objects.count() == 0

    def test_is_deleted_with_its_file_after_its_retention(
        self, clock: Clock, tmp_path: Path, django_capture_on_commit_callbacks: Any
    ) -> None:
        settled_match(clock)
        write_match_logs(clock.now)
        rule = next(rule for rule in rules() if rule.table == "match-logs")
        assert rule.outstanding(clock.now + timedelta(days=89)) == 0
        late = clock.now + timedelta(days=91)
        with django_capture_on_commit_callbacks(execute=True):
            assert (rule.outstanding(late), rule.step(late)) == (1, 1)
        assert (MatchArchive.objects.count(), list((tmp_path / "match_logs").iterdir())) == (0, [])

    def test_a_file_that_was_changed_is_not_shown(self, clock: Clock, tmp_path: Path) -> None:
        settled_match(clock)
        write_match_logs(clock.now)
        row = MatchArchive.objects.get()
        (tmp_path / "match_logs" / row.file).write_bytes(b"something else")
        assert match_logs.content_of(row) is None


@pytest.mark.requirement("FR-024")
class TestMilestones:
    BEFORE = cricket_state(current_innings=1).model_dump(mode="json")

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            pytest.param({"current_innings": 2}, True, id="the next innings"),
            pytest.param({"phase": Phase.INNINGS_BREAK}, True, id="a break between innings"),
            pytest.param({"phase": Phase.STUMPS}, True, id="the end of a day"),
            pytest.param({"phase": Phase.DRINKS}, False, id="drinks"),
            pytest.param({}, False, id="the next ball"),
            pytest.param({"status": Status.COMPLETED}, False, id="the end, which has its own final reads"),
        ],
    )
    def test_are_detected(self, fields: dict[str, Any], expected: bool) -> None:
        after = cricket_state(**{"current_innings": 1, **fields}).model_dump(mode="json")
        assert is_milestone(self.BEFORE, after) is expected

    def test_a_match_that_was_never_read_has_none(self) -> None:
        assert not is_milestone({}, self.BEFORE)

    def test_a_partial_state_opens_no_task(self, clock: Clock) -> None:
        ref = make_ref(now=NOW, payload={})
        attempt(ref, clock, payload_of(ref, cricket_state(current_innings=1)))
        clock.forward(5)
        half = payload_of(ref, cricket_state(current_innings=2), at=clock.now, is_partial_state=True)
        assert attempt(ref, clock, half).state == TaskState.SUCCESS
        assert not ScrapeTask.objects.filter(resource=Resource.FULL).exists()

    def test_open_a_task_for_the_whole_match(self, clock: Clock) -> None:
        ref = make_ref(now=NOW, payload={})
        attempt(ref, clock, payload_of(ref, cricket_state(current_innings=1), events=balls(1)))
        clock.forward(5)
        attempt(ref, clock, payload_of(ref, cricket_state(current_innings=2), at=clock.now, events=balls(1)))
        task = ScrapeTask.objects.get(resource=Resource.FULL)
        assert (task.state, task.job_id) == (TaskState.PENDING, None)
        pages = payload_of(ref, cricket_state(current_innings=2), at=clock.now, events=balls(1, 2, 3))
        scrape([task.pk], engine_with(pages))
        assert (ScrapeTask.objects.get(pk=task.pk).state, ref.match.events.count()) == (TaskState.SUCCESS, 3)
        clock.forward(5)
        attempt(ref, clock, payload_of(ref, cricket_state(current_innings=2), at=clock.now, events=balls(1, 2, 3)))
        assert ScrapeTask.objects.filter(resource=Resource.FULL).count() == 1


def test_ingest_reports_a_milestone(clock: Clock) -> None:
    ref = make_ref(now=NOW)
    first = read(ref, payload_of(ref, chasing(95)))
    second = read(ref, payload_of(ref, chasing(95, phase=Phase.TEA), at=later(5)))
    assert (first.is_milestone, second.is_milestone) == (False, True)
