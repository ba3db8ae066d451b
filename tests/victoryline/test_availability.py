"""The availability of services: all callers know an outage at once, one thread notices its end."""

from __future__ import annotations

import os
import threading
import time

import pytest

from tests.patience import stretched, wait_for
from tests.servers import RedisServer, free_port
from victoryline.lib import availability
from victoryline.lib.availability import Availability

pytestmark = pytest.mark.fault


class Service:
    """A service that answers or not, as the test sets it; counts the probes."""

    def __init__(self) -> None:
        self.is_up, self.asked = True, 0
        self.holds = threading.Event()
        self.holds.set()

    def ask(self) -> None:
        self.asked += 1
        assert self.holds.wait(stretched(30))
        if not self.is_up:
            raise ConnectionError("refused")


@pytest.fixture
def service() -> Service:
    return Service()


def make(service: Service, **options: float | bool) -> Availability:
    return Availability("Thing", service.ask, meanwhile="nothing is done", every_seconds=0.01, **options)


class TestReport:
    def test_a_report_makes_it_away_until_it_answers_again(self, service: Service) -> None:
        thing = make(service)
        service.is_up = False
        thing.report(ConnectionError("refused"))
        assert thing.is_away()
        assert thing.reason() == "ConnectionError"
        service.is_up = True
        wait_for(lambda: not thing.is_away(), seconds=5, what="it is found back")

    def test_only_one_thread_probes_for_many_reports(self, service: Service) -> None:
        thing = make(service)
        service.is_up = False
        for _ in range(50):
            thing.report(ConnectionError("refused"))
        assert sum(each.name == "Thing-availability" for each in threading.enumerate()) == 1
        service.is_up = True
        wait_for(
            lambda: not any(each.name == "Thing-availability" for each in threading.enumerate()),
            seconds=5,
            what="the thread ends",
        )

    def test_a_second_outage_starts_the_thread_again(self, service: Service) -> None:
        thing = make(service)
        for _ in range(3):
            thing.report(ConnectionError("refused"))
            wait_for(lambda: not thing.is_away(), seconds=5, what="it is found back")

    def test_is_logged_once_at_its_beginning_and_at_its_end(self, service: Service, caplog) -> None:
        caplog.set_level("INFO")
        thing = make(service)
        service.is_up = False
        for _ in range(5):
            thing.report(ConnectionError("refused"))
        service.is_up = True
        wait_for(lambda: len(caplog.records) > 1, seconds=5, what="the end is logged")
        assert [record.action for record in caplog.records] == ["thing_away", "thing_back"]
        assert "until it is back nothing is done" in caplog.text


class TestWatch:
    def test_without_watch_and_search_nothing_is_away(self, service: Service) -> None:
        thing = make(service, is_searched=False)
        thing.report(ConnectionError("refused"))
        assert not thing.is_away()
        assert service.asked == 0

    def test_notices_an_outage_without_a_report(self, service: Service) -> None:
        thing = make(service, is_searched=False)
        thing.watch()
        wait_for(lambda: service.asked, seconds=5, what="the first probe")
        assert not thing.is_away()
        service.is_up = False
        wait_for(thing.is_away, seconds=5, what="it is noticed")
        service.is_up = True
        wait_for(lambda: not thing.is_away(), seconds=5, what="it is found back")

    def test_an_overdue_answer_counts_as_none(self, service: Service) -> None:
        thing = make(service, is_searched=False, overdue_seconds=0.05)
        service.holds.clear()
        thing.watch()
        wait_for(thing.is_away, seconds=5, what="it is noticed")
        service.holds.set()
        wait_for(lambda: not thing.is_away(), seconds=5, what="it is found back")

    def test_a_fork_starts_without_a_thread_and_with_everything_available(self, service: Service) -> None:
        thing = make(service)
        thing._pid = os.getpid() + 1
        thing._away_since = time.monotonic()
        assert not thing.is_away()


class TestRedis:
    def test_is_away_without_a_server(self) -> None:
        assert not availability.redis(f"redis://127.0.0.1:{free_port()}/0").probe_once()

    @pytest.mark.scaled
    def test_frozen_or_full_is_away_and_reachable_again(self, redis_server: RedisServer) -> None:
        there = availability.redis(redis_server.url)
        assert there.probe_once()
        redis_server.pause()
        try:
            began = time.monotonic()
            assert not there.probe_once()
            assert time.monotonic() - began < stretched(5)
        finally:
            redis_server.resume()
        wait_for(there.probe_once, seconds=5, what="Redis answers")
        with availability.Redis.from_url(redis_server.url) as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "1")
            try:
                assert not there.probe_once()
            finally:
                client.config_set("maxmemory", "0")
        assert there.probe_once()


@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
def test_the_real_database_is_probed() -> None:
    asked = Availability("Database", availability._probe_database, meanwhile="nothing is done")
    assert asked.probe_once()
