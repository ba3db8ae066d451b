"""The invariants: each is broken by SQL and reported with the row's id; no other rule reports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from monitoring.invariants import RULES, CheckContext, check_rules, consistent_view
from scraping import journal
from scraping.errors import ErrorClass
from scraping.journal import FailureNote
from scraping.matches import lifecycle
from scraping.models import (
    Breaker,
    JobItem,
    JobKind,
    Match,
    MatchRef,
    ScrapeError,
    ScrapeJob,
    ScrapeTask,
    Source,
    Stage,
    TaskState,
)
from tests.factories import NOW, make_ref, make_unread_match
from tests.patience import stretched
from tests.scraping.builders import balls, chasing, claimed, later, open_task, payload_of, read

pytestmark = [pytest.mark.django_db, pytest.mark.both]

ASKED_AT = later(20)
LONG_AGO = NOW - timedelta(hours=2)


@dataclass
class World:
    """One match that was read three times, with a fourth task open and a fifth of another match dead."""

    ref: MatchRef
    dead: int
    open: int

    @property
    def match(self) -> Match:
        return self.ref.match

    def sql(self, statement: str, *values: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)

    def task(self, **fields: Any) -> int:
        values = {"source": self.ref.source, "resource": "scorecard", "created_at": NOW, "run_at": NOW}
        return ScrapeTask.objects.create(**values | fields).pk


@pytest.fixture
def world() -> Iterator[World]:
    with transaction.atomic():
        yield _healthy_world()
        transaction.set_rollback(True)  # before the test case checks the foreign keys


def _healthy_world() -> World:
    ref = make_ref(make_unread_match(start_time=NOW - timedelta(hours=1)), captured_at=None, next_poll_at=NOW)
    for number in (1, 2, 3):
        payload = payload_of(ref, chasing(95 + number), at=later(number), events=balls(*range(1, number + 1)))
        read(ref, payload, at=later(number))
    ref.refresh_from_db()
    return World(ref, dead=_dead_letter(), open=open_task(ref, at=later(5)))


def _dead_letter() -> int:
    """Of a match that is not watched any more."""
    other = make_ref(make_unread_match(), captured_at=None, is_watched=False)
    task = open_task(other)
    note = FailureNote(ErrorClass.BUG, "it broke", Stage.CAPTURED, match_id=other.match_id)
    with transaction.atomic():
        journal.mark_dead(claimed(task), note, reason="bug after 1 attempt: it broke", now=NOW)
        ScrapeError.objects.create(task_id=task, timestamp=NOW, error_class="bug", error_type="parsing")
    return task


def broken(at: datetime = ASKED_AT) -> dict[str, tuple[str, ...]]:
    """Returns the rows that break a rule, by its invariant and name."""
    results = check_rules(CheckContext(at))
    return {f"{result.invariant} {result.name}": result.broken for result in results if not result.is_ok}


@contextmanager
def unconstrained(table: str, *names: str) -> Iterator[None]:
    """The table without these constraints, until the rollback."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for name in names:
                cursor.execute("SELECT count(*) FROM pg_constraint WHERE conname = %s", [name])
                is_constraint = cursor.fetchone() != (0,)
                cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}" if is_constraint else f"DROP INDEX {name}")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
            yield
            return
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute(f"ALTER TABLE {table} RENAME TO aside")
        cursor.execute(f"CREATE TABLE {table} AS SELECT * FROM aside")
        try:
            yield
        finally:
            cursor.execute("PRAGMA ignore_check_constraints = OFF")


def copy_row(table: str, pk: Any, *, key: str = "id", new_key: Any) -> str:
    """Returns a statement that copies a row under another key."""
    with connection.cursor() as cursor:
        description = connection.introspection.get_table_description(cursor, table)
    columns = [f'"{column.name}"' for column in description if column.name != key]
    names = ", ".join(columns)
    return f'INSERT INTO {table} ("{key}", {names}) SELECT {new_key}, {names} FROM {table} WHERE "{key}" = {pk}'


class TestHealthy:
    def test_a_healthy_system_breaks_no_rule(self, world: World) -> None:
        assert broken() == {}

    def test_old_data_breaks_no_rule(self, world: World) -> None:
        """A live match whose task is still open two hours later is reported by other rules."""
        assert set(broken(NOW + timedelta(hours=2))) == {"I2 open tasks"}


