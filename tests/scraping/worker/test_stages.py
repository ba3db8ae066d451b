"""The stage of an attempt: reported while it runs, and stored with a failure."""

from __future__ import annotations

import pytest

from scraping import readings
from scraping.errors import SchemaBreak, Transient
from scraping.models import ScrapeTask, Stage, TaskState
from scraping.worker.scrape import scrape
from tests.factories import make_ref
from tests.scraping.builders import Outcome, chasing, engine_with, open_task, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db, pytest.mark.requirement("FS-10")]


def stages_of(*outcomes: Outcome) -> list[Stage]:
    """Returns the stages of one attempt in the order in which they were reached."""
    ref = make_ref()
    engine = engine_with(*(outcomes or (payload_of(ref, chasing(100)),)))
    seen: list[Stage] = []
    progress = engine.progress
    engine.progress = lambda claim, stage: (seen.append(stage), progress(claim, stage))[1]  # type: ignore[method-assign]
    scrape([open_task(ref)], engine)
    return seen


def test_a_successful_attempt_reports_all_stages_in_order() -> None:
    seen = stages_of()
    assert seen == [Stage.NAVIGATING, Stage.CAPTURED, Stage.VALIDATED, Stage.PERSISTED]
    assert seen == sorted(seen, key=Stage.values.index)
    task = ScrapeTask.objects.get()
    assert (task.state, task.stage) == (TaskState.SUCCESS, Stage.DONE)


@pytest.mark.parametrize("error", [Transient("no route to host"), SchemaBreak("no teams")])
def test_a_failed_attempt_records_its_stage(error: Exception) -> None:
    assert stages_of(error) == [Stage.NAVIGATING]
    task = ScrapeTask.objects.get()
    assert (task.stage, task.error["stage"]) == (Stage.NAVIGATING, "NAVIGATING")  # type: ignore[index]
    assert set(task.transitions.values_list("stage", flat=True)) == {"NAVIGATING"}


def test_a_stage_outside_of_an_attempt_changes_no_task() -> None:
    task_id = open_task(make_ref())
    readings.report_stage("NAVIGATING")
    task = ScrapeTask.objects.get(pk=task_id)
    assert (task.state, task.stage) == (TaskState.PENDING, Stage.INIT)
