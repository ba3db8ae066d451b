"""Fault 25: forged tokens and forged headers. They give no access and change nothing."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from apiauth import keys, tokens
from tests.api_fixtures import Caller, anonymous, caller, clean_api, operator
from tests.factories import make_match, make_ref

__all__ = ["anonymous", "caller", "clean_api", "operator"]
pytestmark = [
    pytest.mark.fault,
    pytest.mark.fault_number(25),
    pytest.mark.django_db,
    pytest.mark.requirement("FR-026"),
]
LIST = "/api/v1/matches"
EVIL = "evil.example"
THEIRS = "a key of their own, which is as long as ours but known to them"


def _part(document: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def _claims(text: str) -> dict[str, Any]:
    found: dict[str, Any] = jwt.decode(text, options={"verify_signature": False})
    return found


def _signed(text: str, secret: str, headers: dict[str, Any] | None = None, **changes: Any) -> str:
    return jwt.encode(_claims(text) | changes, secret, algorithm="HS256", headers=headers)


def _ours(text: str, **changes: Any) -> str:
    """Returns a token signed with our own key and these wrong claims."""
    key = settings.JWT_SIGNING_KEY
    return _signed(text, key, {"kid": tokens.key_id(key)}, **changes)


def _kid(kid: object, key: str) -> Callable[[str], str]:
    """Returns a token with a hand-written header; PyJWT refuses to create most of these."""

    def forge(text: str) -> str:
        head, body = _part({"alg": "HS256", "typ": "JWT", "kid": kid}), _part(_claims(text))
        return f"{head}.{body}.{_hmac(f'{head}.{body}', key)}"

    return forge


def _hmac(text: str, key: str) -> str:
    made = hmac.digest(key.encode(), text.encode(), "sha256")
    return base64.urlsafe_b64encode(made).rstrip(b"=").decode()


FORGED: dict[str, Callable[[str], str]] = {
    "no algorithm, no signature": lambda text: f"{_part({'alg': 'none'})}.{text.split('.')[1]}.",
    "no algorithm, an old signature": lambda text: f"{_part({'alg': 'nOnE'})}.{'.'.join(text.split('.')[1:])}",
    "RS256 with our secret for a public key": lambda text: (
        f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{'.'.join(text.split('.')[1:])}"
    ),
    "an algorithm that there is not": lambda text: f"{_part({'alg': ['HS256']})}.{'.'.join(text.split('.')[1:])}",
    "a key of their own": lambda text: _signed(text, THEIRS),
    "a key of their own, brought along": lambda text: _signed(
        text,
        THEIRS,
        {"jwk": {"kty": "oct", "k": _part(THEIRS)}, "jku": f"https://{EVIL}/keys", "x5u": f"https://{EVIL}"},
    ),
    "a key id that is a path": _kid("../../../../dev/null", ""),
    "a key id that is SQL": _kid("x' UNION SELECT 'known' -- ", "known"),
    "a key id that is a list": _kid(["a"], THEIRS),
    "a key id that is a number": _kid(7, THEIRS),
    "a key id with NUL": _kid("\x00", THEIRS),
    "a key id as long as a book": _kid("k" * 3000, THEIRS),
    "expired": lambda text: _ours(text, exp=int(time.time()) - 60),
    "for another audience": lambda text: _ours(text, aud="victoryline-admin"),
    "by another issuer": lambda text: _ours(text, iss=f"https://{EVIL}"),
    "not yet": lambda text: _ours(text, iat=int(time.time()) + 3600, nbf=int(time.time()) + 3600),
    "an expiry that is text": lambda text: _ours(text, exp="tomorrow"),
    "a key that is SQL": lambda text: _ours(text, key="' OR 1=1 --"),
    "a key that is a list": lambda text: _ours(text, key=["0123456789ab"]),
    "an unknown key": lambda text: _ours(text, key="0123456789ab"),
    "a subject of another type": lambda text: _ours(text, sub={"a": 1}),
    "claims that are a list": lambda text: f"{text.split('.')[0]}.{_part([1])}.{text.split('.')[2]}",
    "altered claims": lambda text: f"{text.split('.')[0]}.{_part({**_claims(text), 'tier': 'x'})}.{text.split('.')[2]}",
    "half of it": lambda text: text[: len(text) // 2],
    "twice": lambda text: f"{text}.{text}",
    "dots": lambda text: "...",
    "a hundred kilobytes": lambda text: "a" * 100_000,
    "nested": lambda text: f"{base64.urlsafe_b64encode(b'[' * 3000).decode()}.a.b",
}


class TestTokens:
    @pytest.mark.parametrize("how", FORGED)
    def test_forged_ones_are_refused(self, caller: Caller, how: str, caplog: pytest.LogCaptureFixture) -> None:
        forged = FORGED[how](caller.token)
        with caplog.at_level(logging.DEBUG):
            answer = caller.client.get(LIST, headers={"Authorization": f"Bearer {forged}"})
        assert answer.status_code == 401, answer.content
        problem = answer.json()
        assert answer["Content-Type"] == "application/problem+json"
        assert answer["WWW-Authenticate"].startswith("Bearer")
        assert problem["type"] == "/problems/unauthorized"
        assert "generate-token" in problem["detail"] or "new key" in problem["detail"]
        assert forged not in answer.content.decode()
        assert forged not in caplog.text or len(forged) < 5

    @pytest.mark.parametrize(
        "text", ["Bearer \u00e9\u00fc", "Bearer \xff", "bearer", "Bearer", "Bearer a b", "Token x"]
    )
    def test_invalid_text_is_refused(self, anonymous: Client, text: str) -> None:
        assert anonymous.get(LIST, headers={"Authorization": text}).status_code == 401

    def test_of_a_revoked_key_are_refused(self, caller: Caller) -> None:
        assert caller.get(LIST).status_code == 200
        keys.revoke(prefix=caller.key.prefix, now=timezone.now())
        assert caller.get(LIST).status_code == 401

    def test_claimed_scopes_beyond_the_key_are_ignored(self, caller: Caller) -> None:
        caller.token = _ours(caller.token, scopes=["read", "ingest", "operate"], tier="premium")
        assert caller.post("/api/scrape/retry-failed", {"source": "crex"}).status_code == 403
        assert caller.get(LIST)["X-RateLimit-Limit"] == "100"


FORWARDING = {
    "X-Forwarded-Host": EVIL,
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Port": "8443",
    "X-Forwarded-For": "127.0.0.1",
    "X-Real-Ip": "127.0.0.1",
    "Forwarded": f"for=127.0.0.1;host={EVIL};proto=https",
    "X-Original-Url": "/admin/",
    "X-Rewrite-Url": "/admin/",
    "X-Http-Method-Override": "DELETE",
}


class TestForwardingHeaders:
    def test_do_not_change_links(self, caller: Caller) -> None:
        now = timezone.now()
        for _ in range(3):
            make_ref(make_match(now=now), now=now)
        named = {name.replace("-", "_"): value for name, value in FORWARDING.items()}
        answer = caller.get(LIST, {"limit": 1}, **named)
        assert answer.status_code == 200
        assert answer.json()["next"].startswith("http://testserver/")
        assert EVIL not in answer.content.decode() + str(answer.headers)

    def test_do_not_change_redirects(self, anonymous: Client) -> None:
        for path in ("/api", "/admin/"):
            answer = anonymous.get(path, headers=FORWARDING)
            assert answer.status_code in (301, 302)
            assert answer["Location"].startswith("/")
            assert not answer["Location"].startswith("//")

    @pytest.mark.parametrize("path", [f"/api//{EVIL}//", f"/\\{EVIL}/", f"/api/@{EVIL}/"])
    def test_an_address_does_not_change_redirects(self, anonymous: Client, path: str) -> None:
        answer = anonymous.get(path)
        assert answer.status_code in (400, 404)
        assert "Location" not in answer

    def test_a_login_does_not_redirect_to_another_host(self, admin_user: Any) -> None:
        client = Client()
        sent = {"username": admin_user.username, "password": "password", "next": f"https://{EVIL}/"}
        answer = client.post("/admin/login/", sent)
        assert answer.status_code == 302
        assert EVIL not in answer["Location"]

    @pytest.mark.parametrize("host", [EVIL, f"testserver@{EVIL}", f"testserver:80@{EVIL}", "testserver/.evil", " "])
    def test_an_unknown_host_is_refused(self, caller: Caller, host: str) -> None:
        answer = caller.client.get(
            LIST, {"limit": 1}, headers={"Authorization": f"Bearer {caller.token}", "Host": host}
        )
        assert answer.status_code == 400
        assert EVIL not in answer.content.decode()
        assert "header `Host`" in answer.json()["detail"]
        assert "ALLOWED_HOSTS" in answer.json()["detail"]

    def test_do_not_change_limits(self, caller: Caller) -> None:
        """Requests are counted by consumer, whatever address their headers claim."""
        left = [
            int(caller.get(LIST, X_Forwarded_For=f"10.0.0.{number}")["X-RateLimit-Remaining"]) for number in range(5)
        ]
        assert left == sorted(left, reverse=True)
        assert left[0] - left[-1] == 4
