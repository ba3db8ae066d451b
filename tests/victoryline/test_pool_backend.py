"""Django on the pool: threads take and give back, Django's own rules about transactions hold, errors are Django's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.db import OperationalError, ProgrammingError, connection, transaction
from django.utils import timezone

from apiauth.models import Consumer
from victoryline.pool import base
from victoryline.pool.connections import Pool

pytestmark = [pytest.mark.scaled, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def small_pool() -> Iterator[None]:
    """Two connections and little patience, in this thread and all others."""
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
        ready.wait(10)
        done.wait(10)
    finally:
        connection.close()


@pytest.mark.requirement("FR-008")
class TestBackend:
    def test_an_exhausted_pool_is_a_database_that_is_away(self, small_pool: None) -> None:
        ready, done = threading.Barrier(3), threading.Event()
        with ThreadPoolExecutor(2) as threads:
            held = [threads.submit(holding, ready, done) for _ in range(2)]
            ready.wait(10)
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

    def test_closed_in_a_transaction_it_is_rolled_back_and_not_used_on(self, small_pool: None) -> None:
        with transaction.atomic():
            Consumer.objects.create(name="half done", created_at=timezone.now())
            connection.close()
            assert pool().idle == 1, "it may be in other hands now"
            with pytest.raises(ProgrammingError, match="open a new connection"):
                Consumer.objects.count()
        assert not Consumer.objects.filter(name="half done").exists()

    def test_the_server_gives_up_before_we_do(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'")
            assert cursor.fetchone() == (15_000,)

    def test_the_server_compiles_nothing(self) -> None:
        """It would take longer than any of our statements does."""
        with connection.cursor() as cursor:
            cursor.execute("SHOW jit")
            assert cursor.fetchone() == ("off",)
