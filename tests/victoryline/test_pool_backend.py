"""The Django backend on the pool: connections per thread, transactions, errors of Django."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.db import OperationalError, ProgrammingError, connection, transaction
from django.utils import timezone

from apiauth.models import Consumer
from tests.patience import stretched
from victoryline.pool import base
from victoryline.pool.connections import Pool

pytestmark = [pytest.mark.scaled, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def small_pool() -> Iterator[None]:
    """A pool with two connections and a short wait, for all threads."""
    normal = connection.settings_dict["POOL"]
    connection.close()
    connection.close_pool()
    connection.settings_dict["POOL"] = replace(normal, maximum=2, kept=2, minimum=0, wait_seconds=0.2)
    yield
    connection.close()
    connection.close_pool()
    connection.settings_dict["POOL"] = normal


def pool() -> Pool:
    return base._pools[connection._key(connection.get_connection_params())]


def holding(ready: threading.Barrier, done: threading.Event) -> None:
    try:
        assert Consumer.objects.count() == 0
        ready.wait(stretched(10))
        done.wait(stretched(10))
    finally:
        connection.close()


@pytest.mark.requirement("FR-008")
class TestBackend:
    def test_an_exhausted_pool_is_a_database_that_is_away(self, small_pool: None) -> None:
        ready, done = threading.Barrier(3), threading.Event()
        with ThreadPoolExecutor(2) as threads:
            held = [threads.submit(holding, ready, done) for _ in range(2)]
            ready.wait(stretched(10))
            with pytest.raises(OperationalError, match="All 2 connections"):
                Consumer.objects.count()
            done.set()
            for each in held:
                each.result()
        assert Consumer.objects.count() == 0

    def test_a_closed_connection_goes_back_and_comes_again(self, small_pool: None) -> None:
        assert Consumer.objects.count() == 0
        lent = connection.connection
        connection.close()
        assert pool().idle == 1
        assert Consumer.objects.count() == 0
        assert connection.connection is lent

    def test_five_connections_are_kept_ready(self) -> None:
        connection.close()
        connection.close_pool()
        assert Consumer.objects.count() == 0
        deadline = time.monotonic() + 30
        while pool().idle < 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert pool().idle >= 5

    def test_closed_in_a_transaction_it_is_rolled_back_and_not_used_on(self, small_pool: None) -> None:
        with transaction.atomic():
            Consumer.objects.create(name="half done", created_at=timezone.now())
            connection.close()
            assert pool().idle == 1, "another thread may have it now"
            with pytest.raises(ProgrammingError, match="open a new connection"):
                Consumer.objects.count()
        assert not Consumer.objects.filter(name="half done").exists()

    def test_the_servers_timeout_is_shorter_than_ours(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'")
            assert cursor.fetchone() == (15_000,)

    def test_jit_is_off(self) -> None:
        """Compiling would take longer than any of our statements."""
        with connection.cursor() as cursor:
            cursor.execute("SHOW jit")
            assert cursor.fetchone() == ("off",)
