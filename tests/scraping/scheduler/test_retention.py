"""The retention rules of scraping, each called with the time."""

from __future__ import annotations

import os
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import close_old_connections, connection, transaction
from django.test.utils import CaptureQueriesContext

from scraping.journal import evidence
from scraping.models import (
    Breaker,
    ErrorGroup,
    Evidence,
    JobItem,
    JobKind,
    Match,
    MatchEvent,
    MatchLifecycle,
    MatchRef,
    OutcomeBucket,
    ScrapeError,
    ScrapeJob,
    Scraper,
    ScrapeTask,
    Snapshot,
    TaskState,
    TaskTransition,
    Worker,
)
from scraping.scheduler import retention
from scraping.scheduler.retention import prune_often, prune_seldom
from tests.factories import NOW, make_event, make_match, make_ref, make_scraper, make_snapshot, make_source
from tests.monitoring.rows import make_error, make_task
from tests.patience import stretched
from tests.scraping.builders import later, open_task
from victoryline.lib.retention import Rule
from victoryline.lib.retention import prune as carry_out

pytestmark = [pytest.mark.both, pytest.mark.django_db]
DAY = 86_400


@pytest.fixture(autouse=True)
def media(settings: LazySettings, tmp_path: Path) -> Path:
    settings.STORAGE_DIR = tmp_path / "media"
    return tmp_path / "media"


def ended(state: TaskState, age: timedelta, ref: MatchRef | None = None, **fields: Any) -> ScrapeTask:
    return make_task(ref, now=NOW - age, state=state, finished_at=NOW - age, reason="because", **fields)


def make_evidence(media: Path, *, age: timedelta = timedelta(), size: int = 10, **fields: Any) -> Evidence:
    """A row and its file."""
    number = Evidence.objects.count()
    path = f"error_pages/{number}.html"
    file = media / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * size)
    error = fields.pop("error", None) or make_error(now=NOW - age)
    return Evidence.objects.create(error=error, kind="page", path=path, size_bytes=size, created_at=NOW - age, **fields)


class TestTasks:
    @pytest.mark.parametrize(
        ("state", "kept", "gone"),
        [
            (TaskState.SUCCESS, timedelta(minutes=59), timedelta(minutes=61)),
            (TaskState.SKIPPED, timedelta(days=6), timedelta(days=8)),
            (TaskState.CANCELLED, timedelta(days=6), timedelta(days=8)),
            (TaskState.FAILED, timedelta(days=29), timedelta(days=31)),
            (TaskState.DEAD, timedelta(days=29), timedelta(days=31)),
        ],
    )
    def test_are_deleted_by_their_final_state(self, state: TaskState, kept: timedelta, gone: timedelta) -> None:
        for age in (kept, gone):
            ended(state, age)
        assert prune_often(NOW) == 1
        assert ScrapeTask.objects.get().finished_at == NOW - kept

    def test_are_kept_while_open(self) -> None:
        open_task(make_ref(), at=later(-90 * DAY))
        assert prune_often(NOW) == 0

    def test_delete_their_transitions_and_keep_their_errors(self) -> None:
        task = ended(TaskState.DEAD, timedelta(days=31))
        TaskTransition.objects.create(task=task, from_state="EXECUTING", to_state="DEAD", at=NOW, actor="w")
        make_error(now=NOW, task=task)
        assert prune_often(NOW) == 1
        assert (TaskTransition.objects.count(), ScrapeError.objects.get().task_id) == (0, None)

    def test_leave_their_outcome_to_the_job(self) -> None:
        ref = make_ref()
        job = ScrapeJob.objects.create(kind=JobKind.ROUND, name="round 1", created_at=NOW)
        task = ended(TaskState.SUCCESS, timedelta(hours=2), ref, job=job)
        JobItem.objects.create(job=job, ref=ref, task=task)
        prune_often(NOW)
        item = JobItem.objects.get()
        assert (item.task_id, item.outcome) == (None, "SUCCESS")

    def test_follow_the_configuration(self, settings: LazySettings) -> None:
        settings.CONFIG = settings.CONFIG.model_copy(update={"keep_errors_days": 90})
        ended(TaskState.DEAD, timedelta(days=89))
        assert prune_often(NOW) == 0


