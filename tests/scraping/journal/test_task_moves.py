"""Dead letters and waiting tasks are ended: by a person, or because a later task has done the same."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from monitoring.alerts.registry import raise_alert
from monitoring.models import Alert, AuditEntry, Severity
from scraping import jobs, journal
from scraping.jobs.lifecycle import discard_superseded
from scraping.models import JobItem, JobKind, MatchRef, ScrapeError, ScrapeJob, ScrapeTask, TaskState, TaskTransition
from tests.monitoring.rows import make_error, make_task, make_watched

pytestmark = [pytest.mark.django_db, pytest.mark.both]


def state_of(task: ScrapeTask) -> str:
    task.refresh_from_db()
    return task.state


@pytest.fixture
def dead() -> ScrapeTask:
    """A dead letter with its error and alert; nothing was read since."""
    now = timezone.now()
    match, ref, _ = make_watched()
    MatchRef.objects.filter(pk=ref.pk).update(captured_at=now - timedelta(minutes=1))
    task = make_task(ref, state=TaskState.DEAD)
    make_error(match, task=task)
    raise_alert(f"dead:{match.pk}", Severity.CRITICAL, "dead", {"match_id": match.pk}, now)
    return task


@pytest.mark.requirement("BX-10", "BX-11")
class TestByAPerson:
    def test_a_discarded_dead_letter_has_a_history_and_no_open_error_or_alert(self, dead: ScrapeTask) -> None:
        done = journal.discard(task_ids=[dead.pk], actor="ann", reason="not shown on TV", now=timezone.now())
        assert (done.retried, done.refused, state_of(dead)) == ([dead.pk], {}, TaskState.DISCARDED)
        assert dead.reason == "5 attempts failed", "the cause is kept"
        moved = TaskTransition.objects.get()
        assert (moved.from_state, moved.to_state, moved.actor, moved.reason) == (
            *("DEAD", "DISCARDED", "ann", "not shown on TV"),
        )
        assert ScrapeError.objects.get().resolution_method == "manual"
        assert Alert.objects.get().closed_at is not None
        entry = AuditEntry.objects.get()
        assert (entry.actor, entry.action_type, entry.trigger_condition) == ("ann", "discard", "not shown on TV")

    def test_the_alert_stays_while_another_task_of_the_match_is_dead(self, dead: ScrapeTask) -> None:
        make_task(dead.ref, state=TaskState.DEAD, resource="commentary")
        journal.discard(task_ids=[dead.pk], actor="ann", reason="x", now=timezone.now())
        assert Alert.objects.get().closed_at is None

    def test_cancels_waiting_tasks_only(self, dead: ScrapeTask) -> None:
        waiting = make_task(dead.ref)
        done = journal.cancel(task_ids=[waiting.pk, dead.pk], actor="ann", reason="too many", now=timezone.now())
        assert done.retried == [waiting.pk]
        assert done.refused == {dead.pk: "it is DEAD; only PENDING tasks can be cancelled"}
        assert (state_of(waiting), waiting.reason) == (TaskState.CANCELLED, "too many")

    @pytest.mark.parametrize("state", [TaskState.SUCCESS, TaskState.PENDING, TaskState.CANCELLED])
    def test_only_failed_tasks_are_discarded_or_retried(self, dead: ScrapeTask, state: TaskState) -> None:
        task = make_task(dead.ref, state=state, resource="commentary")
        refused = journal.discard(task_ids=[task.pk], actor="ann", reason="x", now=timezone.now()).refused
        assert refused == {task.pk: f"it is {state}; only FAILED and DEAD tasks can be discarded"}
        assert journal.retry(task_ids=[task.pk], actor="ann", now=timezone.now()).retried == []
        assert state_of(task) == state


class TestByALaterTask:
    def test_a_dead_letter_stays_until_its_match_is_read_again(self, dead: ScrapeTask) -> None:
        assert discard_superseded(timezone.now()) == 0
        assert state_of(dead) == TaskState.DEAD
        MatchRef.objects.update(captured_at=timezone.now() + timedelta(seconds=1))
        assert discard_superseded(timezone.now()) == 1
        assert state_of(dead) == TaskState.DISCARDED
        moved = TaskTransition.objects.get()
        assert (moved.actor, moved.reason) == ("scheduler", "a later task has done the same since")
        assert Alert.objects.get().closed_at is not None

    def test_another_resource_of_the_match_does_not_count(self, dead: ScrapeTask) -> None:
        make_task(dead.ref, state=TaskState.SUCCESS, resource="lineups")
        assert discard_superseded(timezone.now()) == 0

    def test_the_match_of_a_job_is_there_after_a_later_complete_read(self, dead: ScrapeTask) -> None:
        job = ScrapeJob.objects.create(
            kind=JobKind.URLS, name="urls", created_at=timezone.now(), discovered_at=timezone.now()
        )
        full = make_task(dead.ref, state=TaskState.DEAD, resource="full", job=job)
        JobItem.objects.create(job=job, ref=dead.ref, task=full, outcome="DEAD")
        make_task(dead.ref, state=TaskState.SUCCESS, resource="full")
        assert discard_superseded(timezone.now()) == 1
        assert state_of(full) == TaskState.DISCARDED
        assert jobs.view(job).has_all == 1

    def test_examines_all_dead_letters_part_by_part(self, dead: ScrapeTask, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("scraping.journal.retries.EXAMINED_AT_ONCE", 1)
        later = make_task(dead.ref, state=TaskState.DEAD, resource="commentary")
        make_task(dead.ref, state=TaskState.SUCCESS, resource="commentary")
        assert sum(discard_superseded(timezone.now()) for _ in range(3)) == 1
        assert (state_of(later), state_of(dead)) == (TaskState.DISCARDED, TaskState.DEAD)
