"""The gate in front of a site's API.

Two cookies open it: one that a page visit sets, and one that the page's script computes from a nonce in the page. A
client that never ran the script is turned away, like one whose session has expired. Tokens carry their time of issue
and a signature, so that a restarted stadium still knows them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from stadium.clock import StadiumClock


@dataclass(slots=True)
class SessionPolicy:
    """How long sessions last. Tests and operators change it while the stadium runs."""

    seconds: float
    not_before: float = 0.0


class Gate:
    def __init__(self, site: str, session_cookie: str, script_cookie: str, seed: int) -> None:
        self.site, self.session_cookie, self.script_cookie = site, session_cookie, script_cookie
        self._secret = f"{seed}:{site}".encode()
        self._issued_at = lru_cache(maxsize=4096)(self._read)

    def issue(self, clock: StadiumClock) -> str:
        issued = str(int(clock.wall() * 1000))
        return f"{issued}.{self._sign(issued)}"

    def has_session(self, cookies: Mapping[str, str], wall: float, policy: SessionPolicy) -> bool:
        return self._is_fresh(cookies.get(self.session_cookie, ""), wall, policy)

    def is_open(self, cookies: Mapping[str, str], wall: float, policy: SessionPolicy) -> bool:
        if not self.has_session(cookies, wall, policy):
            return False
        nonce, _, answer = cookies.get(self.script_cookie, "").rpartition(".")
        return answer == fnv1a(nonce) and self._is_fresh(nonce, wall, policy)

    def _is_fresh(self, token: str, wall: float, policy: SessionPolicy) -> bool:
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
    """The sum the page's script works out; the scripts hold the same in JavaScript."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{value:08x}"