class TestHistory:
    @pytest.mark.requirement("SO-3")
    def test_keeps_the_newest_snapshot_of_a_match(self) -> None:
        match = make_match(sequence=3)
        for sequence in (1, 2, 3):
            make_snapshot(match, sequence=sequence, now=later(-8 * DAY))
        assert prune_often(NOW) == 2
        assert Snapshot.objects.get().sequence == 3

    @pytest.mark.requirement("NFR-017")
    def test_keeps_errors_for_a_month(self) -> None:
        for age in (29, 31):
            make_error(now=NOW, age=age * DAY)
        assert prune_often(NOW) == 1
        assert ScrapeError.objects.get().timestamp == later(-29 * DAY)

    def test_keeps_a_group_a_month_longer_than_its_errors(self) -> None:
        source = make_source()
        for name, age, has_error in (("new", 1, False), ("in use", 40, True), ("old", 40, False)):
            seen = later(-age * DAY)
            group = ErrorGroup.objects.create(
                fingerprint=name, source=source, error_class="drift", error_code="layout", first_seen_at=seen,
                last_seen_at=seen,
            )  # fmt: skip
            if has_error:
                make_error(now=NOW, group=group)
        assert prune_seldom(NOW) == 1
        assert set(ErrorGroup.objects.values_list("fingerprint", flat=True)) == {"new", "in use"}

    def test_deletes_scrapers_workers_and_outcomes_after_days(self) -> None:
        ref, source = make_ref(), make_source()
        make_scraper(ref)
        for age in (6, 8):
            make_scraper(ref, stopped_at=later(-age * DAY))
        for name, hours in (("new", 23), ("old", 25)):
            at = later(-hours * 3600)
            Worker.objects.create(worker_id=name, host="h", pid=1, started_at=at, heartbeat_at=at)
            OutcomeBucket.objects.create(source=source, starts_at=at)
        assert (prune_often(NOW), prune_seldom(NOW)) == (1, 2)
        assert (Scraper.objects.count(), Worker.objects.get().worker_id) == (2, "new")

    def test_deletes_a_breaker_without_match_and_source(self) -> None:
        ref = make_ref()
        Breaker.objects.create(name="mine", ref=ref, last_state_change=NOW)
        Breaker.objects.create(name="stray", last_state_change=NOW)
        assert prune_seldom(NOW) == 1
        assert Breaker.objects.get().name == "mine"


class TestJobs:
    @pytest.mark.parametrize(
        ("what", "fields"),
        [
            ("ended lately", {"finished_at": later(-29 * DAY)}),
            ("not ended", {"finished_at": None}),
            ("the watch over a source", {"kind": JobKind.WATCH, "finished_at": later(-31 * DAY)}),
        ],
    )
    def test_stay(self, what: str, fields: dict[str, Any]) -> None:
        values: dict[str, Any] = {"kind": JobKind.ROUND, "name": what, "created_at": later(-60 * DAY)}
        ScrapeJob.objects.create(**values | fields)
        assert prune_seldom(NOW) == 0

    def test_are_kept_while_a_task_is_open(self) -> None:
        old = ScrapeJob.objects.create(kind=JobKind.ROUND, name="r", created_at=NOW, finished_at=later(-31 * DAY))
        make_task(make_ref(), job=old)
        assert prune_seldom(NOW) == 0

    def test_are_deleted_with_their_items(self) -> None:
        old = ScrapeJob.objects.create(kind=JobKind.ROUND, name="r", created_at=NOW, finished_at=later(-31 * DAY))
        JobItem.objects.create(job=old, ref=make_ref())
        assert prune_seldom(NOW) == 1
        assert JobItem.objects.count() == 0


class TestMatches:
    def old(self, days: float = 366, **fields: Any) -> Match:
        values = {"lifecycle": MatchLifecycle.ARCHIVED, "status": "completed", "completed_at": later(-days * DAY)}
        return make_match(**values | fields)

    def test_are_deleted_with_all_their_rows(self, media: Path) -> None:
        match = self.old()
        ref = make_ref(match)
        make_snapshot(match)
        make_event(match)
        make_scraper(ref, stopped_at=NOW)
        make_task(ref, state=TaskState.DEAD, now=NOW)
        make_evidence(media, error=make_error(match, now=NOW))
        Breaker.objects.create(name="b", ref=ref, last_state_change=NOW)
        assert prune_seldom(NOW) == 1
        for table in (Match, MatchRef, MatchEvent, Snapshot, Scraper, ScrapeTask, ScrapeError, Evidence, Breaker):
            assert not table._default_manager.exists(), table

    @pytest.mark.parametrize("fields", [{"days": 364}, {"lifecycle": MatchLifecycle.COMPLETED}], ids=str)
    def test_others_stay(self, fields: dict[str, Any]) -> None:
        self.old(**fields)
        assert prune_seldom(NOW) == 0


