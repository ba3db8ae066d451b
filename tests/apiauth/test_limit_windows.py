"""The counters of the limits: the same rule in memory and in Redis, compared with a simple model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apiauth import limits
from apiauth.limits import KEY_PREFIX, Check, Decision, MemoryWindows, RedisWindows
from tests.servers import RedisServer

LENGTH = 60.0
# (seconds of waiting, requests then): bursts, trickles and long silences.
TIMELINE = st.lists(
    st.tuples(st.floats(0, 150, allow_nan=False), st.integers(1, 30)), min_size=1, max_size=25
)  # fmt: skip


MILLISECONDS = st.one_of(st.integers(0, 5_000), st.integers(0, 150_000), st.just(60_000), st.just(120_000))


def new_memory(start: float = 1000.0) -> tuple[MemoryWindows, SimpleNamespace]:
    clock = SimpleNamespace(now=start)
    return MemoryWindows(length=LENGTH, clock=lambda: clock.now), clock


def forget(windows: RedisWindows) -> None:
    for key in windows._client.scan_iter(f"{KEY_PREFIX}*", count=1000):
        windows._client.delete(key)


def take(windows: MemoryWindows | RedisWindows, bucket: str = "acme", limit: int = 10) -> bool:
    return windows.check([Check(bucket, limit)])[0].is_allowed


@pytest.fixture
def redis_windows(redis_server: RedisServer) -> Iterator[Callable[..., RedisWindows]]:
    made: list[RedisWindows] = []

    def redis_windows(length: float = LENGTH) -> RedisWindows:
        made.append(RedisWindows(redis_server.url, length=length))
        return made[-1]

    yield redis_windows
    for windows in made:
        windows._connection().disconnect()
        windows._client.close()


class TestWindow:
    @pytest.mark.parametrize(
        ("window", "used", "wait"),
        [
            pytest.param(Decision(True, 10, 0, 0, 0, 60), 0, 0, id="nothing yet"),
            pytest.param(Decision(True, 10, 0, 9, 20, 60), 9, 0, id="room for one"),
            pytest.param(
                Decision(False, 10, 0, 10, 20, 60), 10, 40.01, id="full: until this window becomes the previous one"
            ),
            pytest.param(Decision(False, 10, 10, 5, 30, 60), 10, 0.01, id="half of the previous still counts"),
            pytest.param(Decision(False, 10, 10, 5, 15, 60), 12, 15.01, id="more of it still counts"),
            pytest.param(Decision(False, 10, 0, 100, 0, 60), 100, 114.01, id="the limit was lowered"),
        ],
    )
    def test_counts_the_part_of_the_last_minute(self, window: Decision, used: int, wait: float) -> None:
        assert window.used == used
        assert window.retry_after == pytest.approx(wait)


@pytest.mark.requirement("FR-027")
class TestAgainstAPlainModel:
    @settings(max_examples=60, deadline=None)
    @given(timeline=TIMELINE, limit=st.integers(1, 20))
    def test_no_time_span_exceeds_the_bound_of_the_approximation(
        self, timeline: list[tuple[float, int]], limit: int
    ) -> None:
        """The approximation's bound: limit + limit x t / 60 in any t seconds up to a minute; never two bursts."""
        memory, clock = new_memory()
        granted: list[float] = []
        for wait, requests in timeline:
            clock.now += wait
            granted += [clock.now for _ in range(requests) if take(memory, limit=limit)]
        for at, first in enumerate(granted):
            for count, last in enumerate(granted[at:], start=1):
                if last - first <= LENGTH:
                    assert count <= limit + math.ceil(limit * (last - first) / LENGTH) + 1e-9

    @settings(max_examples=60, deadline=None)
    @given(timeline=TIMELINE, limit=st.integers(1, 20))
    def test_a_caller_that_waits_for_retry_after_is_admitted_and_not_much_earlier(
        self, timeline: list[tuple[float, int]], limit: int
    ) -> None:
        memory, clock = new_memory()
        for wait, requests in timeline:
            clock.now += wait
            for _ in range(requests):
                take(memory, limit=limit)
        [count] = memory.check([Check("acme", limit, is_counted=False)])
        wait = count.retry_after
        assert (wait == 0) == count.is_allowed
        if wait > 0.02:
            clock.now += wait - 0.02
            assert not memory.check([Check("acme", limit, is_counted=False)])[0].is_allowed
            clock.now += 0.02
            assert take(memory, limit=limit)

    @settings(max_examples=30, deadline=None)
    @given(limit=st.integers(1, 60))
    def test_a_steady_caller_just_below_the_limit_is_never_refused(self, limit: int) -> None:
        memory, clock = new_memory()
        for _ in range(limit * 3):
            clock.now += LENGTH / limit * 1.02
            assert take(memory, limit=limit)

    def test_two_bursts_at_the_edge_of_two_windows_count_together(self) -> None:
        """A fixed window would grant 100 in its last second and 100 more in the next."""
        memory, clock = new_memory()
        granted = int(take(memory, limit=100))
        clock.now += 59
        granted += sum(take(memory, limit=100) for _ in range(150))
        clock.now += 2
        granted += sum(take(memory, limit=100) for _ in range(150))
        assert 100 <= granted <= 103


