"""The page of a task: its time line, the requests of its failed attempts, its log lines."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring.models import LogEntry
from scraping import readings
from scraping.browser.direct_client import traced
from scraping.errors import Transient
from scraping.journal import error_log
from scraping.journal.error_log import ErrorReport
from scraping.models import ScrapeError, TaskState, TaskTransition
from scraping.readings import MAX_REQUESTS, AttemptFacts, Document, Request
from tests.factories import make_ref
from tests.monitoring.rows import make_task

pytestmark = pytest.mark.django_db


async def respond(status: int) -> Document:
    if status == 0:
        raise Transient("connection reset, token=s3cr3tvalue99")
    return Document("score", f"https://user:pw@api.example/v1/score?token=s3cr3tvalue99&s={status}", status, "", b"abc")


def attempt(*statuses: int) -> None:
    """Makes the requests of one attempt."""
    readings.attempt_facts.set(AttemptFacts())
    request = Request("score", "https://api.example/v1/score?token=s3cr3tvalue99")
    for status in statuses:
        try:
            asyncio.run(traced("none", "crex", request, respond(status)))
        except Transient:
            assert status == 0


def fail(task_id: int | None = None) -> ScrapeError:
    source = make_ref().source
    error = Transient("timeout")
    return error_log.record(
        ErrorReport(source.pk, error, "scorecard", 1, timezone.now(), task_id=task_id, stage="NAVIGATING")
    )


@pytest.fixture(autouse=True)
def no_attempt() -> None:
    readings.attempt_facts.set(None)


class TestRequests:
    def test_of_a_failed_attempt_are_kept_without_secrets(self) -> None:
        attempt(200, 503, 0)
        row = fail()
        assert [(one["method"], one["status"], one["bytes"]) for one in row.requests] == [
            ("GET", 200, 3), ("GET", 503, 3), ("GET", None, 0),
        ]  # fmt: skip
        assert {one["address"] for one in row.requests} == {"api.example/v1/score"}
        assert "connection reset" in row.requests[2]["error"]
        assert "s3cr3t" not in str(row.requests)
        assert (row.stage, row.duration_ms is not None) == ("NAVIGATING", True)

    def test_are_bounded(self) -> None:
        attempt(*[200] * (MAX_REQUESTS + 5))
        assert len(fail().requests) == MAX_REQUESTS

    def test_a_failure_outside_of_an_attempt_has_none(self) -> None:
        assert (fail().requests, fail().duration_ms) == ([], None)

    def test_are_shown_with_the_task_and_the_error(self, admin_client: Client) -> None:
        task = make_task(make_ref(), state=TaskState.DEAD, reason="x")
        attempt(503)
        error = fail(task.pk)
        for table, pk in (("scrapetask", task.pk), ("scrapeerror", error.pk)):
            page = admin_client.get(reverse(f"admin:scraping_{table}_change", args=[pk])).content.decode()
            assert "api.example/v1/score" in page
            assert "503" in page


def test_a_task_shows_its_states_with_durations_to_the_millisecond(admin_client: Client) -> None:
    now = timezone.now()
    began = now - timedelta(seconds=60)
    task = make_task(
        make_ref(), now=began, state=TaskState.DEAD, reason="layout", worker_id="w-1", attempt=2,
        hinted_at=began + timedelta(milliseconds=12), started_at=began + timedelta(seconds=31),
        finished_at=began + timedelta(seconds=31, milliseconds=345),
    )  # fmt: skip
    for milliseconds, to, number in ((500, "PENDING", 1), (31_345, "DEAD", 2)):
        TaskTransition.objects.create(
            task=task, from_state="EXECUTING", to_state=to, at=began + timedelta(milliseconds=milliseconds),
            actor="w-1", attempt=number, stage="CAPTURED", reason="layout",
        )  # fmt: skip
    page = admin_client.get(reverse("admin:scraping_scrapetask_change", args=[task.pk]))
    steps = [(step["text"], step["gap"]) for step in page.context["task_page"]["steps"]]
    assert steps == [
        ("created", ""),
        ("hinted to the workers, for the last time", "+0.012 s"),
        ("EXECUTING → PENDING, attempt 1 at CAPTURED, by w-1", "+0.488 s"),
        ("attempt 2 claimed by w-1", "+30.500 s"),
        ("EXECUTING → DEAD, attempt 2 at CAPTURED, by w-1", "+0.345 s"),
    ]


def test_its_log_lines_are_one_click_away(admin_client: Client) -> None:
    task, now = make_task(make_ref(), state=TaskState.DEAD, reason="x"), timezone.now()
    for number in (task.pk, task.pk + 1):
        LogEntry.objects.create(timestamp=now, level="ERROR", event=f"line of {number}", line={"task_id": number})
    page = admin_client.get(reverse("admin:scraping_scrapetask_change", args=[task.pk]))
    listed = admin_client.get(page.context["task_page"]["logs"]).content.decode()
    assert f"line of {task.pk}" in listed
    assert f"line of {task.pk + 1}" not in listed