class TestEvidence:
    @pytest.mark.django_db(transaction=True)
    def test_is_deleted_with_its_files_when_old(self, media: Path) -> None:
        kept, gone = make_evidence(media, age=timedelta(days=6)), make_evidence(media, age=timedelta(days=8))
        assert prune_often(NOW) == 1
        assert [(media / one.path).exists() for one in (kept, gone)] == [True, False]
        assert ScrapeError.objects.count() == 2, "the errors themselves stay"

    @pytest.mark.django_db(transaction=True)
    def test_is_deleted_oldest_first_above_the_total(self, media: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(evidence, "TOTAL_MB", 1)
        ages = [timedelta(hours=hours) for hours in (3, 1, 2)]
        rows = [make_evidence(media, age=age, size=400_000) for age in ages]
        assert prune_often(NOW) == 1
        assert [(media / one.path).exists() for one in rows] == [False, True, True]
        assert prune_often(NOW) == 0

    @pytest.mark.django_db(transaction=True)
    def test_is_deleted_with_its_error(self, media: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(retention, "EVIDENCE_DAYS", 60)
        row = make_evidence(media, age=timedelta(days=31))
        assert prune_often(NOW) == 1
        assert not Evidence.objects.exists()
        assert not (media / row.path).exists()

    def test_deletes_a_file_without_a_row_after_an_hour(self, media: Path) -> None:
        mine = make_evidence(media)
        files = {}
        for name, age in (
            ("young.txt", 50 * 60),
            ("old.txt", 70 * 60),
            ("old.draft", 70 * 60),
            (Path(mine.path).name, 0),
        ):
            files[name] = media / "error_pages" / name
            files[name].write_text("x")
            os.utime(files[name], (NOW.timestamp() - age,) * 2)
        os.utime(media / mine.path, (NOW.timestamp() - DAY,) * 2)
        assert prune_seldom(NOW) == 2
        assert {name for name, file in files.items() if file.exists()} == {"young.txt", Path(mine.path).name}

    def test_does_nothing_without_files(self) -> None:
        assert prune_seldom(NOW) == 0


class TestBatches:
    def test_works_off_a_backlog_in_several_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("victoryline.lib.retention.BATCH", 2)
        monkeypatch.setattr("victoryline.lib.retention.MAX_BATCHES", 2)
        for _ in range(9):
            make_error(now=NOW, age=31 * DAY)
        assert [prune_often(NOW) for _ in range(4)] == [4, 4, 1, 0]

    def test_gives_every_rule_one_batch_when_time_is_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("victoryline.lib.retention.BATCH", 2)
        for _ in range(5):
            make_error(now=NOW, age=31 * DAY)
            ended(TaskState.DEAD, timedelta(days=31))
        assert carry_out(retention.often(), NOW, seconds=-1) == 4


@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
def test_keeps_a_dead_task_that_is_being_retried() -> None:
    """Its row is locked by the other transaction: it is skipped without waiting."""
    task = ended(TaskState.DEAD, timedelta(days=31))
    is_locked, is_pruned = threading.Event(), threading.Event()

    def retry() -> None:
        try:
            with transaction.atomic():
                ScrapeTask.objects.filter(pk=task.pk).update(state=TaskState.PENDING, finished_at=None)
                is_locked.set()
                assert is_pruned.wait(stretched(20))
        finally:
            connection.close()

    thread = threading.Thread(target=retry)
    thread.start()
    assert is_locked.wait(stretched(20))
    assert prune_often(NOW) == 0
    is_pruned.set()
    thread.join(stretched(20))
    assert ScrapeTask.objects.get().state == TaskState.PENDING
    close_old_connections()


@pytest.mark.scaled
class TestQueryPlans:
    """Large tables are never scanned completely."""

    @pytest.mark.parametrize(
        ("table", "index"),
        [
            ("tasks-success", "task_ended"),
            ("tasks-dead", "task_ended"),
            ("snapshots", "snapshot_created"),
            ("errors", "error_time"),
            ("outcomes", "outcomes_time"),
        ],
    )
    def test_use_an_index(self, table: str, index: str) -> None:
        ref = make_ref()
        for number in range(300):  # mostly young rows, as in production
            at = later(-90 * DAY if number == 0 else -60)
            ended(TaskState.SUCCESS, NOW - at, ref)
            ended(TaskState.DEAD, NOW - at, ref)
            make_snapshot(ref.match, sequence=number + 2, now=at)
            make_error(now=at)
            OutcomeBucket.objects.create(source=ref.source, starts_at=at + timedelta(milliseconds=number))
        rule = next(rule for rule in retention.often() if rule.table == table)
        assert index in _plan(rule, NOW)


def _plan(rule: Rule, now: datetime) -> str:
    """Returns the plan of the statement that chooses the rows."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute("SET LOCAL enable_seqscan = on")
        with CaptureQueriesContext(connection) as queries:
            rule.step(now)
        chooses = next(query["sql"] for query in queries if query["sql"].startswith("SELECT"))
        cursor.execute(f"EXPLAIN {chooses}")
        return "\n".join(line for (line,) in cursor.fetchall())