Vandal = Callable[[World], Any]


class TestData:
    def test_a_match_without_reference(self, world: World) -> None:
        alone = make_unread_match()
        assert broken() == {
            "I1 matches": (f"match {alone.pk} (Kenya vs Nepal) has no reference at any source: it will not be read",)
        }

    @pytest.mark.parametrize(
        ("rule", "statement"),
        [
            pytest.param("I3 snapshots", "UPDATE matches SET sequence = 7 WHERE id = %s", id="match ahead"),
            pytest.param(
                "I3 snapshots",
                "DELETE FROM live_match_data WHERE sequence = 3 AND match_id = %s",
                id="newest snapshot lost",
            ),
            pytest.param("I3 snapshots", "DELETE FROM live_match_data WHERE match_id = %s", id="all snapshots lost"),
            pytest.param(
                "I3 snapshots",
                "UPDATE live_match_data SET checksum = 'x' WHERE sequence = 3 AND match_id = %s",
                id="another checksum",
            ),
            pytest.param(
                "I3 payloads",
                "UPDATE live_match_data SET payload = '{}' WHERE sequence = 3 AND match_id = %s",
                id="another payload",
            ),
            pytest.param(
                "I3 payloads",
                'UPDATE matches SET payload = \'{"status": "live"}\' WHERE id = %s',
                id="payload changed by hand",
            ),
            pytest.param(
                "I3 event order", "UPDATE scraping_matchevent SET sequence = 4 WHERE match_id = %s", id="events ahead"
            ),
            pytest.param(
                "I3 readings",
                "UPDATE matches SET last_scraper_update = NULL WHERE id = %s",
                id="match without the reading",
            ),
            pytest.param(
                "I3 successes",
                "UPDATE match_external_refs SET captured_at = NULL WHERE match_id = %s",
                id="task done, data missing",
            ),
            pytest.param(
                "I3 origins",
                "UPDATE live_match_data SET task_finished_at = '2026-01-10 12:00:09Z' "
                "WHERE sequence = 2 AND match_id = %s",
                id="task of it lost",
            ),
            pytest.param(
                "I5 events",
                "UPDATE scraping_matchevent SET is_current = (1 = 0) WHERE event_id = '2-1' AND match_id = %s",
                id="no current revision",
            ),
            pytest.param(
                "I5 events",
                "UPDATE scraping_matchevent SET revision = 3 WHERE event_id = '2-2' AND match_id = %s",
                id="revisions left out",
            ),
            pytest.param(
                "I5 history",
                "DELETE FROM live_match_data WHERE sequence = 2 AND match_id = %s",
                id="a snapshot in the middle lost",
            ),
        ],
    )
    def test_a_disagreement_is_reported_with_its_match(self, world: World, rule: str, statement: str) -> None:
        world.sql(statement, world.match.pk)
        found = broken()
        assert set(found) == {rule}
        assert str(world.ref.pk if rule == "I3 successes" else world.match.pk) in found[rule][0]

    def test_two_current_revisions_of_an_event(self, world: World) -> None:
        event = world.match.events.get(event_id="2-1")
        with unconstrained("scraping_matchevent", "event_one_current", "event_once_per_revision"):
            world.sql(copy_row("scraping_matchevent", event.pk, new_key=9999))
            found = broken()
        assert "2 of them current" in found["I5 events"][0]

    def test_an_unconfirmed_reading_is_not_missing_data(self, world: World) -> None:
        journal_only = claimed(world.open, at=later(6))
        with journal.finishing(journal_only, now=later(6)):
            MatchRef.objects.filter(pk=world.ref.pk).update(suspect_checksum="1:abc", next_poll_at=later(30))
        assert broken() == {}
        MatchRef.objects.filter(pk=world.ref.pk).update(suspect_checksum="")
        assert set(broken()) == {"I3 successes"}


