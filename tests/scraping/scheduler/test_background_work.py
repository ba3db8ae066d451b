"""Background work: few tasks of a source are hinted at a time, so that live polls never wait."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import dramatiq
import pytest
from django.utils import timezone

from scraping import jobs
from scraping.models import ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.scheduler.hint import hint_due_tasks
from scraping.scheduler.limits import BACKGROUND_AT_ONCE
from tests.factories import make_ref, make_source
from tests.scraping.builders import open_task
from tests.scraping.due_tasks import room_by_source
from tests.scraping.rounds import url_of
from victoryline.lib import hint_broker

pytestmark = [pytest.mark.django_db, pytest.mark.both]


@pytest.fixture(autouse=True)
def broker() -> Iterator[None]:
    """The in-process broker, for the time of a test."""
    before = dramatiq.broker.global_broker
    hint_broker.install_broker("")
    yield
    dramatiq.set_broker(before)


@pytest.fixture
def now() -> datetime:
    """Opens thirty tasks for whole matches; returns the time."""
    make_source("sofascore", max_concurrency=5)
    urls = [url_of(str(15_000_100 + number)) for number in range(30)]
    moment = timezone.now()
    jobs.start_urls(urls=urls, requested_by="Ann", now=moment)
    return moment


def hinted() -> list[str]:
    rows = ScrapeTask.objects.filter(hinted_at__isnull=False, state=TaskState.PENDING)
    return list(rows.order_by("pk").values_list("resource", flat=True))


def test_a_few_of_a_source_are_hinted_at_a_time(now: datetime) -> None:
    assert hint_due_tasks(now) == BACKGROUND_AT_ONCE
    assert hint_due_tasks(now + timedelta(seconds=0.5)) == 0, "those are not finished yet"


def test_hints_the_next_when_one_is_done(now: datetime) -> None:
    hint_due_tasks(now)
    ScrapeTask.objects.filter(pk=ScrapeTask.objects.filter(hinted_at=now).first().pk).update(
        state=TaskState.SUCCESS, finished_at=now
    )
    assert hint_due_tasks(now + timedelta(seconds=0.5)) == 1


def test_an_executing_task_keeps_its_place(now: datetime) -> None:
    first = ScrapeTask.objects.order_by("pk").first()
    ScrapeTask.objects.filter(pk=first.pk).update(state=TaskState.EXECUTING, worker_id="w", lease_until=now)
    assert hint_due_tasks(now) == BACKGROUND_AT_ONCE - 1


def test_a_lost_hint_is_sent_again(now: datetime) -> None:
    hint_due_tasks(now)
    assert hint_due_tasks(now + timedelta(seconds=10)) == BACKGROUND_AT_ONCE


def test_live_polls_go_first_and_do_not_count(now: datetime) -> None:
    open_task(make_ref(source="sofascore"), at=now)
    assert hint_due_tasks(now) == BACKGROUND_AT_ONCE + 1
    assert hinted().count(Resource.SCORECARD.value) == 1


def test_each_source_has_its_own_limit(now: datetime) -> None:
    make_source("crex")
    urls = [f"https://crex.example/cricket-live-score/a-match-updates-1{number:03d}" for number in range(10)]
    jobs.start_urls(urls=urls, requested_by="Ann", now=now)
    assert hint_due_tasks(now) == 2 * BACKGROUND_AT_ONCE


def test_waiting_tasks_take_no_room_from_live_polls(now: datetime) -> None:
    assert list(room_by_source().values()) == [5]
    ScrapeTask.objects.filter(pk=ScrapeTask.objects.first().pk).update(
        state=TaskState.EXECUTING, worker_id="w", lease_until=now
    )
    assert list(room_by_source().values()) == [4]


@pytest.mark.parametrize("resource", [Resource.LINEUPS, Resource.FIGURES])
def test_line_ups_and_figures_are_background_work_too(resource: Resource) -> None:
    """A hundred such tasks leave places for live polls."""
    moment, source = timezone.now(), make_source("sofascore", max_concurrency=5)
    for _ in range(10):
        open_task(make_ref(source=source), at=moment, resource=resource)
    assert room_by_source()[source.pk] == 5
    assert hint_due_tasks(moment) == BACKGROUND_AT_ONCE
