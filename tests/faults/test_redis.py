"""Redis is stopped, frozen, full or replaced. It holds no truth: hints resume, and the API responds meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis

from tests.faults.conftest import Recovered
from tests.faults.database import as_stored, new_database
from tests.faults.scaled import assert_healed, bring_to_rest, live_refs, pass_time, scaled_system
from tests.faults.system import System
from tests.faults.web import Web
from tests.patience import wait_for
from tests.servers import PostgresServer, RedisServer, are_installed

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.skipif(not are_installed(), reason="needs PostgreSQL and Redis: make test installs them"),
]

AWAY_SECONDS = float(os.environ.get("FAULT_SECONDS", "15"))


@pytest.fixture(scope="module")
def own_redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
def system(postgres: PostgresServer, own_redis: RedisServer) -> Iterator[System]:
    url = new_database(postgres, "redis_faults")
    with scaled_system(database_url=url, redis_url=own_redis.url) as running:
        yield running


@pytest.fixture(scope="module")
def web(system: System) -> Web:
    return Web(system)


@pytest.fixture(autouse=True)
def calm(system: System) -> Iterator[None]:
    bring_to_rest(system)
    yield
    system.stadium.clear()


@contextmanager
def out_of_order(server: RedisServer, how: str) -> Iterator[None]:
    with redis.Redis.from_url(server.url) as client:
        if how == "full":
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", 1)
    {"away": server.kill, "frozen": server.pause, "full": lambda: None}[how]()
    try:
        yield
    finally:
        {"away": server.start, "frozen": server.resume, "full": lambda: None}[how]()
        with redis.Redis.from_url(server.url) as client:
            client.config_set("maxmemory", 0)


@pytest.mark.fault_number(9)
@pytest.mark.requirement("NFR-009")
class TestOutOfOrder:
    @pytest.mark.parametrize("how", ["away", "frozen", "full"])
    def test_hints_resume_and_the_api_responds_meanwhile(
        self, system: System, web: Web, own_redis: RedisServer, how: str, recovered: Recovered
    ) -> None:
        began_at = time.time()
        web.look()
        web.seen.clear()
        with out_of_order(own_redis, how):
            pass_time(AWAY_SECONDS, web.look)
        seconds = system.await_updates(live_refs(system), since=time.time(), seconds=60)
        recovered(f"Redis {how} for {AWAY_SECONDS:g} s", seconds, bound=10)
        assert web.seen.total() > 5
        assert set(web.seen) == {200}, f"how the API answered: {dict(web.seen)}"
        assert_healed(system, since=began_at)


@pytest.mark.fault_number(8)
class TestReplaced:
    def test_by_an_empty_server(self, system: System, own_redis: RedisServer, recovered: Recovered) -> None:
        began_at = time.time()
        own_redis.kill()
        own_redis.start()
        seconds = system.await_updates(live_refs(system), since=time.time(), seconds=60)
        recovered("Redis killed and replaced by an empty one", seconds, bound=5)
        assert_healed(system, since=began_at)


@pytest.mark.fault_number(10)
@pytest.mark.requirement("NFR-009")
class TestAwayWhileTasksFail:
    def test_their_retries_are_not_lost(self, system: System, own_redis: RedisServer, recovered: Recovered) -> None:
        """Dramatiq's own retries would be lost here: the attempt fails while Redis is away."""
        began_at = time.time()
        in_hand = "SELECT id FROM scrape_tasks WHERE state = 'EXECUTING' AND ref_id IS NOT NULL"
        system.stadium.fault(kind="latency", value=2)
        system.stadium.fault(kind="status", value=500)
        wait_for(lambda: len(system.database.rows(in_hand)) > 2, seconds=20, what="tasks in hand that will fail")
        own_redis.kill()
        failing = "SELECT DISTINCT task_id FROM scraper_errors WHERE timestamp > %s"
        since = as_stored(system.database, time.time())
        wait_for(lambda: len(system.database.rows(failing, since)) > 1, seconds=30, what="their failures")
        failed = [task for (task,) in system.database.rows(failing, since)]
        system.stadium.clear()
        own_redis.start()
        healed_at = time.time()
        seconds = system.await_updates(live_refs(system), since=healed_at, seconds=60)
        recovered(f"Redis away as {len(failed)} tasks failed", seconds, bound=10)
        still = "SELECT id FROM scrape_tasks WHERE id IN %s AND state IN ('PENDING', 'EXECUTING')"
        wait_for(lambda: not system.database.rows(still, tuple(failed)), seconds=60, what="the end of what had failed")
        assert system.count_tasks("state = %s", "DEAD", since=began_at) == 0
        system.assert_is_true()
        system.assert_is_whole()
