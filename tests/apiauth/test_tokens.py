"""Accepted and refused tokens, over HTTP."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cachetools import FIFOCache
from django.conf import settings as django_settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apiauth import authentication, keys, tokens
from apiauth.models import Consumer
from tests.api_fixtures import Caller

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("FR-026")]
LIST = "/api/v1/matches"
REQUIRED = ("exp", "iat", "aud", "iss", "sub", "jti", "key")


def claims_of(caller: Caller) -> dict[str, Any]:
    return jwt.decode(caller.token, options={"verify_signature": False})


def forge(
    caller: Caller,
    *,
    sign: str | None = None,
    algorithm: str = "HS256",
    without: str = "",
    kid: str | None = None,
    long: bool = False,
    **changes: Any,
) -> str:
    """Returns the caller's token with these changes; HS512 needs a longer key than ours."""
    claims = claims_of(caller) | changes
    claims.pop(without, None)
    ours = django_settings.JWT_SIGNING_KEY
    text = (ours if sign is None else sign) * (3 if long else 1)
    return jwt.encode(claims, text, algorithm=algorithm, headers={"kid": tokens.key_id(ours) if kid is None else kid})


def refused(response: Any) -> bool:
    problem = response.json()
    assert response.status_code == 401, problem
    assert response["Content-Type"] == "application/problem+json"
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert problem["type"] == "/problems/unauthorized"
    return True


class TestClaims:
    def test_lasts_a_day_and_names_consumer_tier_and_scopes(self, caller: Caller) -> None:
        claims = claims_of(caller)
        assert claims["exp"] - claims["iat"] == 24 * 3600
        assert (claims["aud"], claims["iss"]) == ("victoryline-api", "victoryline")
        assert claims["consumer_id"] == str(caller.key.consumer.consumer_id)
        assert (claims["key"], claims["tier"], claims["scopes"]) == (caller.key.prefix, "standard", ["read"])
        assert claims["jti"]
        assert jwt.get_unverified_header(caller.token) == {
            "alg": "HS256",
            "typ": "JWT",
            "kid": tokens.key_id(django_settings.JWT_SIGNING_KEY),
        }

    def test_carries_no_secret(self, caller: Caller) -> None:
        shown = str(claims_of(caller)) + str(jwt.get_unverified_header(caller.token))
        assert caller.issued.text.partition(".")[2] not in shown
        assert caller.key.secret_hash not in shown
        assert django_settings.JWT_SIGNING_KEY not in shown

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

    def test_of_an_api_key_in_place_of_a_token_name_the_endpoint(self, caller: Caller) -> None:
        caller.token = caller.issued.text
        response = caller.get(LIST)
        assert refused(response)
        assert "is an API key" in response.json()["detail"]
        assert "/token/generate-token" in response.json()["detail"]
        assert caller.issued.text not in response.content.decode()

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            ({"exp": 1_700_000_000}, "has expired"),
            ({"aud": "another-service"}, "for another service"),
            ({"aud": ["another-service"]}, "for another service"),
            ({"iss": "another-service"}, "by another service"),
            ({"key": "000000000000"}, "revoked or expired"),
            ({"token_type": "refresh"}, "not one of ours"),
            ({"exp": 10**18}, "not one of ours"),
            ({"exp": 10**400}, "not one of ours"),
            ({"exp": "99999999999"}, "not one of ours"),
            ({"key": "\x00"}, "not one of ours"),
            ({"key": 7}, "not one of ours"),
            ({"key": {"a": "b"}}, "not one of ours"),
            ({"iat": 99_999_999_999}, "not valid yet"),
            ({"nbf": 99_999_999_999}, "not valid yet"),
            ({"exp": "soon"}, "not one of ours"),
            ({"sub": 7}, "not one of ours"),
            ({"jti": 7}, "not one of ours"),
            *(({"without": claim}, "lacks a claim") for claim in REQUIRED),
            ({"sign": "another key that is just as long as the right one would be"}, "signature is not ours"),
            ({"kid": "0123abcd"}, "not in use here, or no longer"),
            ({"kid": ""}, "not in use here, or no longer"),
            ({"sign": "", "algorithm": "none"}, "not signed the way ours are"),
            ({"algorithm": "HS512", "long": True}, "not signed the way ours are"),
        ],
        ids=str,
    )
    def test_name_the_error_and_the_next_step(self, caller: Caller, changes: dict[str, Any], why: str) -> None:
        caller.token = forge(caller, **changes)
        response = caller.get(LIST)
        assert refused(response)
        assert why in response.json()["detail"]
        assert (
            "Get a new one at POST /token/generate-token" in response.json()["detail"]
            or "Ask for" in response.json()["detail"]
        )

    @pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
    def test_of_a_token_signed_with_the_other_kind_of_key(self, caller: Caller) -> None:
        """Algorithm confusion: the header names RS256, the signature is an HMAC with the public key."""
        public = django_settings.JWT_SIGNING_KEY
        header, body, _ = forge(caller).split(".")
        header = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "typ": "JWT"}).encode()).rstrip(b"=").decode()
        mac = hmac.new(public.encode(), f"{header}.{body}".encode(), hashlib.sha256).digest()
        caller.token = f"{header}.{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
        response = caller.get(LIST)
        assert refused(response)
        assert "not signed the way ours are" in response.json()["detail"]

    def test_of_a_token_whose_claims_were_altered(self, caller: Caller) -> None:
        assert caller.get(LIST).status_code == 200
        header, _, signature = caller.token.split(".")
        claims = claims_of(caller) | {"scopes": ["operate"], "exp": 99_999_999_999}
        body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
        caller.token = f"{header}.{body}.{signature}"
        response = caller.get(LIST)
        assert refused(response)
        assert "altered" in response.json()["detail"]

    @pytest.mark.parametrize("kid", [7, None, ["a"], {"a": "b"}])
    def test_of_an_invalid_key_id(self, caller: Caller, kid: object) -> None:
        header = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": kid}).encode()).rstrip(b"=").decode()
        caller.token = f"{header}.{caller.token.partition('.')[2]}"
        assert refused(caller.get(LIST))

    def test_of_a_revoked_key_at_once(self, caller: Caller) -> None:
        assert caller.get(LIST).status_code == 200
        keys.revoke(prefix=caller.key.prefix, now=timezone.now())
        assert refused(caller.get(LIST))

    def test_of_an_inactive_consumer_when_the_cache_expires(self, caller: Caller, monkeypatch) -> None:
        assert caller.get(LIST).status_code == 200
        Consumer.objects.update(is_active=False)
        assert authentication.CACHE_SECONDS <= 5
        monkeypatch.setattr("apiauth.authentication.time.monotonic", lambda: 10**9)
        assert refused(caller.get(LIST))

    def test_of_an_expired_key_even_while_cached(self, caller: Caller) -> None:
        caller.key.expires_at = timezone.now() - timedelta(seconds=1)
        caller.key.save()
        assert refused(caller.get(LIST))


