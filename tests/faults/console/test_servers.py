"""Incidents of processes and servers, at the console of a scaled system."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.conftest import Recovered
from tests.faults.console.incident import Incident
from tests.faults.console.operator import NAME, Operator
from tests.faults.database import new_database
from tests.faults.scaled import bring_to_rest, scaled_system
from tests.faults.system import System
from tests.servers import PostgresServer, RedisServer, are_installed

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.fault_number(28),
    pytest.mark.skipif(not are_installed(), reason="needs PostgreSQL and Redis: make test installs them"),
    pytest.mark.requirement("BX-11"),
]


@pytest.fixture(scope="module")
def own_redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
def system(postgres: PostgresServer, own_redis: RedisServer) -> Iterator[System]:
    url = new_database(postgres, "console_incidents")
    with scaled_system(database_url=url, redis_url=own_redis.url, programme="mixed:2:1", workers=1) as running:
        yield running


class OfServer(Incident):
    """The console cannot start it: the operator says who does, and sees on the overview that it is back."""

    action = "Acknowledge"
    outcome = (f"acknowledged by {NAME}",)

    def __init__(self, own_redis: RedisServer) -> None:
        self.redis = own_redis
        self.path = (self.seen, "Acknowledge")

    def repair(self, system: System) -> None:
        raise NotImplementedError

    def is_over(self, operator: Operator, system: System) -> None:
        operator.overview()
        operator.sees(f"{NAME} is on it")
        self.repair(system)
        super().is_over(operator, system)


class DeadWorker(OfServer):
    name = "a dead worker"
    seen = "No worker is alive and"
    cause = ("Tasks wait in the database; nothing is lost", "Start a worker")

    def begin(self, system: System) -> None:
        system.kill("worker-1")

    def repair(self, system: System) -> None:
        system.revive()


class RedisAway(OfServer):
    name = "Redis away"
    seen = "Redis does not answer"
    cause = ("nothing is lost", "Start Redis")

    def begin(self, system: System) -> None:
        self.redis.kill()

    def repair(self, system: System) -> None:
        self.redis.start()


@pytest.mark.parametrize("incident", [RedisAway, DeadWorker], ids=lambda each: each.__name__)
def test_three_clicks_lead_to_the_cause_and_the_action(
    operator: Operator, system: System, own_redis: RedisServer, recovered: Recovered, incident: type[OfServer]
) -> None:
    bring_to_rest(system)
    incident(own_redis).play(operator, system, recovered)
