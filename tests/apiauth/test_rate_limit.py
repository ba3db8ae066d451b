"""Limits by tier, and what happens to them when Redis is away."""

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from apiauth import rate_limit
from apiauth.models import Tier
from apiauth.rate_limit import Limiter, Window
from tests.api_fixtures import Caller
from tests.servers import RedisServer, free_port
from tests.system import wait_for
from victoryline.lib import presence

LIST = "/api/v1/matches"


@pytest.fixture
def small_limits(settings: Any) -> None:
    settings.CONFIG = replace(settings.CONFIG, rate_limit_standard_per_minute=3, rate_limit_premium_per_minute=6)


class TestWindow:
    @pytest.mark.parametrize(
        ("window", "limit", "used", "wait"),
        [
            pytest.param(Window(0, 0, 0, 0, 60), 10, 0, 0, id="nothing yet"),
            pytest.param(Window(0, 0, 9, 100, 60), 10, 9, 0, id="room for one"),
            pytest.param(
                Window(0, 0, 10, 100, 60), 10, 10, 40.01, id="full: until this window becomes the previous one"
            ),
            pytest.param(Window(10, 30, 5, 90, 60), 10, 10, 0.01, id="half of the previous still counts"),
            pytest.param(Window(10, 45, 5, 105, 60), 10, 12, 15.01, id="more of it still counts"),
        ],
    )
    def test_counts_the_part_of_the_last_minute(self, window: Window, limit: int, used: int, wait: float) -> None:
        assert window.used() == used
        assert window.seconds_until_room(limit) == pytest.approx(wait)

    @pytest.mark.requirement("FR-027")
    def test_lets_nobody_double_the_limit_at_the_edge_of_two_windows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A fixed window would grant 100 in its last second and 100 more in the next."""
        clock = SimpleNamespace(now=1_700_000_099.0)  # one second before a minute of the clock ends
        monkeypatch.setattr("limits.storage.memory.time.time", lambda: clock.now)
        limiter = Limiter("")
        granted = sum(limiter.take("acme", 100).is_allowed for _ in range(150))
        clock.now += 2
        granted += sum(limiter.take("acme", 100).is_allowed for _ in range(150))
        assert 100 <= granted <= 103

    def test_the_promised_wait_is_enough_and_not_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = SimpleNamespace(now=1_700_000_071.5)
        monkeypatch.setattr("limits.storage.memory.time.time", lambda: clock.now)
        limiter = Limiter("")
        while limiter.take("acme", 10).is_allowed:
            clock.now += 0.5
        wait = limiter.peek("acme", 10).retry_after
        clock.now += wait - 0.5
        assert not limiter.peek("acme", 10).is_allowed
        clock.now += 0.5
        assert limiter.take("acme", 10).is_allowed


class TestMemory:
    def test_clears_old_counters_without_a_thread_for_every_hit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        limiter = Limiter("")
        limiter._memory.timer.join()
        start = Mock()
        monkeypatch.setattr("limits.storage.memory.threading.Timer.start", start)
        for _ in range(50):
            limiter.take("acme", 100)
        assert start.call_count == 1


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.requirement("FR-027")
class TestTiers:
    def test_are_100_and_1000_a_minute(self, caller: Caller, operator: Caller) -> None:
        assert caller.get(LIST)["X-RateLimit-Limit"] == "100"
        assert operator.get(LIST)["X-RateLimit-Limit"] == "1000"

    @pytest.mark.usefixtures("small_limits")
    def test_count_down_and_end_in_429(self, caller: Caller) -> None:
        answers = [caller.get(LIST) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert [answer["X-RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0"]
        refusal = answers[-1]
        assert 1 <= int(refusal["Retry-After"]) <= 121
        assert int(refusal["X-RateLimit-Reset"]) >= int(time.time())
        problem = refusal.json()
        assert problem["type"] == "/problems/too-many-requests"
        assert problem["retry_after"] == int(refusal["Retry-After"])

    @pytest.mark.usefixtures("small_limits")
    def test_are_counted_by_consumer_and_not_by_token(self, caller: Caller) -> None:
        for _ in range(3):
            caller.get(LIST)
        assert Caller(name="acme").get(LIST).status_code == 429
        assert Caller(name="somebody else").get(LIST).status_code == 200
        assert Caller(name="better paying", tier=Tier.PREMIUM).get(LIST)["X-RateLimit-Remaining"] == "5"


@pytest.mark.django_db
class TestFreeAnswers:
    @pytest.mark.usefixtures("small_limits")
    def test_beyond_both_limits_nothing_is_looked_up(self, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        etag = caller.get(LIST)["ETag"]
        answers = [caller.get(LIST, If_None_Match=etag).status_code for _ in range(30)]
        assert set(answers) == {304}
        look_up = Mock()
        monkeypatch.setattr("scraping.queries.page_of_matches", look_up)
        rate_limit.limiter().take(caller.key.consumer.consumer_id, 3)
        rate_limit.limiter().take(caller.key.consumer.consumer_id, 3)
        assert caller.get(LIST, If_None_Match=etag).status_code == 429
        look_up.assert_not_called()

    @pytest.mark.usefixtures("small_limits")
    def test_cost_quota_once_they_are_used_up(self, caller: Caller) -> None:
        etag = caller.get(LIST)["ETag"]
        answers = [caller.get(LIST, If_None_Match=etag) for _ in range(33)]
        assert [answer.status_code for answer in answers[29:]] == [304, 304, 304, 429]
        assert [answer["X-RateLimit-Remaining"] for answer in answers[29:]] == ["2", "1", "0", "0"]


class TestRedisAway:
    @pytest.fixture
    def fallbacks(self) -> Any:
        before = rate_limit.fallback_total._value.get()
        return lambda: rate_limit.fallback_total._value.get() - before

    @pytest.mark.fault
    def test_limits_in_memory_and_says_so_once(self, fallbacks, caplog: pytest.LogCaptureFixture) -> None:
        limiter = Limiter(f"redis://127.0.0.1:{free_port()}/0")
        verdicts = [limiter.take("acme", 2).is_allowed for _ in range(3)]
        assert verdicts == [True, True, False]
        assert fallbacks() == 3
        assert [record.action for record in caplog.records] == ["redis_away"]

    @pytest.mark.fault
    @pytest.mark.scaled
    def test_a_frozen_redis_costs_a_quarter_of_a_second_once(self, redis_server: RedisServer, fallbacks) -> None:
        limiter = Limiter(redis_server.url)
        assert limiter.take("acme", 100).rate_limit.remaining == 99
        redis_server.pause()
        try:
            began = time.monotonic()
            assert all(limiter.take("acme", 100).is_allowed for _ in range(20))
            assert time.monotonic() - began < 2
            began = time.monotonic()
            assert all(limiter.take("acme", 100).is_allowed for _ in range(20))
            assert time.monotonic() - began < presence.REDIS_TIMEOUT_SECONDS  # nobody asks Redis meanwhile
            assert fallbacks() == 40
        finally:
            redis_server.resume()
        wait_for(lambda: not presence.redis(redis_server.url).is_away(), seconds=10, what="Redis is found back")
        assert limiter.take("acme", 100).is_allowed
        assert fallbacks() == 40

    @pytest.mark.scaled
    @pytest.mark.requirement("FR-027")
    def test_two_processes_share_one_count(self, redis_server: RedisServer) -> None:
        one, other = Limiter(redis_server.url), Limiter(redis_server.url)
        assert one.take("shared", 2).is_allowed
        assert other.take("shared", 2).is_allowed
        assert not one.take("shared", 2).is_allowed
        assert 1 <= one.peek("shared", 2).retry_after <= 61
