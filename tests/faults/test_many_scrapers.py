"""Sixty live matches shared by three workers on one database."""

from __future__ import annotations

import time

import pytest

from tests.faults.database import new_database
from tests.faults.scaled import live_refs, scaled_system
from tests.patience import wait_for
from tests.servers import PostgresServer, RedisServer, are_installed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not are_installed(), reason="needs PostgreSQL and Redis: make test installs them"),
]
MATCHES = 60
READ_SECONDS = 60.0


@pytest.mark.requirement("NFR-012")
def test_three_workers_keep_sixty_scrapers_going(postgres: PostgresServer, redis_server: RedisServer) -> None:
    url = new_database(postgres, "many")
    with scaled_system(database_url=url, redis_url=redis_server.url, programme=f"load:{MATCHES}", workers=3) as system:
        workers = {system.worker_id(f"worker-{number}") for number in (1, 2, 3)}
        wait_for(lambda: len(live_refs(system)) == MATCHES, seconds=120, what=f"{MATCHES} live matches")
        since = time.time()
        for _ in range(3):  # three rounds, so that one lucky round is not enough
            system.await_updates(live_refs(system), since=time.time(), seconds=READ_SECONDS)
        active = system.database.rows("SELECT COUNT(*) FROM scraping_scraper WHERE stopped_at IS NULL")
        assert active[0][0] >= MATCHES
        done = {worker for worker in workers if system.count_tasks("worker_id = %s AND state = 'SUCCESS'", worker)}
        assert done == workers, "every worker has a part in the work"
        assert system.count_tasks("state = 'DEAD' OR charged_attempts > 0", since=since) == 0
