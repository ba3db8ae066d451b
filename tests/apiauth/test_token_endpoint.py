"""POST /token/generate-token."""

import pytest
from django.test import Client
from django.utils import timezone

from apiauth import keys
from apiauth.models import AccessLog
from tests.api_fixtures import Caller

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FR-026")]
PATH = "/token/generate-token"


def ask(client: Client, key: object, **more):
    return client.post(PATH, {"api_key": key}, content_type="application/json", **more)


class TestGenerateToken:
    def test_gives_a_token_that_opens_the_api(self, anonymous: Client, caller: Caller) -> None:
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

    def test_takes_the_key_from_a_header(self, anonymous: Client, caller: Caller) -> None:
        assert anonymous.post(PATH, headers={"X-API-Key": caller.issued.text}).status_code == 200

    @pytest.mark.parametrize("key", ["", "nonsense", "vl_0_0", "\x00", "ü", "x" * 201, None, 7, [], {"a": 1}])
    def test_refuses_what_is_not_a_key(self, anonymous: Client, key: object) -> None:
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
    def test_answers_a_body_it_cannot_read_with_a_problem(self, anonymous, body, kind, status) -> None:
        response = anonymous.post(PATH, body, content_type=kind)
        assert response.status_code == status
        assert response.json()["type"].startswith("/problems/")

    def test_writes_the_access_log(self, anonymous: Client, caller: Caller) -> None:
        ask(anonymous, "nonsense")
        ask(anonymous, caller.issued.text)
        refused, granted = AccessLog.objects.order_by("pk")
        assert (refused.response_status, refused.consumer) == (401, None)
        assert (granted.response_status, granted.consumer) == (200, caller.key.consumer)


class TestGuessing:
    def test_is_stopped_after_ten_wrong_keys_from_an_address(self, anonymous: Client, caller: Caller) -> None:
        assert {ask(anonymous, "nonsense").status_code for _ in range(10)} == {401}
        stopped = ask(anonymous, "nonsense")
        assert stopped.status_code == 429
        assert 1 <= int(stopped["Retry-After"]) <= 61
        assert ask(anonymous, caller.issued.text).status_code == 429
        assert ask(anonymous, caller.issued.text, REMOTE_ADDR="203.0.113.9").status_code == 200

    def test_is_not_made_easier_by_a_forged_header(self, anonymous: Client) -> None:
        answers = [
            ask(anonymous, "nonsense", headers={"X-Forwarded-For": f"198.51.100.{number}"}).status_code
            for number in range(12)
        ]
        assert answers[-1] == 429

    def test_right_keys_are_not_counted(self, anonymous: Client, caller: Caller) -> None:
        assert {ask(anonymous, caller.issued.text).status_code for _ in range(15)} == {200}
