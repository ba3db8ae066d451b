"""PostgreSQL is stopped, frozen, out of connections, or loses replies. Scraping continues; nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg2
import pytest

from tests.faults.chaos_proxy import ChaosProxy
from tests.faults.conftest import Recovered
from tests.faults.database import PostgresDatabase, new_database
from tests.faults.scaled import assert_healed, bring_to_rest, live_refs, pass_time, scaled_system
from tests.faults.system import System
from tests.faults.web import Web
from tests.servers import PostgresServer, RedisServer, are_installed

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.skipif(not are_installed(), reason="needs PostgreSQL and Redis: make test installs them"),
]

ANSWER_SECONDS = 4
FROZEN_SECONDS, TERMINATING_SECONDS, EXHAUSTED_SECONDS, CUTTING_SECONDS = 15.0, 8.0, 10.0, 12.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A private durable server, which the tests stop and kill."""
    with PostgresServer(durable=True) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(server: PostgresServer) -> Iterator[ChaosProxy]:
    with ChaosProxy(server.port) as running:
        yield running


@pytest.fixture(scope="module")
def system(server: PostgresServer, proxy: ChaosProxy, redis_server: RedisServer) -> Iterator[System]:
    """A system whose processes connect through the proxy; the tests read the database directly."""
    url = new_database(server, "store_faults")
    through = url.replace(f":{server.port}/", f":{proxy.port}/")
    with scaled_system(
        database_url=through,
        redis_url=redis_server.url,
        DB_ANSWER_SECONDS=str(ANSWER_SECONDS),
        DB_CONNECTION_TIMEOUT_SECONDS="5",
    ) as running:
        running.database = PostgresDatabase(url)
        yield running


@pytest.fixture(scope="module")
def web(system: System) -> Web:
    return Web(system)


@pytest.fixture(autouse=True)
def calm(system: System) -> None:
    bring_to_rest(system)


@pytest.mark.fault_number(12)
@pytest.mark.requirement("EC-2", "FR-020", "BX-13", "NFR-009")
class TestAway:
    @pytest.mark.parametrize("seconds", [25, 120])
    def test_scraping_continues_and_readings_are_written_later(
        self, system: System, server: PostgresServer, web: Web, seconds: float, recovered: Recovered
    ) -> None:
        live, began_at = live_refs(system), time.time()
        web.look()
        web.seen.clear()
        server.stop()
        asked = requests_so_far(system)
        pass_time(seconds, web.look)
        read = requests_so_far(system) - asked
        server.start()
        healed = system.await_updates(live, since=time.time(), seconds=180)
        recovered(f"PostgreSQL stopped for {seconds:g} s", healed, bound=60)
        system.revive()
        assert system.exits == [], "no process had to be restarted"
        assert read > len(live), "the source was not asked while the database was away"
        assert set(web.seen) == {200}, f"how the API answered: {dict(web.seen)}"
        assert_healed(system, since=began_at)
        assert system.count_tasks("reason LIKE %s", "read while the database was away%", since=began_at) > 0

    def test_a_worker_killed_meanwhile_loses_nothing(
        self, system: System, server: PostgresServer, recovered: Recovered
    ) -> None:
        """Its readings are on disk; the next process writes them to the database."""
        live, began_at = live_refs(system), time.time()
        server.stop()
        pass_time(10, lambda: None)
        for name in ("worker-1", "worker-2"):
            system.kill(name)
        pass_time(10, system.revive)
        server.start()
        over = time.time()
        pass_time(3, system.revive)
        healed = system.await_updates(live, since=over, seconds=180)
        recovered("PostgreSQL stopped for 20 s, and both workers killed meanwhile", healed, bound=60)
        assert_healed(system, since=began_at)
        system.exits.clear()


def requests_so_far(system: System) -> int:
    """Returns the number of requests to the stadium's sites."""
    return int(system.stadium.requests()["total"])


@pytest.mark.fault_number(13)
@pytest.mark.requirement("BX-13", "NFR-009")
class TestUnreliable:
    def test_frozen(self, system: System, server: PostgresServer, recovered: Recovered) -> None:
        live, began_at = live_refs(system), time.time()
        server.pause()
        pass_time(FROZEN_SECONDS, system.revive)
        server.resume()
        self._assert_heals(system, live, began_at, f"PostgreSQL frozen for {FROZEN_SECONDS:g} s", recovered)

    def test_backends_terminated_in_their_transactions(
        self, system: System, server: PostgresServer, recovered: Recovered
    ) -> None:
        live, began_at, killed = live_refs(system), time.time(), 0
        terminate = """
            SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = 'store_faults' AND pid <> pg_backend_pid() AND (xact_start IS NOT NULL OR random() < 0.1)
        """
        with closing(psycopg2.connect(server.url)) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            over = time.monotonic() + TERMINATING_SECONDS
            while time.monotonic() < over:
                cursor.execute(terminate)
                killed += cursor.fetchone()[0]
                time.sleep(0.05)
        assert killed > 5
        self._assert_heals(system, live, began_at, f"{killed} backends terminated", recovered)

    def test_connections_exhausted(self, system: System, server: PostgresServer, recovered: Recovered) -> None:
        live, began_at = live_refs(system), time.time()
        with ExitStack() as stack:
            taken = self._take_all(stack, server)
            with taken[-1].cursor() as cursor:  # connections that were open before must recover too
                cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'store_faults'")
            taken += self._take_all(stack, server)
            pass_time(EXHAUSTED_SECONDS, lambda: None)
        words = f"all connections taken ({len(taken)}) for {EXHAUSTED_SECONDS:g} s"
        self._assert_heals(system, live, began_at, words, recovered)

    def test_the_reply_to_commit_is_lost(self, system: System, proxy: ChaosProxy, recovered: Recovered) -> None:
        live, began_at = live_refs(system), time.time()
        cuts = proxy.cuts
        proxy.cut_every(7)
        try:
            pass_time(CUTTING_SECONDS, system.revive)
        finally:
            proxy.cut_every(0)
        lost = proxy.cuts - cuts
        assert lost > 0
        self._assert_heals(system, live, began_at, f"the replies to {lost} COMMITs lost", recovered)

    @staticmethod
    def _assert_heals(system: System, live: list[int], began_at: float, words: str, recovered: Recovered) -> None:
        over = time.time()
        pass_time(2, system.revive)
        healed = system.await_updates(live, since=over, seconds=180)
        recovered(words, healed, bound=60)
        assert_healed(system, since=began_at)
        system.exits.clear()

    @staticmethod
    def _take_all(stack: ExitStack, server: PostgresServer) -> list[psycopg2.extensions.connection]:
        taken: list[psycopg2.extensions.connection] = []
        while True:
            try:
                taken.append(stack.enter_context(closing(psycopg2.connect(server.url, connect_timeout=5))))
            except psycopg2.OperationalError:
                return taken