class TestJournal:
    def test_an_unclaimed_task(self, world: World) -> None:
        world.sql("UPDATE scrape_tasks SET run_at = %s WHERE id = %s", LONG_AGO, world.open)
        found = broken()
        assert found == {"I2 open tasks": (f"task {world.open} (scorecard) is overdue for 7220 s, never hinted",)}

    @pytest.mark.parametrize(
        "reason",
        [
            lambda world: lifecycle.pause(
                match_id=world.match.pk, until=later(600), reason="rain", actor="ann", now=NOW
            ),
            lambda world: Source.objects.update(is_enabled=False),
            lambda world: _open_breaker(world.ref, until=later(600)),
            lambda world: Breaker.objects.create(
                name="crex", source=world.ref.source, state="OPEN", open_until=later(600), last_state_change=NOW
            ),
            lambda world: Breaker.objects.create(
                name="crex",
                source=world.ref.source,
                forced="OPEN",
                forced_until=later(600),
                forced_reason="works on the line",
                last_state_change=NOW,
            ),
        ],
        ids=["paused", "source switched off", "breaker open", "source's breaker open", "source's breaker forced open"],
    )
    def test_a_valid_reason_to_wait(self, world: World, reason: Vandal) -> None:
        world.sql("UPDATE scrape_tasks SET run_at = %s WHERE id = %s", LONG_AGO, world.open)
        reason(world)
        assert broken() == {}

    @pytest.mark.parametrize("due", [LONG_AGO, None], ids=["due long ago", "no time at all"])
    def test_a_match_without_an_open_task(self, world: World, due: datetime | None) -> None:
        ScrapeTask.objects.filter(pk=world.open).delete()
        world.sql("UPDATE match_external_refs SET next_poll_at = %s WHERE id = %s", due, world.ref.pk)
        found = broken()
        assert set(found) == {"I2 due matches"}
        assert str(world.ref.pk) in found["I2 due matches"][0]

    def test_a_source_at_its_limit_is_a_valid_reason(self, world: World) -> None:
        ScrapeTask.objects.filter(pk=world.open).delete()
        world.sql("UPDATE match_external_refs SET next_poll_at = %s WHERE id = %s", LONG_AGO, world.ref.pk)
        Source.objects.update(max_concurrency=1)
        world.task(resource="discovery")
        assert broken() == {}

    def test_an_expired_lease(self, world: World) -> None:
        claimed(world.open, at=later(6))
        world.sql("UPDATE scrape_tasks SET lease_until = %s WHERE id = %s", LONG_AGO, world.open)
        assert set(broken()) == {"I2 leases"}

    def test_an_executing_task_without_a_lease(self, world: World) -> None:
        with unconstrained("scrape_tasks", "task_executing_is_leased"):
            world.sql("UPDATE scrape_tasks SET state = 'EXECUTING', started_at = %s WHERE id = %s", NOW, world.open)
            found = broken()
        assert found["I2 leases"] == (f"task {world.open} is executed by '' and it has no lease",)

    def test_an_attempt_that_was_not_fenced(self, world: World) -> None:
        world.sql("UPDATE scrape_tasks SET attempt = 3 WHERE id = %s", world.open)
        assert broken() == {"I4 fences": (f"task {world.open} is in attempt 3 with fence 0: a claim was not fenced",)}

    def test_a_success_before_its_last_stage(self, world: World) -> None:
        task = ScrapeTask.objects.filter(state=TaskState.SUCCESS).latest("pk").pk
        world.sql("UPDATE scrape_tasks SET stage = 'CAPTURED' WHERE id = %s", task)
        assert broken() == {"I6 successes": (f"task {task} is SUCCESS and only reached CAPTURED",)}

    def test_a_dead_letter_without_history(self, world: World) -> None:
        world.sql("DELETE FROM scraping_tasktransition WHERE task_id = %s", world.dead)
        assert broken() == {"I6 dead letters": (f"task {world.dead} is dead and its history does not say how",)}

    def test_a_dead_letter_without_reason(self, world: World) -> None:
        with unconstrained("scrape_tasks", "task_dead_has_a_reason"):
            world.sql("UPDATE scrape_tasks SET reason = '' WHERE id = %s", world.dead)
            assert broken()["I6 dead letters"] == (f"task {world.dead} is dead without a reason",)

    def test_a_dead_letter_without_alert(self, world: World) -> None:
        world.sql("DELETE FROM monitoring_alert")
        found = broken()
        assert set(found) == {"I6 alerts"}
        assert str(world.dead) in found["I6 alerts"][0]

    @pytest.mark.parametrize("error_class", ["resource", "store"])
    def test_a_source_charged_for_our_fault(self, world: World, error_class: str) -> None:
        ScrapeError.objects.create(task_id=world.open, timestamp=NOW, error_class=error_class, error_type="browser")
        world.sql("UPDATE scrape_tasks SET charged_attempts = 1 WHERE id = %s", world.open)
        assert broken() == {
            "I7 charges": (f"task {world.open} was charged 1 attempts, and 0 failures were the source's",)
        }

    def test_a_source_charged_for_its_own_fault(self, world: World) -> None:
        ScrapeError.objects.create(task_id=world.open, timestamp=NOW, error_class="transient", error_type="network")
        world.sql("UPDATE scrape_tasks SET charged_attempts = 1 WHERE id = %s", world.open)
        assert broken() == {}


