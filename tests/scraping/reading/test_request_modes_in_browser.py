"""Sources that refuse every client but a browser, read with Chromium from the stadium: in a page that stays open."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import aiohttp.connector
import pytest
from django.utils import timezone

from scraping.errors import Challenged
from scraping.models import Breaker, ScrapeError, ScrapeTask, TaskState
from scraping.payloads import Payload
from scraping.reading.reader import Reader, Target
from scraping.reading.request_modes import RequestModes
from scraping.readings import Reading, ReadMode
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from scraping.worker.upkeep import RequestModeRows
from tests.factories import make_ref, make_source
from tests.scraping.builders import POLICIES, open_task
from tests.scraping.hosted_browser import Hosted, find_program, impatient, target_of
from tests.stadium.certificate import Certificate, make_certificate
from tests.stadium_process import StadiumProcess

pytestmark = pytest.mark.slow

SITES = ("crex", "sofascore", "espncricinfo")
VISIT, DIRECT, IN_PAGE = ReadMode.VISIT, ReadMode.DIRECT, ReadMode.IN_PAGE


@pytest.fixture(scope="module")
def arena() -> Iterator[StadiumProcess]:
    with StadiumProcess(pace=0, browser_only=SITES) as running:
        yield running


@pytest.fixture(autouse=True)
def _reset(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "arena" in request.fixturenames:
        request.getfixturevalue("arena").clear()


@pytest.fixture(scope="module")
def browser() -> Iterator[Hosted]:
    running = Hosted(impatient(find_program()))
    yield running
    running.close()


class Worker:
    """A reader whose time of trials the test sets."""

    def __init__(self, browser: Hosted) -> None:
        browser.run(browser.sessions.close_all())
        self.now = datetime.now(UTC)
        self.reader = Reader(browser.sessions, browser.run)
        self.modes = self.reader._access.modes = RequestModes(clock=lambda: self.now)

    def read(self, target: Target) -> tuple[Reading, Payload]:
        return self.reader.scorecard(target)


@pytest.fixture
def worker(browser: Hosted) -> Worker:
    return Worker(browser)


def assert_read(payload: Payload, arena: StadiumProcess) -> None:
    """Asserts the scores; sites differ in the order of the sides."""
    truth = arena.truth(payload.source, payload.source_event_id)["score"].values()
    found = payload.state.score.model_dump(mode="json", exclude_none=True).values()
    assert sorted(map(str, found)) == sorted(str(score or {}) for score in truth)


def refusals(arena: StadiumProcess) -> int:
    return int(arena.requests()["statuses"].get("403", 0))


@pytest.mark.parametrize("site", SITES)
class TestReads:
    def test_of_a_source_that_accepts_browsers_only_stay_in_a_page(
        self, worker: Worker, arena: StadiumProcess, site: str
    ) -> None:
        target = target_of(arena, site)
        if not target.adapter.requests(target.ref, target.site.base_url):
            assert worker.read(target)[0].mode is VISIT  # shows the requests
        arena.ask("/control/reset", {})
        for _ in range(3):
            reading, payload = worker.read(target)
            assert reading.mode is IN_PAGE
            assert_read(payload, arena)
        asked = len(reading.requests)
        assert 1 <= refusals(arena) <= asked, "the first read was tried directly, and no other"
        learned = worker.modes.learned(site)
        assert learned is not None
        assert (learned.mode, " 403" in learned.reason) == (IN_PAGE, True)

    def test_are_direct_again_when_the_source_accepts_that(
        self, worker: Worker, arena: StadiumProcess, site: str
    ) -> None:
        target = target_of(arena, site)
        worker.read(target)
        worker.read(target)
        arena.ask("/control/browser_only", {"site": site, "on": False})
        assert worker.read(target)[0].mode is IN_PAGE
        worker.now += timedelta(minutes=10)
        reading, payload = worker.read(target)
        assert reading.mode is DIRECT
        assert_read(payload, arena)
        assert worker.modes.learned(site) is None


def test_the_set_mode_is_used_where_direct_requests_are_accepted(worker: Worker, arena: StadiumProcess) -> None:
    arena.ask("/control/browser_only", {"site": "crex", "on": False})
    target = target_of(arena, "crex")
    target = replace(target, site=replace(target.site, read_way="in_page"))
    assert [worker.read(target)[0].mode for _ in range(2)] == [VISIT, IN_PAGE]


@pytest.mark.django_db
def test_what_teaches_the_mode_costs_the_poll_no_attempt_and_feeds_no_breaker(
    worker: Worker, arena: StadiumProcess
) -> None:
    shown = target_of(arena, "espncricinfo")
    source = make_source("espncricinfo", base_url=shown.site.base_url, allows_private_addresses=True)
    ref = make_ref(source=source, source_event_id=shown.ref.source_event_id, url=shown.ref.url, captured_at=None)
    now = timezone.now()
    task = open_task(ref, at=now)
    engine = Engine(worker_id="w-1", reader=worker.reader, policies=POLICIES)
    scrape([task], engine)
    engine.outcomes.flush(now=now)
    RequestModeRows(worker.modes, on_loop=lambda call: call()).sync()
    done = ScrapeTask.objects.get(pk=task)
    assert (done.state, done.attempt, done.charged_attempts) == (TaskState.SUCCESS, 1, 0)
    ref.refresh_from_db()
    assert (ref.read_mode, ref.read_mode_reason) == ("in_page", worker.modes.reason("espncricinfo"))
    assert not ScrapeError.objects.exists()
    assert not Breaker.objects.filter(total_failures__gt=0).exists()
    source.refresh_from_db()
    assert source.request_mode == "in_page"


def test_an_expired_session_is_renewed_by_one_visit(worker: Worker, arena: StadiumProcess) -> None:
    target = target_of(arena, "crex")
    worker.read(target)
    assert worker.read(target)[0].mode is IN_PAGE
    arena.ask("/control/sessions", {"revoke": True})
    assert [worker.read(target)[0].mode for _ in range(3)] == [VISIT, IN_PAGE, IN_PAGE]


def test_where_pages_may_not_request_either_the_source_is_visited(worker: Worker, arena: StadiumProcess) -> None:
    target = target_of(arena, "crex")
    assert worker.read(target)[0].mode is VISIT
    for _ in range(2):  # sessions
        arena.fault(kind="status", site="crex", target="live", value=403, count=2)  # direct, and in the page
        assert worker.read(target)[0].mode is VISIT
    before = refusals(arena)
    for _ in range(2):
        reading, _ = worker.read(target)
        assert (reading.mode, reading.reason) == (VISIT, "the source refuses requests")
    assert refusals(arena) == before, "no refused request at every poll"
    worker.now += timedelta(seconds=61)
    assert worker.read(target)[0].mode is IN_PAGE


def test_a_challenge_in_the_page_is_reported_and_not_solved(worker: Worker, arena: StadiumProcess) -> None:
    target = target_of(arena, "espncricinfo")
    assert worker.read(target)[0].mode is IN_PAGE
    arena.fault(kind="challenge", site="espncricinfo")
    with pytest.raises(Challenged):
        worker.read(target)


def test_lists_of_matches_are_requested_in_the_page(worker: Worker) -> None:
    with StadiumProcess(programme="only:espn:2", pace=0, browser_only=("espn",)) as arena:
        target = target_of(arena, "espn")
        reading = worker.reader.match_list(target.site, target.adapter)
        assert reading.mode is IN_PAGE
        assert len(target.adapter.parse_list(reading, target.site.base_url)) == 2


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secure(certificate: Certificate) -> Iterator[StadiumProcess]:
    with StadiumProcess(pace=0, browser_only=SITES, tls=certificate.file) as running:
        yield running


@pytest.fixture
def secure_worker(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """Both clients of the worker trust the certificate."""
    trusted = ssl.create_default_context(cafile=certificate.file)
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", trusted)
    running = Hosted(impatient(certificate.trusting(find_program())))
    yield Worker(running)
    running.close()


@pytest.mark.parametrize("site", ["crex", "espncricinfo"])
def test_over_tls_the_handshake_of_the_browser_is_accepted_and_ours_is_not(
    secure_worker: Worker, secure: StadiumProcess, site: str
) -> None:
    target = target_of(secure, site)
    secure_worker.read(target)
    reading, payload = secure_worker.read(target)
    assert reading.mode is IN_PAGE
    assert_read(payload, secure)
    learned = secure_worker.modes.learned(site)
    assert learned is not None
    assert " 403" in learned.reason, "the certificate was trusted"
