"""Client-side timeouts: waits for a frozen PostgreSQL end, a slow one is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg2
import pytest
from psycopg2 import extensions

from tests.patience import stretched
from tests.servers import PostgresServer
from victoryline.lib import pg_wait

ANSWER_SECONDS, CONNECT_SECONDS = 0.6, 0.4
PATIENT_SECONDS = 30.0  # for a running server, which may be slow on a busy machine


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    before = extensions.get_wait_callback()
    pg_wait.install(answer_seconds=ANSWER_SECONDS, connect_seconds=CONNECT_SECONDS)
    yield
    extensions.set_wait_callback(before)


@pytest.fixture
def frozen(postgres: PostgresServer) -> Iterator[Callable[[], None]]:
    yield postgres.pause
    postgres.resume()


def in_a_transaction(server: PostgresServer) -> extensions.connection:
    connection = psycopg2.connect(server.url)
    connection.cursor().execute("CREATE TEMPORARY TABLE kept (id int)")
    return connection


ASKED: dict[str, Callable[[extensions.connection], None]] = {
    "a statement": lambda connection: connection.cursor().execute("SELECT 1"),
    "COMMIT": lambda connection: connection.commit(),
    "ROLLBACK": lambda connection: connection.rollback(),
}


@pytest.mark.fault
@pytest.mark.requirement("NFR-010")
class TestFrozenServer:
    @pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
    def test_ends_the_wait_and_the_connection(
        self, postgres: PostgresServer, frozen: Callable[[], None], asked: Callable[[extensions.connection], None]
    ) -> None:
        connection = in_a_transaction(postgres)
        frozen()
        began = time.monotonic()
        with pytest.raises(psycopg2.OperationalError, match=r"not answered for 0\.6 s"):
            asked(connection)
        assert time.monotonic() - began < ANSWER_SECONDS + 5
        assert connection.closed
        began = time.monotonic()
        connection.close()
        assert time.monotonic() - began < stretched(5)

    def test_ends_the_wait_for_a_new_connection(self, postgres: PostgresServer, frozen: Callable[[], None]) -> None:
        frozen()
        with pytest.raises(psycopg2.OperationalError, match=r"not answered for 0\.4 s"):
            psycopg2.connect(postgres.url)

    def test_a_query_may_have_a_shorter_timeout(self, postgres: PostgresServer, frozen: Callable[[], None]) -> None:
        connection = in_a_transaction(postgres)
        frozen()
        with pg_wait.within(0.2), pytest.raises(psycopg2.OperationalError, match=r"not answered for 0\.2 s"):
            connection.rollback()


class TestRunningServer:
    @pytest.fixture(autouse=True)
    def patient(self, bounded: None) -> None:
        pg_wait.install(answer_seconds=PATIENT_SECONDS, connect_seconds=PATIENT_SECONDS)

    def test_a_late_answer_within_the_timeout_is_returned(self, postgres: PostgresServer) -> None:
        with closing(psycopg2.connect(postgres.url)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.3), 7")
            assert cursor.fetchone()[1] == 7

    def test_a_long_answer_is_returned_completely(self, postgres: PostgresServer) -> None:
        """Many times the size of a socket buffer, in both directions."""
        with closing(psycopg2.connect(postgres.url)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT %s || repeat('x', 8000000)", ["y" * 8_000_000])
            assert len(cursor.fetchone()[0]) == 16_000_000

    def test_the_servers_own_errors_are_raised(self, postgres: PostgresServer) -> None:
        with closing(psycopg2.connect(postgres.url)) as connection, connection.cursor() as cursor:
            with pytest.raises(psycopg2.errors.DivisionByZero):
                cursor.execute("SELECT 1 / 0")
            connection.rollback()
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)
