"""Limits by tier and by address, free requests, and limits while Redis is away."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import redis
from django.test import Client
from django.utils import timezone

from apiauth import keys, limits
from apiauth.limits import Limiter
from apiauth.models import Consumer, Tier
from tests.api_fixtures import Caller
from tests.patience import wait_for
from tests.servers import RedisServer, free_port
from victoryline.lib import availability

LIST = "/api/v1/matches"


@pytest.fixture
def small_limits(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiauth.authentication.STRANGERS_PER_MINUTE", 4)
    settings.CONFIG = settings.CONFIG.model_copy(
        update={
            "rate_limit_standard_per_minute": 3,
            "rate_limit_premium_per_minute": 6,
        }
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of the counters in memory."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(limits.limiter()._memory, "_clock", lambda: clock.now)
    return clock


def standing(response: Any) -> tuple[int, str, str]:
    return response.status_code, response["X-RateLimit-Limit"], response["X-RateLimit-Remaining"]


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
        assert (problem["type"], problem["code"]) == ("/problems/too-many-requests", "too-many-requests")
        assert problem["retry_after"] == int(refusal["Retry-After"])
        assert (problem["limit"], problem["tier"]) == (3, "standard")
        assert "Wait" in problem["what_to_do"]

    @pytest.mark.usefixtures("small_limits")
    def test_are_counted_by_consumer_and_not_by_token(self, caller: Caller) -> None:
        for _ in range(3):
            caller.get(LIST)
        assert Caller(name="acme").get(LIST).status_code == 429
        assert Caller(name="another").get(LIST).status_code == 200
        assert Caller(name="better paying", tier=Tier.PREMIUM).get(LIST)["X-RateLimit-Remaining"] == "5"

    @pytest.mark.usefixtures("small_limits")
    def test_may_be_set_for_one_consumer(self, caller: Caller) -> None:
        Consumer.objects.filter(pk=caller.key.consumer_id).update(tier=Tier.CUSTOM, requests_per_minute=2)
        assert [standing(caller.get(LIST)) for _ in range(3)] == [(200, "2", "1"), (200, "2", "0"), (429, "2", "0")]
        assert caller.get(LIST).json()["tier"] == "custom"


@pytest.mark.django_db
@pytest.mark.requirement("FR-027")
class TestRetryAfter:
    @pytest.mark.usefixtures("small_limits")
    def test_a_request_after_it_succeeds_and_one_before_it_is_refused(
        self, caller: Caller, clock: SimpleNamespace
    ) -> None:
        for wait in (0, 7, 20, 41, 3):  # wherever in a window
            clock.now += wait
            while (refusal := caller.get(LIST)).status_code == 200:
                pass
            clock.now += int(refusal["Retry-After"]) - 1.1
            assert caller.get(LIST).status_code == 429
            clock.now += 1.1
            assert caller.get(LIST).status_code == 200


@pytest.mark.django_db
@pytest.mark.requirement("FR-027")
class TestEveryAnswer:
    """Every response of a protected address has the limit headers."""

    @pytest.mark.parametrize(
        ("status", "ask"),
        [
            pytest.param(200, lambda c: c.get(LIST), id="200"),
            pytest.param(304, lambda c: c.get(LIST, If_None_Match=c.get(LIST)["ETag"]), id="304"),
            pytest.param(400, lambda c: c.get(f"{LIST}?limit=x"), id="400"),
            pytest.param(403, lambda c: c.post("/api/scrape/retry-failed"), id="403"),
            pytest.param(404, lambda c: c.get(f"{LIST}/999"), id="404"),
            pytest.param(404, lambda c: c.get("/api/v1/nothing"), id="an unknown address"),
            pytest.param(404, lambda c: c.post("/cricket-data/nothing/"), id="an unknown address with a slash"),
            pytest.param(404, lambda c: c.get("/cricket-data2"), id="an unknown path below a known one"),
            pytest.param(404, lambda c: c.get("/token/"), id="a folder"),
            pytest.param(405, lambda c: c.client.delete(LIST, headers=c._headers({})), id="405"),
            pytest.param(204, lambda c: c.client.options(LIST, headers=c._headers({})), id="OPTIONS"),
            pytest.param(200, lambda c: c.client.head(LIST, headers=c._headers({})), id="HEAD"),
        ],
    )
    def test_to_a_consumer(self, caller: Caller, status: int, ask: Callable[[Caller], Any]) -> None:
        response = ask(caller)
        assert (response.status_code, response["X-RateLimit-Limit"]) == (status, "100")
        assert response["X-RateLimit-Remaining"] == "99"
        assert time.time() < int(response["X-RateLimit-Reset"]) <= time.time() + 61

    @pytest.mark.parametrize(("status", "kind"), [(415, "text/plain"), (400, "application/json")])
    def test_to_an_invalid_body(self, operator: Caller, status: int, kind: str) -> None:
        sent = operator.client.post("/api/scrape", "{", content_type=kind, headers=operator._headers({}))
        assert standing(sent) == (status, "1000", "999")

    def test_to_a_body_that_is_too_large(self, operator: Caller) -> None:
        body = b" " * (256 * 1024 + 1)
        sent = operator.client.post("/api/scrape", body, content_type="application/json", headers=operator._headers({}))
        assert standing(sent) == (413, "1000", "999")

    def test_with_a_server_error(self, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object, **__: object) -> None:
            raise RuntimeError

        monkeypatch.setattr("scraping.api.match_lists.MatchListView.find", broken)
        assert standing(caller.get(LIST)) == (500, "100", "99")
        assert standing(caller.get(LIST, If_None_Match='"x"')) == (500, "100", "99")

    @pytest.mark.parametrize("header", ["", "Bearer x.y.z", "Basic abc"])
    def test_to_an_anonymous_caller(self, anonymous: Client, header: str) -> None:
        response = anonymous.get(LIST, headers={"Authorization": header} if header else {})
        assert standing(response) == (401, "60", "59")


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.requirement("FR-027")
@pytest.mark.usefixtures("small_limits")
class TestAnonymousCallers:
    def test_are_limited_by_address(self, anonymous: Client) -> None:
        statuses = [anonymous.get(LIST, REMOTE_ADDR="192.0.2.1").status_code for _ in range(5)]
        assert statuses == [401, 401, 401, 401, 429]
        refusal = anonymous.get(LIST, REMOTE_ADDR="192.0.2.1")
        assert refusal.json()["tier"] == "anonymous"
        assert 1 <= int(refusal["Retry-After"]) <= 121
        assert anonymous.get(LIST, REMOTE_ADDR="192.0.2.2").status_code == 401

    @pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer a.b.c"}])
    def test_are_limited_on_unknown_addresses(self, anonymous: Client, header: dict[str, str]) -> None:
        answers = [anonymous.get(f"/api/v1/nothing-{attempt}", headers=header) for attempt in range(5)]
        assert [each.status_code for each in answers] == [404, 404, 404, 404, 429]
        assert [each["X-RateLimit-Remaining"] for each in answers] == ["3", "2", "1", "0", "0"]

    def test_are_limited_when_guessing_tokens(self, anonymous: Client) -> None:
        statuses = [
            anonymous.get(LIST, headers={"Authorization": f"Bearer a.b.{attempt}"}).status_code for attempt in range(6)
        ]
        assert statuses == [401, 401, 401, 401, 429, 429]

    def test_do_not_limit_a_consumer_at_the_same_address(self, anonymous: Client, caller: Caller) -> None:
        while anonymous.get(LIST).status_code == 401:
            pass
        assert caller.get(LIST).status_code == 200

    @pytest.mark.parametrize("proxies", [0, 1])
    def test_are_limited_despite_forged_headers(self, anonymous: Client, settings: Any, proxies: int) -> None:
        """Without a trusted proxy the header is ignored; behind one, only its own entry counts."""
        settings.CONFIG = settings.CONFIG.model_copy(update={"trusted_proxies": proxies})
        added = ", 192.0.2.7" * proxies
        statuses = [
            anonymous.get(LIST, headers={"X-Forwarded-For": f"203.0.113.{attempt}{added}"}).status_code
            for attempt in range(5)
        ]
        assert statuses == [401, 401, 401, 401, 429]

    def test_include_callers_with_a_revoked_key(self, caller: Caller, anonymous: Client) -> None:
        keys.revoke(prefix=caller.key.prefix, now=timezone.now())
        assert [caller.get(LIST).status_code for _ in range(5)] == [401, 401, 401, 401, 429]

    @pytest.mark.parametrize("path", ["/health/live", "/api/schema", "/problems"])
    def test_may_read_open_addresses(self, anonymous: Client, path: str) -> None:
        while anonymous.get(LIST).status_code == 401:
            pass
        assert anonymous.get(path).status_code == 200


@pytest.mark.django_db
class TestFreeAnswers:
    @pytest.mark.usefixtures("small_limits")
    def test_beyond_both_limits_no_query_is_made(self, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        etag = caller.get(LIST)["ETag"]
        answers = [caller.get(LIST, If_None_Match=etag).status_code for _ in range(30)]
        assert set(answers) == {304}
        look_up = Mock()
        monkeypatch.setattr("scraping.documents.queries.compared_columns", look_up)
        limits.limiter().take(str(caller.key.consumer.consumer_id), 3)
        limits.limiter().take(str(caller.key.consumer.consumer_id), 3)
        assert caller.get(LIST, If_None_Match=etag).status_code == 429
        look_up.assert_not_called()

    @pytest.mark.usefixtures("small_limits")
    def test_cost_quota_when_the_free_ones_are_used_up(self, caller: Caller) -> None:
        etag = caller.get(LIST)["ETag"]
        answers = [caller.get(LIST, If_None_Match=etag) for _ in range(33)]
        assert [answer.status_code for answer in answers[29:]] == [304, 304, 304, 429]
        assert [answer["X-RateLimit-Remaining"] for answer in answers[29:]] == ["2", "1", "0", "0"]

    @pytest.mark.requirement("FR-027")
    @pytest.mark.usefixtures("small_limits")
    def test_of_usage_cost_nothing_and_agree_with_the_headers(self, caller: Caller) -> None:
        caller.get(LIST)
        for _ in range(5):
            response = caller.get("/api/v1/usage")
            limits_now = response.json()["limits"]
            assert standing(response) == (200, "3", "2")
            assert (limits_now["per_minute"], limits_now["remaining"]) == (3, 2)
        while caller.get(LIST).status_code == 200:
            pass
        assert standing(caller.get("/api/v1/usage")) == (200, "3", "0")  # also when nothing is left

    @pytest.mark.usefixtures("small_limits")
    def test_of_usage_have_a_high_limit(self, caller: Caller) -> None:
        statuses = [caller.get("/api/v1/usage").status_code for _ in range(34)]
        assert statuses == [200] * 33 + [429]  # ten times the limit without quota, then three with quota


class TestRedisAway:
    @pytest.fixture
    def fallbacks(self) -> Any:
        before = limits.fallback_total._value.get()
        return lambda: limits.fallback_total._value.get() - before

    @pytest.mark.fault
    def test_limits_in_memory_and_logs_it_once(self, fallbacks, caplog: pytest.LogCaptureFixture) -> None:
        limiter = Limiter(f"redis://127.0.0.1:{free_port()}/0")
        verdicts = [limiter.take("acme", 2).is_allowed for _ in range(3)]
        assert verdicts == [True, True, False]
        assert fallbacks() == 3
        assert [record.action for record in caplog.records] == ["redis_away"]

    @pytest.mark.fault
    @pytest.mark.django_db
    @pytest.mark.usefixtures("small_limits")
    def test_every_address_still_answers(
        self, caller: Caller, anonymous: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        away = Limiter(f"redis://127.0.0.1:{free_port()}/0")
        monkeypatch.setattr("apiauth.authentication.limiter", lambda: away)
        assert [caller.get(LIST).status_code for _ in range(4)] == [200, 200, 200, 429]
        assert caller.get(LIST)["X-RateLimit-Limit"] == "3"
        assert [anonymous.get(LIST).status_code for _ in range(5)] == [401, 401, 401, 401, 429]
        asked = {"api_key": caller.issued.text}
        assert anonymous.post("/token/generate-token", asked, content_type="application/json").status_code == 200

    @pytest.mark.fault
    @pytest.mark.fault_number(9)
    @pytest.mark.scaled
    @pytest.mark.requirement("FR-027")
    @pytest.mark.parametrize("how", ["stopped", "frozen", "full"])
    def test_costs_a_quarter_of_a_second_once_and_no_error(
        self, redis_server: RedisServer, fallbacks: Callable[[], float], how: str
    ) -> None:
        limiter = Limiter(redis_server.url)
        bucket = f"acme {how}"
        assert limiter.take(bucket, 30).rate_limit.remaining == 29
        before = fallbacks()
        half_of_what_asking_costs = 20 * availability.REDIS_TIMEOUT_SECONDS / 2  # each time, from one that is frozen
        with out_of_order(redis_server, how):
            began = time.monotonic()
            assert all(limiter.take(bucket, 30).is_allowed for _ in range(20))
            assert time.monotonic() - began < half_of_what_asking_costs
            began = time.monotonic()
            verdicts = [limiter.take(bucket, 30).is_allowed for _ in range(20)]
            assert time.monotonic() - began < half_of_what_asking_costs
            assert verdicts == [True] * 10 + [False] * 10  # limited all the same
            assert fallbacks() - before == 40
        wait_for(
            lambda: not availability.redis(redis_server.url).is_away(), seconds=10, what="Redis is reachable again"
        )
        assert limiter.take(bucket, 30).is_allowed
        assert fallbacks() - before == 40

    @pytest.mark.scaled
    @pytest.mark.requirement("FR-027")
    def test_two_processes_share_one_count(self, redis_server: RedisServer) -> None:
        one, other = Limiter(redis_server.url), Limiter(redis_server.url)
        assert one.take("shared", 2).is_allowed
        assert other.take("shared", 2).is_allowed
        assert not one.take("shared", 2).is_allowed
        assert 1 <= one.check(limits.Check("shared", 2, is_counted=False))[0].retry_after <= 61


@contextmanager
def out_of_order(server: RedisServer, how: str) -> Iterator[None]:
    match how:
        case "stopped":
            server.stop()
        case "frozen":
            server.pause()
        case "full":
            set_memory(server, "1")
    try:
        yield
    finally:
        match how:
            case "stopped":
                server.start()
            case "frozen":
                server.resume()
            case "full":
                set_memory(server, "0")


def set_memory(server: RedisServer, limit: str) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", limit)
