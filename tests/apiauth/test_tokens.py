"""Which tokens are accepted, over HTTP as a caller sees it."""

from datetime import timedelta
from typing import Any

import jwt
import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apiauth import keys, principals, tokens
from apiauth.models import Consumer
from tests.api_fixtures import Caller

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FR-026")]
LIST = "/api/v1/matches"


def claims_of(caller: Caller) -> dict[str, Any]:
    return jwt.decode(caller.token, options={"verify_signature": False})


def forge(caller: Caller, sign: str | None = None, algorithm: str = "HS256", without: str = "", **changes: Any) -> str:
    claims = claims_of(caller) | changes
    claims.pop(without, None)
    return jwt.encode(claims, django_settings.JWT_SIGNING_KEY if sign is None else sign, algorithm=algorithm)


def refused(response: Any) -> bool:
    problem = response.json()
    assert response.status_code == 401, problem
    assert response["Content-Type"] == "application/problem+json"
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert problem["type"] == "/problems/unauthorized"
    return True


class TestWhatATokenSays:
    def test_lasts_a_day_and_names_consumer_tier_and_scopes(self, caller: Caller) -> None:
        claims = claims_of(caller)
        assert claims["exp"] - claims["iat"] == 24 * 3600
        assert (claims["aud"], claims["iss"]) == ("victoryline-api", "victoryline")
        assert claims["consumer_id"] == str(caller.key.consumer.consumer_id)
        assert (claims["key"], claims["tier"], claims["scopes"]) == (caller.key.prefix, "standard", ["read"])
        assert claims["jti"]

    def test_never_outlives_its_key(self, caller: Caller) -> None:
        now = timezone.now()
        caller.key.expires_at = now + timedelta(hours=1)
        assert tokens.make(caller.key, now).expires_at == caller.key.expires_at

    def test_is_not_signed_with_the_key_of_sessions(self, caller: Caller) -> None:
        assert django_settings.JWT_SIGNING_KEY != django_settings.SECRET_KEY


class TestRefusals:
    def test_of_no_token(self, anonymous) -> None:
        assert refused(anonymous.get(LIST))

    @pytest.mark.parametrize(
        "header",
        ["Bearer", "Bearer ", "Basic dXNlcjpwdw==", "Bearer a b", "Bearer x", "Bearer ü", "Bearer " + "x" * 9000],
    )
    def test_of_a_malformed_header(self, anonymous, header: str) -> None:
        assert refused(anonymous.get(LIST, headers={"Authorization": header}))

    @pytest.mark.parametrize(
        "changes",
        [
            {"exp": 1_700_000_000},
            {"aud": "somebody-else"},
            {"iss": "somebody-else"},
            {"key": "000000000000"},
            {"key": "\x00"},
            {"key": 7},
            {"key": {"a": "b"}},
            {"iat": 99_999_999_999},
            {"nbf": 99_999_999_999},
            {"exp": "soon"},
            *({"without": claim} for claim in ("exp", "iat", "aud", "iss", "sub", "jti", "key")),
        ],
        ids=str,
    )
    def test_of_wrong_and_missing_claims(self, caller: Caller, changes: dict[str, Any]) -> None:
        caller.token = forge(caller, **changes)
        assert refused(caller.get(LIST))

    def test_of_another_signature(self, caller: Caller) -> None:
        caller.token = forge(caller, sign="another key that is just as long as the right one would be")
        assert refused(caller.get(LIST))

    def test_of_the_algorithm_none(self, caller: Caller) -> None:
        caller.token = forge(caller, sign="", algorithm="none")
        assert refused(caller.get(LIST))

    def test_of_another_algorithm(self, caller: Caller) -> None:
        # HS512 wants a longer key than ours might be; only the refusal matters here.
        caller.token = forge(caller, sign=django_settings.JWT_SIGNING_KEY * 3, algorithm="HS512")
        assert refused(caller.get(LIST))

    def test_of_a_revoked_key_at_once(self, caller: Caller) -> None:
        assert caller.get(LIST).status_code == 200
        keys.revoke(prefix=caller.key.prefix, now=timezone.now())
        assert refused(caller.get(LIST))

    def test_of_an_inactive_consumer_when_the_memory_is_over(self, caller: Caller, monkeypatch) -> None:
        assert caller.get(LIST).status_code == 200
        Consumer.objects.update(is_active=False)
        assert principals.MEMORY_SECONDS <= 5
        monkeypatch.setattr("apiauth.principals.time.monotonic", lambda: 10**9)
        assert refused(caller.get(LIST))

    def test_of_an_expired_key_even_while_remembered(self, caller: Caller) -> None:
        caller.key.expires_at = timezone.now() - timedelta(seconds=1)
        caller.key.save()
        assert refused(caller.get(LIST))


class TestMemory:
    def test_asks_the_database_for_the_key_once(self, caller: Caller) -> None:
        caller.get(LIST)
        with CaptureQueriesContext(connection) as asked:
            caller.get(LIST)
        assert not [query for query in asked if "apiauth_apikey" in query["sql"]]

    def test_takes_scopes_from_the_database_and_not_from_the_token(self, caller: Caller) -> None:
        caller.token = forge(caller, scopes=["read", "operate"], tier="premium")
        assert caller.post(f"{LIST}/1/pause").status_code == 403
        assert caller.get(LIST)["X-RateLimit-Limit"] == "100"