class TestCache:
    def test_queries_the_key_once(self, caller: Caller) -> None:
        caller.get(LIST)
        with CaptureQueriesContext(connection) as asked:
            caller.get(LIST)
        assert not [query for query in asked if "apiauth_apikey" in query["sql"]]

    def test_checks_a_signature_once_and_the_expiry_always(self, caller: Caller, monkeypatch) -> None:
        tokens._verified.clear()
        checked: list[str] = []
        verify = tokens.ConsumerToken
        monkeypatch.setattr(tokens, "ConsumerToken", lambda text: checked.append(text) or verify(text))
        assert {tokens.read(caller.token) for _ in range(3)} == {caller.key.prefix}
        assert checked == [caller.token]
        end = claims_of(caller)["exp"] + tokens.CLOCK_LEEWAY_SECONDS
        monkeypatch.setattr("apiauth.tokens.time.time", lambda: end - 0.1)
        assert tokens.read(caller.token) == caller.key.prefix
        assert len(checked) == 1
        monkeypatch.setattr("apiauth.tokens.time.time", lambda: end)
        tokens.read(caller.token)  # PyJWT uses another clock and would still accept it
        assert len(checked) == 2

    def test_is_bounded(self, caller: Caller, monkeypatch) -> None:
        monkeypatch.setattr(tokens, "_verified", FIFOCache(3))
        now = timezone.now()
        for _ in range(5):
            tokens.read(tokens.make(caller.key, now).text)
        assert len(tokens._verified) == 3

    def test_takes_scopes_from_the_database_and_not_from_the_token(self, caller: Caller) -> None:
        caller.token = forge(caller, scopes=["read", "operate"], tier="premium")
        assert caller.post(f"{LIST}/1/pause").status_code == 403
        assert caller.get(LIST)["X-RateLimit-Limit"] == "100"


class TestRotation:
    def test_ends_the_tokens_of_the_old_key_with_it(self, caller: Caller) -> None:
        """The token was issued for a day, before its key was rotated."""
        now = timezone.now()
        new = keys.rotate(prefix=caller.key.prefix, overlap=timedelta(hours=1), now=now)
        assert caller.get(LIST).status_code == 200
        key = authentication.find(caller.key.prefix)
        assert key is not None
        assert key.is_usable(now + timedelta(minutes=59))
        assert not key.is_usable(now + timedelta(hours=1))
        type(caller.key).objects.filter(pk=caller.key.pk).update(expires_at=now)
        authentication.forget()
        assert refused(caller.get(LIST))
        caller.token = tokens.make(new.key, now).text
        assert caller.get(LIST).status_code == 200

    def test_without_overlap_ends_them_at_once(self, caller: Caller) -> None:
        assert caller.get(LIST).status_code == 200
        keys.rotate(prefix=caller.key.prefix, overlap=timedelta(0), now=timezone.now())
        assert refused(caller.get(LIST))
