"""Access control of the sites: session cookies, and bearer tokens of the Crexpro site.

Cookies and tokens carry their times and a signature, so a restarted stadium accepts those it issued before.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jwt

from stadium.matches.clock import StadiumClock

CREDENTIAL = "stadium-member"  # the API key that the token service accepts
LIFETIME_SECONDS = 900.0


@dataclass(slots=True)
class AccessPolicy:
    """Lifetime of sessions or tokens. Tests and operators change it while the stadium runs."""

    seconds: float
    not_before: float = 0.0  # the time of the last revocation
    in_pages: bool = False  # tokens only: a page contains one, and its script uses it


class SessionCheck:
    """Requires two cookies: one that a page visit sets, and one that the page's script computes from a nonce.

    A client that never ran the script is refused, and so is one with an expired session.
    """

    def __init__(self, site: str, session_cookie: str, script_cookie: str, seed: int) -> None:
        self.site, self.session_cookie, self.script_cookie = site, session_cookie, script_cookie
        self._secret = f"{seed}:{site}".encode()
        self._issued_at = lru_cache(maxsize=4096)(self._read)

    def issue(self, clock: StadiumClock) -> str:
        issued = str(int(clock.wall() * 1000))
        return f"{issued}.{self._sign(issued)}"

    def has_session(self, cookies: Mapping[str, str], wall: float, policy: AccessPolicy) -> bool:
        return self._is_fresh(cookies.get(self.session_cookie, ""), wall, policy)

    def allows(self, cookies: Mapping[str, str], wall: float, policy: AccessPolicy) -> bool:
        if not self.has_session(cookies, wall, policy):
            return False
        nonce, _, checksum = cookies.get(self.script_cookie, "").rpartition(".")
        return checksum == fnv1a(nonce) and self._is_fresh(nonce, wall, policy)

    def _is_fresh(self, token: str, wall: float, policy: AccessPolicy) -> bool:
        issued = self._issued_at(token)
        return issued is not None and issued + policy.seconds > wall and issued >= policy.not_before

    def _read(self, token: str) -> float | None:
        issued, _, signature = token.partition(".")
        if not issued.isdigit() or not hmac.compare_digest(signature.encode(), self._sign(issued).encode()):
            return None
        return int(issued) / 1000

    def _sign(self, issued: str) -> str:
        return hmac.new(self._secret, issued.encode(), hashlib.sha256).hexdigest()[:16]


@lru_cache(maxsize=4096)
def fnv1a(text: str) -> str:
    """The checksum that the page's script computes; the assets hold the same function in JavaScript."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{value:08x}"


class TokenIssuer:
    """Issues and checks the JWTs of the Crexpro site."""

    def __init__(self, seed: int) -> None:
        self._secret = hashlib.sha256(f"{seed}:tokens".encode()).digest()
        self.reset()

    def issue(self, wall: float) -> dict[str, Any]:
        """Returns the token service's response body."""
        claims = {"sub": "member", "iat": wall, "exp": wall + self.policy.seconds}
        token = jwt.encode(claims, self._secret, "HS256")
        return {"token": token, "token_type": "Bearer", "expires_in": self.policy.seconds}

    def is_valid(self, authorization: str, wall: float) -> bool:
        scheme, _, token = authorization.partition(" ")
        try:  # the times are checked below, against the stadium's clock
            claims = jwt.decode(token, self._secret, ["HS256"], options={"verify_iat": False, "verify_exp": False})
        except jwt.InvalidTokenError:
            return False
        return scheme == "Bearer" and claims["iat"] >= self.policy.not_before and claims["exp"] > wall

    def reset(self) -> None:
        self.policy = AccessPolicy(LIFETIME_SECONDS)
