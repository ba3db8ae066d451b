"""Limits of open addresses: by caller's address, shared over Redis, and never an error while Redis is away."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import caches
from django.test import Client, RequestFactory

from tests.api_fixtures import forget_open_limits
from tests.patience import wait_for
from tests.servers import RedisServer, free_port
from victoryline.lib import availability
from victoryline.lib.caches import LimitCache
from victoryline.lib.http import open_limits
from victoryline.lib.http.open_limits import usage_of

pytestmark = pytest.mark.django_db
HTML = {"Accept": "text/html"}


@pytest.fixture(autouse=True)
def empty_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empties the counters and stops the clock, so that no window ends during a test."""
    forget_open_limits()
    now = time.time()
    monkeypatch.setattr("django_ratelimit.core.time.time", lambda: now)


@pytest.fixture
def limit_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    def limit_to(path: str, per_minute: int) -> None:
        monkeypatch.setitem(open_limits.OPEN_ADDRESSES, path, per_minute)

    return limit_to


@pytest.fixture
def use_redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], LimitCache]]:
    """Lets django-ratelimit count in another Redis."""
    made: list[LimitCache] = []

    def use_redis(url: str) -> LimitCache:
        made.append(LimitCache(url, {"KEY_PREFIX": "test"}))
        monkeypatch.setattr("django_ratelimit.core.caches", {"limits": made[-1]})
        return made[-1]

    yield use_redis
    for cache in made:
        cache._redis._cache.get_client().connection_pool.disconnect()


class TestMiddleware:
    @pytest.mark.parametrize("path", ["/", "/status", "/status/", "/metrics"])
    def test_refuses_an_address_beyond_the_limit(self, client: Client, limit_to: Any, path: str) -> None:
        limit_to(path.rstrip("/"), 3)
        answers = [client.get(path) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        refusal = answers[-1]
        assert refusal.json()["code"] == "too-many-requests"
        assert 1 <= int(refusal["Retry-After"]) <= 60
        assert (refusal["X-RateLimit-Limit"], refusal["X-RateLimit-Remaining"]) == ("3", "0")
        assert client.get(path, REMOTE_ADDR="10.0.0.9").status_code == 200

    def test_shows_people_a_page(self, client: Client, limit_to: Any) -> None:
        limit_to("", 0)
        refusal = client.get("/", headers=HTML)
        assert refusal.status_code == 429
        assert "Try again in" in refusal.content.decode()

    def test_counts_a_login_when_it_is_sent(self, client: Client, limit_to: Any) -> None:
        limit_to("/admin/login", 2)
        assert {client.get("/admin/login/").status_code for _ in range(5)} == {200}
        sent = {"username": "anna", "password": "wrong"}
        statuses = [client.post("/admin/login/", sent, headers=HTML).status_code for _ in range(4)]
        assert statuses == [200, 200, 429, 429]

    def test_leaves_probes_alone(self, client: Client) -> None:
        limits = open_limits.OPEN_ADDRESSES
        assert not any(path.startswith("/health") for path in limits)
        assert limits["/status"] >= 15 * 60  # fifteen open status pages at one address
        assert limits["/metrics"] >= 2 * 12  # two Prometheus servers, every 5 s

    @pytest.mark.parametrize("forwarded", ["1.2.3.4, 5.6.7.8", "rubbish", "[::1]:80, ,", "\x00", "::1"])
    @pytest.mark.parametrize("proxies", [0, 1, 2])
    def test_survives_any_forwarding_header(self, client: Client, settings: Any, forwarded: str, proxies: int) -> None:
        settings.CONFIG = settings.CONFIG.model_copy(update={"trusted_proxies": proxies})
        assert client.get("/status", headers={"X-Forwarded-For": forwarded}).status_code == 200
        assert client.get("/status", REMOTE_ADDR="").status_code == 200


@pytest.mark.fault
@pytest.mark.fault_number(9)
class TestRedisAway:
    def test_limits_in_memory_and_never_fails(self, client: Client, limit_to: Any, use_redis: Any) -> None:
        use_redis(f"redis://127.0.0.1:{free_port()}/0")
        for path in ("", "/status", "/metrics"):
            limit_to(path, 2)
            assert [client.get(path or "/").status_code for _ in range(4)] == [200, 200, 429, 429]
        limit_to("/admin/login", 1)
        sent = {"username": "anna", "password": "wrong"}
        assert [client.post("/admin/login/", sent).status_code for _ in range(3)] == [200, 429, 429]
        answers = [
            client.post("/token/generate-token", {"api_key": "wrong"}, content_type="application/json").status_code
            for _ in range(12)
        ]
        assert answers == [401] * 10 + [429] * 2

    @pytest.mark.scaled
    @pytest.mark.parametrize("how", ["stopped", "frozen"])
    def test_waits_for_redis_once_at_most(self, redis_server: RedisServer, use_redis: Any, how: str) -> None:
        use_redis(redis_server.url)
        request = RequestFactory().get("/")
        assert usage_of(request, how, "acme", 30).requests == 1
        redis_server.stop() if how == "stopped" else redis_server.pause()
        try:
            began = time.monotonic()
            counts = [usage_of(request, how, "acme", 30).requests for _ in range(20)]
            assert counts == list(range(1, 21))
            assert time.monotonic() - began < 20 * availability.REDIS_TIMEOUT_SECONDS / 2
        finally:
            redis_server.start() if how == "stopped" else redis_server.resume()
        wait_for(lambda: not availability.redis(redis_server.url).is_away(), seconds=10, what="Redis is back")
        assert usage_of(request, how, "other", 30).requests == 1


@pytest.mark.scaled
class TestRedis:
    def test_processes_share_one_count(self, redis_server: RedisServer, use_redis: Any) -> None:
        request = RequestFactory().get("/")
        for expected in (1, 2, 3):
            use_redis(redis_server.url)
            assert usage_of(request, "shared", "acme", 30).requests == expected

    def test_never_unpickles(self, redis_server: RedisServer, use_redis: Any) -> None:
        cache = use_redis(redis_server.url)
        cache.add("counter", 1, 60)
        client = cache._redis._cache.get_client()
        client.set(cache._redis.make_key("counter"), b"\x80\x04N.")
        assert cache.get("counter") == 0


def test_the_installed_cache_is_the_one_that_degrades() -> None:
    assert isinstance(caches["limits"], LimitCache)
