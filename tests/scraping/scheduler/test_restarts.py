"""Restarts of scrapers, after which a match is read by a visit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.dispatch import Signal

from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.matches.scrapers import ensure_active
from scraping.models import Match, MatchRef, Scraper
from scraping.reading.caches import VisitRecord
from scraping.reading.reader import Reader
from scraping.scheduler import recover
from scraping.scheduler.recover import restart_scrapers
from scraping.signals import scraper_restarted
from scraping.worker.engine import target_of
from tests.factories import NOW, make_match, make_ref, make_scraper, make_source
from tests.monitoring.rows import MEGABYTE, make_worker
from tests.scraping.builders import claimed, engine_with, later, open_task

pytestmark = [pytest.mark.both, pytest.mark.django_db]


@pytest.mark.requirement("US1.3", "FR-010")
def test_restarts_after_six_hours_with_a_visit() -> None:
    ref = make_ref(read_mode="direct", read_mode_since=NOW - timedelta(hours=6))
    worn = ensure_active(ref, now=NOW - timedelta(hours=6, seconds=1))
    Scraper.objects.update(last_update_time=NOW)
    engine, claim = engine_with(ValueError("never read")), claimed(open_task(ref))
    before = target_of(claim, MatchRef.objects.select_related("source", "match").get(), engine)
    assert restart_scrapers(NOW) == 1
    ref = MatchRef.objects.select_related("source", "match").get()
    after = target_of(claim, ref, engine)
    assert (before.is_fresh, after.is_fresh) == (False, True)
    assert (ref.next_poll_at, ref.read_mode) == (NOW, "")
    assert "lifetime of 6 h is over" in ref.read_mode_reason
    assert Scraper.objects.filter(stopped_at__isnull=True).exclude(pk=worn.pk).count() == 1

    reader = Reader(Sessions(BrowserHost(BrowserOptions(executable=Path("chromium"), owner="w"))), _never_run)
    reader._modes.visits.put(ref.pk, VisitRecord({}, None, 0.0))
    plan = reader._modes.plan(after)
    assert (plan.record, plan.visit_reason) == (None, "the scraper is new")
    assert reader._modes.visits.get(ref.pk) is None, "requests learned by the old scraper are not used"


@pytest.mark.requirement("DM-1")
class TestRestartReasons:
    """The four reasons of DM-1 (age, silence, errors, memory), stored on the stopped row."""

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            pytest.param({"start_time": later(-6 * 3600 - 1)}, "lifetime of 6 h is over", id="age"),
            pytest.param({"last_update_time": later(-301)}, "no update for 301 s", id="staleness"),
            pytest.param({"error_count": 11}, "11 errors in a row", id="errors"),
            pytest.param({"worker_id": "large"}, "1,600 MB of memory, more than 1,536 MB", id="memory"),
        ],
    )
    def test_writes_and_announces_the_reason(self, fields: dict[str, Any], reason: str) -> None:
        make_worker("large", now=NOW, memory_bytes=1600 * MEGABYTE)
        worn = make_scraper(make_ref(), **{"last_update_time": NOW} | fields)
        with announced(scraper_restarted) as received:
            assert restart_scrapers(NOW) == 1
        stopped, fresh = Scraper.objects.get(pk=worn.pk), Scraper.objects.get(stopped_at=None)
        assert (stopped.stopped_at, stopped.stop_reason) == (NOW, reason)
        assert (fresh.start_time, fresh.error_count, fresh.last_update_time) == (NOW, 0, None)
        assert [(one["reason"], one["source_key"], one["fresh_id"]) for one in received] == [
            (reason, "crex", str(fresh.pk))
        ]

    def test_does_not_restart_for_a_large_worker_with_many_scrapers(self) -> None:
        make_worker("large", now=NOW, memory_bytes=1600 * MEGABYTE)
        for number in range(2):
            ref = make_ref(make_match(title=str(number)), source_event_id=str(number))
            make_scraper(ref, last_update_time=NOW, worker_id="large")
        assert restart_scrapers(NOW) == 0

    def test_restarts_the_scraper_whose_own_page_is_large(self) -> None:
        make_worker("large", now=NOW, memory_bytes=1800 * MEGABYTE, renderers={"crex_1": (1600 * MEGABYTE, 5.0)})
        for number in range(2):
            ref = make_ref(make_match(title=str(number)), source_event_id=str(number))
            make_scraper(ref, last_update_time=NOW, worker_id="large")
        assert restart_scrapers(NOW) == 1
        stopped = Scraper.objects.get(stopped_at=NOW)
        assert (stopped.ref.key, stopped.stop_reason) == ("crex_1", "1,700 MB of memory, more than 1,536 MB")

    def test_does_not_restart_a_scraper_that_stays_large_again(self) -> None:
        make_worker("large", now=NOW, memory_bytes=1600 * MEGABYTE)
        make_scraper(make_ref(), last_update_time=NOW, worker_id="large")
        replaced = []
        for seconds in (0, 5, 100, 299, 301):
            Scraper.objects.filter(stopped_at=None).update(worker_id="large", last_update_time=later(seconds))
            replaced.append(restart_scrapers(later(seconds)))
        assert replaced == [1, 0, 0, 0, 1]

    def test_does_not_restart_a_scraper_that_fails_at_once_again(self) -> None:
        make_scraper(make_ref(), last_update_time=NOW, error_count=11)
        replaced = []
        for seconds in (0, 30, 60, 310):
            Scraper.objects.filter(stopped_at=None).update(error_count=11, last_update_time=later(seconds))
            replaced.append(restart_scrapers(later(seconds)))
        assert replaced == [1, 0, 0, 1]


@pytest.mark.requirement("DM-1")
def test_restarting_one_scraper_leaves_the_others_alone() -> None:
    """Their rows, due times and cached requests are unchanged."""
    refs = [
        make_ref(
            make_match(title=str(number)),
            source_event_id=str(number),
            next_poll_at=later(number),
            read_mode="direct",
            read_mode_since=later(-60),
        )
        for number in range(5)
    ]
    for number, ref in enumerate(refs):
        make_scraper(ref, last_update_time=later(-301) if number == 2 else NOW, total_updates=number)
    others = [ref.pk for ref in refs if ref != refs[2]]
    before = rows_of(others)
    assert restart_scrapers(NOW) == 1
    assert rows_of(others) == before
    assert MatchRef.objects.get(pk=refs[2].pk).next_poll_at == NOW


def rows_of(ref_ids: list[int]) -> list[Any]:
    refs = MatchRef.objects.filter(pk__in=ref_ids).order_by("pk").values()
    matches = Match.objects.filter(refs__in=ref_ids).order_by("pk").values()
    return [*refs, *matches, *Scraper.objects.filter(ref_id__in=ref_ids).order_by("pk").values()]


@pytest.mark.requirement("DM-1")
@pytest.mark.parametrize("is_watched", [True, False], ids=["its source is switched off", "its watch has ended"])
def test_stops_a_scraper_that_is_not_needed_any_more(is_watched: bool) -> None:
    source = make_source("board", is_enabled=not is_watched)
    worn = make_scraper(make_ref(source=source, is_watched=is_watched), last_update_time=later(-900))
    assert restart_scrapers(NOW) == 0
    worn.refresh_from_db()
    assert (worn.stopped_at, worn.stop_reason) == (NOW, "it is not read at this source any more")
    assert Scraper.objects.count() == 1


def test_restarts_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an outage all scrapers need a restart."""
    monkeypatch.setattr(recover, "RESTARTS_AT_ONCE", 2)
    for number in range(3):
        make_scraper(make_ref(source_event_id=f"m{number}"), start_time=later(-900), last_update_time=later(-900))
    assert [restart_scrapers(later(at)) for at in (0, 5, 10)] == [2, 1, 0]


def test_needs_few_queries_where_nothing_is_restarted(django_assert_max_num_queries: Any) -> None:
    for number in range(30):
        ref = make_ref(make_match(title=str(number)), source_event_id=str(number))
        make_scraper(ref, last_update_time=NOW)
    with django_assert_max_num_queries(3):
        assert restart_scrapers(NOW) == 0


@contextmanager
def announced(signal: Signal) -> Iterator[list[dict[str, Any]]]:
    received: list[dict[str, Any]] = []

    def listen(sender: object, **what: Any) -> None:
        received.append(what)

    signal.connect(listen)
    try:
        yield received
    finally:
        signal.disconnect(listen)


def _never_run(coroutine: object) -> object:
    raise AssertionError("nothing is read here")
