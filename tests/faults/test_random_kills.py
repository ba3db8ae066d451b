"""Fault 4: a hundred seeded kills of workers, scheduler, browsers, drivers and Redis. No data is lost."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable

import psutil
import pytest

from tests.faults.conftest import Recovered
from tests.faults.database import new_database
from tests.faults.scaled import bring_to_rest, live_refs, scaled_system
from tests.faults.system import System
from tests.servers import PostgresServer, RedisServer, are_installed

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.fault_number(4),
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not are_installed(), reason="needs PostgreSQL and Redis: make test installs them"),
]

KILLS = int(os.environ.get("FAULT_KILLS", "100"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
VICTIMS = ("worker-1", "worker-2", "scheduler", "a browser", "a browser", "a driver", "Redis")


@pytest.mark.requirement("NFR-009", "NFR-010", "BX-12")
def test_a_hundred_kills(postgres: PostgresServer, recovered: Recovered, report: Callable[[str], None]) -> None:
    chance, victims = random.Random(SEED), Counter[str]()
    url = new_database(postgres, "random_kills")
    # By chance a task may be killed four times; it must continue, because its match did not cause the kills.
    with RedisServer() as redis, scaled_system(database_url=url, redis_url=redis.url, MAX_RESCUES="20") as system:
        bring_to_rest(system)
        began_at = time.time()
        while victims.total() < KILLS:
            time.sleep(chance.uniform(0.2, 2.5))
            victim = chance.choice(VICTIMS)
            victims[victim] += _kill(system, redis, victim, chance)
            system.revive()
        over = time.time()
        healed = system.await_updates(live_refs(system), since=over, seconds=600)
        recovered(f"{victims.total()} random kills (seed {SEED}) in {over - began_at:.0f} s", healed, bound=300)
        report(", ".join(f"{victim} {number} times" for victim, number in sorted(victims.items())))
        dead = system.database.rows("SELECT error_class, reason FROM scrape_tasks WHERE state = 'DEAD'")
        # a task that lost ten browsers and workers in a row may become dead as our own fault
        for error_class, reason in dead:
            report(f"dead letter: {reason}")
            assert error_class == "resource", reason
        assert len(dead) <= KILLS // 10
        assert system.count_tasks("charged_attempts > 0", since=began_at) == 0, "the source is not to blame"
        system.assert_is_true(seconds=120)
        system.assert_is_whole(seconds=60)


def _kill(system: System, redis: RedisServer, victim: str, chance: random.Random) -> int:
    """Returns 1 if there was a process to kill."""
    if victim == "Redis":
        redis.kill()
        redis.start()
        return 1
    if victim in ("a browser", "a driver"):
        found = system.browsers() if victim == "a browser" else system.drivers()
        if not found:
            return 0
        try:
            chance.choice(sorted(found, key=lambda process: process.pid)).kill()
        except psutil.NoSuchProcess:
            return 0
        return 1
    if victim not in system.processes or system.processes[victim].poll() is not None:
        return 0
    system.kill(victim)
    return 1
