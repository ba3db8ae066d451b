"""Concurrent requests from several processes: still one job, and one task per match."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from scraping import jobs
from scraping.models import JobItem, Match, MatchRef, ScrapeJob, ScrapeTask
from scraping.payloads import Resource
from tests.factories import make_source
from tests.patience import stretched
from tests.scraping.rounds import ASKED, IDS, url_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both, pytest.mark.requirement("ZT-2", "FS-4")]

PEOPLE = 6


def at_once(*actions: Callable[[], Any]) -> list[Any]:
    """Returns the results of all threads; none of them may fail."""
    gate, results, errors = threading.Barrier(len(actions)), [], []

    def run(action: Callable[[], Any]) -> None:
        try:
            gate.wait(stretched(10))
            results.append(action())
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(stretched(60))
    assert errors == []
    return results


def test_equal_requests_at_once_start_one_job() -> None:
    make_source("sofascore")

    def start() -> bool:
        return jobs.start_round(source_key="sofascore", asked=ASKED, requested_by="Ann", now=timezone.now()).is_new

    assert sum(at_once(*[start] * PEOPLE)) == 1
    assert (ScrapeJob.objects.count(), ScrapeTask.objects.count()) == (1, 1)


def test_one_key_for_two_sources_at_once_starts_one_job() -> None:
    make_source("sofascore")
    make_source("crex")
    crex = "https://crex.example/cricket-live-score/a-match-updates-13KM"

    def start(url: str) -> Callable[[], str]:
        def run() -> str:
            try:
                jobs.start_urls(urls=[url], requested_by="Ann", idempotency_key="k", now=timezone.now())
            except jobs.KeyReused:
                return "refused"
            return "started"

        return run

    assert sorted(at_once(start(url_of(IDS[0])), start(crex))) == ["refused", "started"]
    assert ScrapeJob.objects.count() == JobItem.objects.count() == ScrapeTask.objects.count() == 1


def test_lists_that_overlap_share_matches_and_tasks() -> None:
    make_source("sofascore")
    lists = [[url_of(key) for key in IDS[start:] + IDS[:start]][: 5 + start] for start in range(PEOPLE)]
    at_once(*[lambda urls=urls: jobs.start_urls(urls=urls, requested_by="Ann", now=timezone.now()) for urls in lists])
    assert ScrapeJob.objects.count() == PEOPLE
    assert Match.objects.count() == MatchRef.objects.count() == 10
    assert ScrapeTask.objects.filter(resource=Resource.FULL).count() == 10
    assert JobItem.objects.count() == sum(map(len, lists))
    assert not JobItem.objects.filter(task=None).exists()
