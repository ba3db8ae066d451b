"""A source over its daily traffic budget, in a real Chromium: read directly, never visited, and counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from scraping.errors import OverBudget
from scraping.models import SourceDay
from scraping.reading.read_modes import PAGE_SECONDS
from scraping.reading.reader import Reader, Target
from scraping.readings import ReadMode
from scraping.stats.read_stats import ReadStats
from tests.factories import NOW, make_source
from tests.scraping.hosted_browser import Hosted, assert_true, find_program, impatient, target_of
from tests.stadium_process import StadiumProcess

pytestmark = [pytest.mark.slow, pytest.mark.requirement("FS-3")]

LATER = NOW + timedelta(minutes=1)


@pytest.fixture(scope="module")
def arena() -> Iterator[StadiumProcess]:
    with StadiumProcess(pace=0) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Hosted]:
    running = Hosted(impatient(find_program()))
    yield running
    running.close()


class Worker:
    """A reader with a clock of the test, and its recorded traffic."""

    def __init__(self, browser: Hosted) -> None:
        browser.run(browser.sessions.close_all())
        self.seconds, self.read_stats = 0.0, ReadStats()
        self.reader = Reader(browser.sessions, browser.run, observer=self.read_stats, clock=lambda: self.seconds)


@pytest.fixture
def worker(browser: Hosted) -> Worker:
    return Worker(browser)


def spent(target: Target) -> Target:
    return replace(target, visits_from=LATER)


@pytest.mark.faults_only
def test_direct_reads_continue_regardless_of_the_age_of_the_last_visit(worker: Worker, arena: StadiumProcess) -> None:
    target = target_of(arena, "crex")
    worker.reader.scorecard(target)
    worker.seconds = 3 * PAGE_SECONDS
    arena.clear()
    reading, payload = worker.reader.scorecard(spent(replace(target, is_quiet=True, is_fresh=True)))
    assert reading.mode is ReadMode.DIRECT
    assert_true(payload, arena)
    assert "page" not in arena.requests()["sites"]["crex"]["targets"], "nor the page alone"


def test_a_match_that_needs_a_visit_waits_without_requests(worker: Worker, arena: StadiumProcess) -> None:
    target = target_of(arena, "crex")
    arena.clear()
    with pytest.raises(OverBudget) as refused:
        worker.reader.scorecard(spent(target))
    assert refused.value.until == LATER
    with pytest.raises(OverBudget):
        worker.reader.match_list(target.site, target.adapter, visits_from=LATER)
    assert not arena.requests()["sites"].get("crex", {}).get("targets")


@pytest.mark.faults_only
def test_a_refused_session_is_not_renewed_by_a_visit_over_budget(worker: Worker, arena: StadiumProcess) -> None:
    target = target_of(arena, "crex")
    worker.reader.scorecard(target)
    arena.ask("/control/faults", {"site": "crex", "target": "live", "kind": "malformed", "count": 1})
    with pytest.raises(OverBudget, match="not JSON"):
        worker.reader.scorecard(spent(target))
    reading, _ = worker.reader.scorecard(spent(target))
    assert reading.mode is ReadMode.DIRECT, "the requests learned from the visit were kept"


@pytest.mark.django_db
@pytest.mark.requirement("FS-16")
def test_every_reading_is_counted_with_its_cost(worker: Worker, arena: StadiumProcess) -> None:
    source, target = make_source(), target_of(arena, "crex")
    visit, _ = worker.reader.scorecard(target)
    direct, _ = worker.reader.scorecard(target)
    listed = worker.reader.match_list(target.site, target.adapter)
    worker.read_stats.flush(now=NOW)
    day = SourceDay.objects.get(source=source)
    assert (day.visits, day.direct_reads) == (2, 1)
    assert day.bytes_in == visit.bytes_in + direct.bytes_in + listed.bytes_in
    assert day.requests == visit.requests_made + direct.requests_made + listed.requests_made
    assert day.requests_blocked == visit.requests_blocked + listed.requests_blocked
    assert visit.bytes_in > direct.bytes_in > 0
    assert sum(visit.blocked_by_type.values()) == visit.requests_blocked > 0
    assert source.field_fills.filter(field="score").get().seen == 2
