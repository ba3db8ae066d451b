"""The members' tokens: JWTs that carry their end and a signature, so that a restarted stadium still knows them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

CREDENTIAL = "stadium-member"  # what the token service wants to see
LIFETIME_SECONDS = 900.0


@dataclass(slots=True)
class TokenPolicy:
    """Tests and operators change it while the stadium runs."""

    seconds: float = LIFETIME_SECONDS  # of tokens that are issued from now on
    not_before: float = 0.0
    in_pages: bool = False  # a page brings a token of its own along, and its script uses it


class TokenOffice:
    def __init__(self, seed: int) -> None:
        self.policy = TokenPolicy()
        self._secret = f"{seed}:tokens".encode()

    def issue(self, wall: float) -> dict[str, Any]:
        """The service's answer."""
        claims = {"sub": "member", "iat": wall, "exp": wall + self.policy.seconds}
        signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(claims)}"
        token = f"{signed}.{self._sign(signed)}"
        return {"token": token, "token_type": "Bearer", "expires_in": self.policy.seconds}

    def is_good(self, authorization: str, wall: float) -> bool:
        scheme, _, token = authorization.partition(" ")
        signed, _, signature = token.rpartition(".")
        if scheme != "Bearer" or not hmac.compare_digest(signature.encode(), self._sign(signed).encode()):
            return False
        claims = json.loads(base64.urlsafe_b64decode(_padded(signed.partition(".")[2])))
        return bool(claims["iat"] >= self.policy.not_before and claims["exp"] > wall)

    def reset(self) -> None:
        self.policy = TokenPolicy()

    def _sign(self, text: str) -> str:
        return _text(hmac.new(self._secret, text.encode(), hashlib.sha256).digest())


def _part(claims: dict[str, Any]) -> str:
    return _text(json.dumps(claims, separators=(",", ":")).encode())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _padded(text: str) -> str:
    return text + "=" * (-len(text) % 4)