class TestLeftovers:
    def test_a_breaker_without_probe(self, world: World) -> None:
        ScrapeTask.objects.filter(pk=world.open).delete()
        _open_breaker(world.ref, until=LONG_AGO)
        world.sql("UPDATE match_external_refs SET next_poll_at = %s WHERE id = %s", LONG_AGO, world.ref.pk)
        found = broken()
        assert found["I8 breakers"] == (
            f"breaker {world.ref.key}_scraper should have let a probe through since 10:00:00",
        )

    def test_a_source_breaker_without_probe(self, world: World) -> None:
        Breaker.objects.create(
            name="crex", source=world.ref.source, state="OPEN", open_until=LONG_AGO, last_state_change=LONG_AGO
        )
        assert broken() == {}, "nothing has waited for it so far"
        world.sql("UPDATE scrape_tasks SET run_at = %s WHERE id = %s", LONG_AGO, world.open)
        assert set(broken()) == {"I2 open tasks", "I8 breakers"}

    def test_a_half_open_breaker_without_probe(self, world: World) -> None:
        world.sql("UPDATE scrape_tasks SET run_at = %s WHERE id = %s", LONG_AGO, world.open)
        half_open = Breaker.objects.create(
            name="crex", source=world.ref.source, state="HALF_OPEN", last_state_change=LONG_AGO
        )
        assert broken() == {"I8 probes": ("breaker crex is half open since 10:00:00, and has no probe",)}
        half_open.probes = {str(world.open): ASKED_AT.isoformat()}
        half_open.save()
        assert broken() == {}, "a probe is on its way"

    def test_a_request_through_an_open_breaker(self, world: World) -> None:
        _open_breaker(world.ref, until=later(600))
        claimed(world.open, at=later(6))
        found = broken()
        assert found == {
            "I8 silence": (f"task {world.open} was begun at 12:00:06 through the open breaker {world.ref.key}_scraper",)
        }
        Breaker.objects.update(probes={str(world.open): later(60).isoformat()})
        assert broken() == {}, "a probe has a permit"

    def test_a_task_held_by_a_dead_worker(self, world: World) -> None:
        claimed(world.open, worker="host.abcdef-1-000000", at=later(6))
        at = later(120)
        world.sql("UPDATE scrape_tasks SET lease_until = %s WHERE id = %s", later(130), world.open)
        assert broken(at) == {
            "I9 holders": (
                f"task {world.open} is held by worker host.abcdef-1-000000, which sends no heartbeat any more",
            )
        }

    def test_a_stray_evidence_file(self, world: World, settings: Any, tmp_path: Path) -> None:
        settings.STORAGE_DIR = tmp_path
        stray = tmp_path / "error_pages" / "page.html"
        stray.parent.mkdir(parents=True)
        stray.write_text("what was seen")
        os.utime(stray, (LONG_AGO.timestamp(), LONG_AGO.timestamp()))
        assert broken() == {}, "its transaction may be open, or it will be removed"
        assert broken(NOW + timedelta(hours=2))["I9 evidence"] == ("file error_pages/page.html belongs to no failure",)

    def test_a_job_item_without_task(self, world: World) -> None:
        job = ScrapeJob.objects.create(kind=JobKind.ROUND, name="round 7", created_at=NOW, discovered_at=NOW)
        item = JobItem.objects.create(job=job, ref=world.ref, task_id=world.open)
        assert broken() == {}
        world.sql("UPDATE scraping_jobitem SET task_id = NULL WHERE id = %s", item.pk)
        found = broken()
        assert set(found) == {"I9 job items"}
        assert f"item {item.pk} of job {job.pk}" in found["I9 job items"][0]
        world.sql("UPDATE scraping_jobitem SET outcome = 'SUCCESS' WHERE id = %s", item.pk)
        assert broken() == {}

    @pytest.mark.parametrize("asked", [{"urls": ["https://crex.example/1", "https://crex.example/2"]}, {"matches": 2}])
    def test_a_job_with_fewer_items_than_submitted(self, world: World, asked: dict[str, Any]) -> None:
        job = ScrapeJob.objects.create(
            kind=JobKind.URLS, name="2 matches", created_at=NOW, discovered_at=NOW, parameters=asked
        )
        other = ScrapeTask.objects.get(pk=world.dead)
        JobItem.objects.create(job=job, ref=world.ref, task_id=world.open)
        second = JobItem.objects.create(job=job, ref=other.ref, task=other)
        assert broken() == {}
        world.sql("DELETE FROM scraping_jobitem WHERE id = %s", second.pk)
        assert broken() == {"I9 expected": (f"job {job.pk} was submitted for 2 matches and expects only 1",)}

    def test_a_job_that_ended_too_early(self, world: World) -> None:
        job = ScrapeJob.objects.create(kind=JobKind.ROUND, name="round 7", created_at=NOW, discovered_at=NOW)
        JobItem.objects.create(job=job, ref=world.ref, task_id=world.open)
        world.sql("UPDATE scrape_jobs SET finished_at = %s WHERE id = %s", LONG_AGO, job.pk)
        assert broken() == {"I9 jobs": (f"job {job.pk} is finished and has open tasks",)}