class TestMemory:
    def test_reading_counts_nothing_and_keeps_nothing(self) -> None:
        memory, _ = new_memory()
        for _ in range(3):
            [count] = memory.check([Check("acme", 1, is_counted=False)])
            assert (count.is_allowed, count.used) == (True, 0)
        assert memory._buckets == {}

    def test_evicts_buckets_without_requests_for_two_windows(self) -> None:
        memory, clock = new_memory()
        for name in range(100):
            take(memory, f"caller {name}")
        clock.now += 2 * LENGTH
        take(memory, "another")
        assert list(memory._buckets) == ["another"]

    def test_many_addresses_do_not_fill_it_without_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MAX_BUCKETS", 50)
        memory, _ = new_memory()
        for name in range(200):
            take(memory, f"caller {name}")
        assert len(memory._buckets) == 50
        assert "caller 199" in memory._buckets


@pytest.mark.scaled
@pytest.mark.requirement("FR-027")
class TestRedis:
    def test_decides_as_memory_does(
        self, redis_windows: Callable[..., RedisWindows], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The real script, except that its clock is a list in Redis."""
        ours = "redis.call('TIME')"
        assert limits.SCRIPT.count(ours) == 1
        script = limits.SCRIPT.replace(ours, "redis.call('LRANGE', 'clock', 0, 1)")
        monkeypatch.setattr(limits, "SCRIPT", script)
        redis = redis_windows()

        @settings(max_examples=40, deadline=None)
        @example(timeline=[(60_000, 1), (60_000, 1), (60_001, 1)], limit=1)  # a refusal keeps nothing
        @given(timeline=st.lists(st.tuples(MILLISECONDS, st.integers(1, 8)), max_size=15), limit=st.integers(1, 12))
        def agree(timeline: list[tuple[int, int]], limit: int) -> None:
            forget(redis)
            clock = SimpleNamespace(now=1_700_000_000_000)  # milliseconds: whole numbers, so no rounding differs
            memory = MemoryWindows(length=LENGTH * 1000, clock=lambda: clock.now)
            for wait, requests in timeline:
                clock.now += wait
                redis._client.delete("clock")
                redis._client.rpush("clock", clock.now // 1000, clock.now % 1000 * 1000)
                for turn in range(requests):
                    asked = [Check("acme", limit, is_counted=turn != 1)]
                    [found], [expected] = redis.check(asked), memory.check(asked)
                    assert (found.is_allowed, *found[2:4]) == (expected.is_allowed, *expected[2:4])
                    assert round(found.elapsed * 1000) == expected.elapsed

        agree()

    def test_makes_all_checks_in_one_round_trip(self, redis_windows: Callable[..., RedisWindows]) -> None:
        redis = redis_windows()
        forget(redis)
        take(redis)
        before = redis._client.info("commandstats")
        first, second = redis.check([Check("free:acme", 100), Check("acme", 10, is_counted=False)])
        after = redis._client.info("commandstats")
        assert (first.used, second.used) == (1, 1)
        assert after["cmdstat_evalsha"]["calls"] - before["cmdstat_evalsha"]["calls"] == 1

    def test_counters_expire_after_two_windows(self, redis_windows: Callable[..., RedisWindows]) -> None:
        redis = redis_windows()
        forget(redis)
        take(redis)
        assert 119_000 < redis._client.pttl(f"{KEY_PREFIX}acme") <= 120_000

    @pytest.mark.fault
    def test_survives_a_flush_of_scripts_and_a_restart(
        self, redis_server: RedisServer, redis_windows: Callable[..., RedisWindows]
    ) -> None:
        redis = redis_windows()
        assert take(redis)
        redis._client.script_flush()
        assert take(redis)
        redis_server.stop()
        redis_server.start()
        assert take(redis)
