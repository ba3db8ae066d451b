"""POST /token/generate-token."""

import time
from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apiauth import keys
from apiauth.api import token_view
from apiauth.models import AccessLog, ApiKey
from tests.api_fixtures import Caller
from tests.unreachable_database import known_to_be_away

__all__ = ["known_to_be_away"]

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FR-026")]
PATH = "/token/generate-token"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A stopped clock: no limit window ends during a test."""
    clock = SimpleNamespace(now=time.time())
    monkeypatch.setattr(time, "time", lambda: clock.now)
    return clock


def ask(client: Client, key: object, **more):
    return client.post(PATH, {"api_key": key}, content_type="application/json", **more)


class TestGenerateToken:
    def test_returns_a_token_that_the_api_accepts(self, anonymous: Client, caller: Caller) -> None:
        response = ask(anonymous, caller.issued.text)
        answer = response.json()
        assert response.status_code == 200
        assert (answer["token_type"], answer["expires_in"]) == ("Bearer", 86400)
        assert answer["expires_at"].endswith("Z")
        assert response["Cache-Control"] == "no-store"
        caller.token = answer["token"]
        assert caller.get("/api/v1/matches").status_code == 200
        caller.key.refresh_from_db()
        assert caller.key.last_used_at is not None

    @pytest.mark.parametrize("kind", ["", "application/json", "application/x-www-form-urlencoded"])
    def test_takes_the_key_from_a_header_without_a_body(self, anonymous: Client, caller: Caller, kind: str) -> None:
        """curl sends different headers for -X POST and -d ''."""
        headers = {"X-API-Key": caller.issued.text}
        assert anonymous.generic("POST", PATH, content_type=kind, headers=headers).status_code == 200

    @pytest.mark.parametrize("key", ["", "nonsense", "vl_0_0", "\x00", "ü", "x" * 201, None, 7, [], {"a": 1}])
    def test_refuses_an_invalid_key(self, anonymous: Client, key: object) -> None:
        response = ask(anonymous, key)
        assert response.status_code in {400, 401}
        assert response["Content-Type"] == "application/problem+json"

    def test_refuses_a_revoked_key(self, anonymous: Client, caller: Caller) -> None:
        keys.revoke(prefix=caller.key.prefix, now=timezone.now())
        response = ask(anonymous, caller.issued.text)
        assert response.status_code == 401
        assert response["WWW-Authenticate"]

    @pytest.mark.requirement("BX-22")
    @pytest.mark.parametrize(
        ("body", "kind", "status"),
        [
            (b"{", "application/json", 400),
            (b"[" * 100_000, "application/json", 400),
            (b'{"api_key": "\\ud800"}', "application/json", 400),
            (b'"text"', "application/json", 400),
            (b"[1]", "application/json", 400),
            (b"null", "application/json", 400),
            (b"\xff\xfe", "application/json", 400),
            (b" " * 300_000, "application/json", 413),
            (b"a=b", "application/x-www-form-urlencoded", 415),
            (b"{}", "application/json", 400),
        ],
    )
    def test_an_invalid_body_is_a_problem(self, anonymous, body, kind, status) -> None:
        response = anonymous.post(PATH, body, content_type=kind)
        assert response.status_code == status
        assert response.json()["type"].startswith("/problems/")

    def test_returns_a_token_if_the_last_use_cannot_be_written(
        self, anonymous: Client, caller: Caller, monkeypatch
    ) -> None:
        def busy(*_: object, **__: object) -> int:
            raise OperationalError("database is locked")

        monkeypatch.setattr(type(ApiKey.objects.all()), "update", busy)
        assert ask(anonymous, caller.issued.text).status_code == 200

    def test_has_a_retry_after_while_the_database_is_away(
        self, anonymous: Client, caller: Caller, known_to_be_away
    ) -> None:
        response = ask(anonymous, caller.issued.text)
        assert response.status_code == 503
        assert int(response["Retry-After"]) >= 1
        assert response["X-RateLimit-Limit"]

    def test_writes_the_access_log(self, anonymous: Client, caller: Caller) -> None:
        ask(anonymous, "nonsense")
        ask(anonymous, caller.issued.text)
        refused, granted = AccessLog.objects.order_by("pk")
        assert (refused.response_status, refused.consumer) == (401, None)
        assert (granted.response_status, granted.consumer) == (200, caller.key.consumer)


@pytest.mark.usefixtures("clock")
class TestLimit:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch) -> None:
        monkeypatch.setattr("apiauth.api.token_view.TOKENS_PER_MINUTE", 5)

    def test_counts_every_attempt_of_an_address(self, anonymous: Client, caller: Caller) -> None:
        answers = [ask(anonymous, caller.issued.text) for _ in range(4)]
        assert [answer["X-RateLimit-Remaining"] for answer in answers] == ["4", "3", "2", "1"]
        assert answers[0]["X-RateLimit-Limit"] == "5"
        assert answers[0]["X-RateLimit-Reset"]
        assert anonymous.post(PATH, b"{", content_type="application/json").status_code == 400
        refused = ask(anonymous, caller.issued.text)
        assert refused.status_code == 429
        assert "requested 5 tokens within a minute" in refused.json()["detail"]
        assert 1 <= int(refused["Retry-After"]) <= 61
        assert refused["X-RateLimit-Remaining"] == "0"
        assert refused["Cache-Control"] == "no-store"
        assert refused["Content-Type"] == "application/problem+json"
        assert ask(anonymous, caller.issued.text, REMOTE_ADDR="203.0.113.9").status_code == 200

    def test_counts_by_the_address_that_the_trusted_proxy_saw(
        self, settings, anonymous: Client, caller: Caller
    ) -> None:
        settings.CONFIG = settings.CONFIG.model_copy(update={"trusted_proxies": 1})
        statuses = [
            ask(
                anonymous,
                caller.issued.text,
                headers={"X-Forwarded-For": f"198.51.100.{number}, 203.0.113.{number % 2}"},
            ).status_code
            for number in range(12)
        ]
        assert statuses == [200] * 10 + [429] * 2

    def test_of_one_consumer_does_not_affect_another(self, anonymous: Client, caller: Caller) -> None:
        """The token endpoint costs no quota of the API."""
        for _ in range(5):
            ask(anonymous, caller.issued.text)
        assert caller.get("/api/v1/matches")["X-RateLimit-Remaining"] == "99"


@pytest.mark.usefixtures("clock")
class TestGuessing:
    def test_is_stopped_after_ten_wrong_keys_from_an_address(self, anonymous: Client, caller: Caller) -> None:
        assert {ask(anonymous, "nonsense").status_code for _ in range(10)} == {401}
        stopped = ask(anonymous, "nonsense")
        assert stopped.status_code == 429
        assert "10 wrong keys within a minute. Check the key, and try again in" in stopped.json()["detail"]
        assert 1 <= int(stopped["Retry-After"]) <= 61
        assert ask(anonymous, caller.issued.text).status_code == 429
        assert ask(anonymous, caller.issued.text, REMOTE_ADDR="203.0.113.9").status_code == 200

    def test_is_limited_despite_a_forged_header(self, anonymous: Client) -> None:
        answers = [
            ask(anonymous, "nonsense", headers={"X-Forwarded-For": f"198.51.100.{number}"}).status_code
            for number in range(12)
        ]
        assert answers[-1] == 429

    def test_of_one_key_from_many_addresses_does_not_block_its_owner(
        self, anonymous: Client, caller: Caller, monkeypatch, caplog
    ) -> None:
        monkeypatch.setattr(token_view, "FAILURES_OF_A_KEY_PER_MINUTE", 12)
        wrong = f"vl_{caller.key.prefix}.{'A' * 43}"
        statuses = [ask(anonymous, wrong, REMOTE_ADDR=f"203.0.113.{number}").status_code for number in range(14)]
        assert statuses == [401] * 12 + [429] * 2
        slowed = ask(anonymous, wrong, REMOTE_ADDR="203.0.113.99")
        assert 1 <= int(slowed["Retry-After"]) <= 61
        assert ask(anonymous, caller.issued.text, REMOTE_ADDR="203.0.113.100").status_code == 200
        assert caplog.text.count(f"Guessing at the key {caller.key.prefix}") == 1
        assert "A" * 43 not in caplog.text

    def test_is_logged_once_a_minute(
        self,
        anonymous: Client,
        caller: Caller,
        clock: SimpleNamespace,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setattr(token_view, "FAILURES_OF_A_KEY_PER_MINUTE", 6)
        for number in range(150):
            ask(anonymous, f"vl_{caller.key.prefix}.{'A' * 43}", REMOTE_ADDR=f"203.0.113.{number}")
            clock.now += 2
        assert 5 <= caplog.text.count(f"Guessing at the key {caller.key.prefix}") <= 6

    def test_is_refused_before_the_key_is_verified(self, anonymous: Client, caller: Caller) -> None:
        for _ in range(10):
            ask(anonymous, "nonsense")
        assert ask(anonymous, caller.issued.text).status_code == 429

    def test_gets_the_same_response_for_existing_and_unknown_keys(self, anonymous: Client, caller: Caller) -> None:
        answers = [
            ask(anonymous, f"vl_{prefix}.{'A' * 43}", REMOTE_ADDR="203.0.113.7")
            for prefix in (caller.key.prefix, "0" * 12)
        ]
        known, unknown = ({**answer.json(), "request_id": ""} for answer in answers)
        assert known == unknown
        with CaptureQueriesContext(connection) as asked:
            for prefix in (caller.key.prefix, "0" * 12):
                keys.verify(f"vl_{prefix}.{'A' * 43}", timezone.now())
        assert len(asked) == 2

    def test_valid_keys_are_not_counted(self, anonymous: Client, caller: Caller) -> None:
        assert {ask(anonymous, caller.issued.text).status_code for _ in range(15)} == {200}
