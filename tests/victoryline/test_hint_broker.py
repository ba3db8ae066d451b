"""The hint broker with a real Dramatiq worker and a real Redis that is killed, frozen, emptied and filled."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import dramatiq
import pytest
import redis

from tests.patience import stretched, wait_for
from tests.servers import RedisServer
from victoryline.lib.hint_broker import HintBroker, make_broker

BACK_SECONDS = 10.0


class Arena:
    """A broker, a worker of two threads, and an actor that records its messages and can be blocked."""

    def __init__(self, server: RedisServer) -> None:
        broker = make_broker(server.url)
        assert isinstance(broker, HintBroker)
        self.server, self.broker = server, broker
        self.done: list[int] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.begun = threading.Event()

        def note(number: int) -> None:
            self.begun.set()
            self.go_on.wait(stretched(20))
            self.done.append(number)

        self.actor = dramatiq.actor(broker=broker, queue_name="tasks", actor_name="note")(note)
        self.worker = dramatiq.Worker(broker, worker_threads=2, worker_timeout=50)
        self.worker.start()

    def hint(self, number: int) -> bool:
        try:
            self.actor.send(number)
        except Exception:  # noqa: BLE001 - as the scheduler does: whatever it is, later again
            return False
        return True

    def hint_until_taken(self, number: int) -> None:
        wait_for(lambda: self.hint(number), seconds=BACK_SECONDS, what="a hint is taken")

    def await_done(self, number: int, seconds: float = BACK_SECONDS) -> None:
        wait_for(lambda: number in self.done, seconds=seconds, what=f"hint {number} acted upon")

    def stop(self) -> None:
        self.go_on.set()
        if any(thread.is_alive() for thread in self.threads()):
            self.worker.stop(timeout=5000)

    def threads(self) -> list[threading.Thread]:
        return [*self.worker.consumers.values(), *self.worker.workers]

    def own(self, limit: int) -> list[dramatiq.Message[Any]]:
        return [self.actor.message(1000 + number) for number in range(min(2, limit))]


@pytest.fixture
def arena() -> Iterator[Arena]:
    with RedisServer() as server:
        made = Arena(server)
        try:
            yield made
        finally:
            made.stop()


@pytest.mark.fault
@pytest.mark.requirement("NFR-010")
class TestOutages:
    def test_hints_come_again_after_it_was_away(self, arena: Arena) -> None:
        assert arena.hint(1)
        arena.await_done(1)
        arena.server.kill()
        wait_for(lambda: arena.broker.is_away, seconds=10, what="the outage noticed")
        assert not arena.hint(2)
        arena.server.start()
        returned_at = time.monotonic()
        arena.hint_until_taken(3)
        arena.await_done(3)
        assert time.monotonic() - returned_at < BACK_SECONDS
        assert all(thread.is_alive() for thread in arena.threads())
        wait_for(lambda: not arena.broker.is_away, seconds=5, what="the return noticed")

    def test_hints_come_again_after_it_was_frozen(self, arena: Arena) -> None:
        arena.server.pause()
        wait_for(lambda: arena.broker.is_away, seconds=10, what="the outage noticed")
        began = time.monotonic()
        for _ in range(20):  # like a scheduler, four times a second
            assert not arena.hint(2)
        assert time.monotonic() - began < stretched(6), "a frozen Redis must not block a scheduler each time"
        arena.server.resume()
        arena.hint_until_taken(3)
        arena.await_done(3)
        assert all(thread.is_alive() for thread in arena.threads())

    def test_hints_come_again_after_it_was_emptied(self, arena: Arena) -> None:
        arena.server.flushall()
        assert arena.hint(1)
        arena.await_done(1)

    def test_hints_come_again_after_it_was_full(self, arena: Arena) -> None:
        with redis.Redis.from_url(arena.server.url) as client:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "1")
            assert not arena.hint(1)
            client.config_set("maxmemory", "0")
        arena.hint_until_taken(2)
        arena.await_done(2)
        assert all(thread.is_alive() for thread in arena.threads())

    def test_work_that_ends_while_it_is_away_holds_no_thread(self, arena: Arena) -> None:
        """Dramatiq alone would block the thread with acknowledgements until Redis is back."""
        arena.go_on.clear()
        assert arena.hint(1)
        assert arena.begun.wait(stretched(10))
        arena.broker.own_hints = arena.own
        arena.server.kill()
        arena.go_on.set()
        arena.await_done(1)
        wait_for(lambda: arena.done.count(1000) > 3, seconds=10, what="both threads continue with other work")

    def test_a_worker_reads_hints_from_the_journal_until_redis_is_back(self, arena: Arena) -> None:
        arena.broker.own_hints = arena.own
        arena.server.kill()
        arena.await_done(1000)
        arena.await_done(1001)
        arena.server.start()
        wait_for(lambda: not arena.broker.is_away, seconds=BACK_SECONDS, what="the return noticed")
        wait_for(arena.worker.work_queue.empty, seconds=5, what="its own hints executed")
        arena.hint_until_taken(5)
        arena.await_done(5)

    @pytest.mark.parametrize("end", ["kill", "pause"])
    def test_a_stop_during_an_outage_is_quick_and_complete(self, arena: Arena, end: str) -> None:
        arena.go_on.clear()
        for number in range(6):  # two running, the others prefetched: they have to be put back
            arena.hint(number)
        assert arena.begun.wait(stretched(10))
        getattr(arena.server, end)()
        wait_for(lambda: arena.broker.is_away, seconds=10, what="the outage noticed")
        arena.go_on.set()
        began = time.monotonic()
        arena.worker.stop(timeout=10_000)
        assert time.monotonic() - began < stretched(8)
        assert not any(thread.is_alive() for thread in arena.threads())

    def test_own_hints_are_not_read_while_redis_answers(self, arena: Arena) -> None:
        asked: list[int] = []

        def own(limit: int) -> list[dramatiq.Message[Any]]:
            asked.append(limit)
            return []

        arena.broker.own_hints = own
        assert arena.hint(1)
        arena.await_done(1)
        assert arena.broker.rounds["tasks"] > 0
        assert asked == []