class TestCommand:
    """The command uses the present time, not that of the fixture."""

    def _run(self, *arguments: str) -> tuple[int, str]:
        out = StringIO()
        try:
            call_command("check_invariants", *arguments, stdout=out)
        except SystemExit as ended:
            return int(ended.code or 0), out.getvalue()
        return 0, out.getvalue()

    def test_reports_that_all_rules_hold(self) -> None:
        code, output = self._run()
        assert code == 0
        assert f"all {len(RULES)} rules hold" in output
        assert "nothing was changed" in output

    def test_reports_broken_rules_with_advice(self) -> None:
        alone = [make_unread_match(now=timezone.now()).pk for _ in range(12)]
        code, output = self._run()
        assert code == 1
        assert f"- match {alone[0]} (Kenya vs Nepal) has no reference" in output
        assert output.count("has no reference at any source") == 10
        assert "- and more" in output
        assert "-> Delete the match in the admin" in output
        assert f"1 of {len(RULES)} rules are broken" in output

    def test_as_json(self) -> None:
        make_unread_match(now=timezone.now())
        code, output = self._run("--json")
        answer = json.loads(output)
        assert code == 1
        assert not answer["ok"]
        assert [rule["name"] for rule in answer["rules"] if rule["broken"]] == ["matches"]

    def test_the_bound_is_an_option(self) -> None:
        ref = make_ref(make_unread_match(), captured_at=None, next_poll_at=timezone.now() - timedelta(seconds=30))
        assert self._run()[0] == 0
        code, output = self._run("--bound", "10")
        assert code == 1
        assert f"reference {ref.pk}" in output


@pytest.mark.django_db(transaction=True)
class TestView:
    def test_concurrent_writes_are_not_seen(self) -> None:
        make_unread_match()
        with consistent_view():
            assert Match.objects.count() == 1
            _in_another_thread(make_unread_match)
            assert Match.objects.count() == 1
        assert Match.objects.count() == 2

    def test_writing_in_it_fails(self) -> None:
        with pytest.raises(DatabaseError), consistent_view():
            make_unread_match()
        make_unread_match()
        assert Match.objects.count() == 1


def _in_another_thread(work: Callable[[], Any]) -> None:
    import threading

    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=stretched(10))
    assert not thread.is_alive(), "the view blocks writers"


def _open_breaker(ref: MatchRef, *, until: datetime) -> None:
    Breaker.objects.create(
        name=f"{ref.key}_scraper", ref=ref, state="OPEN", open_until=until, last_state_change=later(-6), failure_count=5
    )
