"""The day's pass: a JWT made from an API key.

PyJWT directly: simplejwt's backend accepts a token without an expiry and shares SECRET_KEY unless told otherwise. Here
the algorithm is pinned, audience and issuer are checked, and every claim that we rely on is required. What a caller may
do is never taken from the token but looked up (`principals`); the claims say it only for the caller's information.

A token that was checked is remembered by its hash, until it expires or the signing keys change: the same text has the
same signature, and whether its key still holds is asked at every request anyway.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from django.conf import settings

from apiauth import signing
from apiauth.models import ApiKey
from apiauth.signing import Ring, SigningKey

ALGORITHM = "HS256"
AUDIENCE = "victoryline-api"
ISSUER = "victoryline"
REQUIRED = ["exp", "iat", "aud", "iss", "sub", "jti", "key"]
CLOCK_LEEWAY_SECONDS = 5
MAX_TOKEN_LENGTH = 4096
MEMORY_ENTRIES = 10_000
PREFIX = re.compile(r"[0-9a-f]{12}", re.ASCII)
GET_ONE = "Get a new one at POST /token/generate-token."
NOT_OURS = f"The token is not one of ours. {GET_ONE}"
A_KEY = "This is an API key, not a token. POST /token/generate-token gives a token for it; send that one."

# What PyJWT found, the most particular first, and what we say about it.
REASONS: tuple[tuple[type[Exception], str], ...] = (
    (jwt.ExpiredSignatureError, f"The token has expired. {GET_ONE}"),
    (jwt.ImmatureSignatureError, f"The token is not valid yet: it was made by a clock ahead of ours. {GET_ONE}"),
    (jwt.InvalidAudienceError, f"The token was made for another service than this one. {GET_ONE}"),
    (jwt.InvalidIssuerError, f"The token was made by another service than this one. {GET_ONE}"),
    (jwt.MissingRequiredClaimError, f"The token lacks something that ours have. {GET_ONE}"),
    (jwt.InvalidAlgorithmError, f"The token is not signed the way ours are ({ALGORITHM}). {GET_ONE}"),
    (jwt.InvalidSignatureError, f"The token's signature is not ours, or the token was altered. {GET_ONE}"),
)


class BadTokenError(Exception):
    """The token can't be accepted; the message says why, for the caller to read."""


@dataclass(frozen=True)
class Token:
    text: str
    expires_at: datetime
    lifetime_seconds: int


def make(key: ApiKey, now: datetime) -> Token:
    """A token for the key; it never outlives the key itself."""
    expires_at = now + timedelta(hours=settings.CONFIG.token_lifetime_hours)
    if key.expires_at is not None:
        expires_at = min(expires_at, key.expires_at)
    issued, expires = int(now.timestamp()), int(expires_at.timestamp())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": str(key.consumer.consumer_id),
        "consumer_id": str(key.consumer.consumer_id),
        "key": key.prefix,
        "tier": key.consumer.tier,
        "scopes": list(key.scopes),
        "iat": issued,
        "exp": expires,
        "jti": uuid.uuid4().hex,
    }
    signs = signing.ring().signs
    text = jwt.encode(claims, signs.text, algorithm=ALGORITHM, headers={"kid": signs.id})
    return Token(text=text, expires_at=expires_at, lifetime_seconds=expires - issued)


def read(text: str) -> str:
    """The prefix of the key that the token was made from; raises BadTokenError."""
    if len(text) > MAX_TOKEN_LENGTH:
        raise BadTokenError(NOT_OURS)
    if text.startswith("vl_"):
        raise BadTokenError(A_KEY)
    ring = signing.ring()
    mark = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    prefix = _memory.recall(mark, ring)
    if prefix is None:
        claims = _checked(text, ring)
        prefix = str(claims["key"])
        if not PREFIX.fullmatch(prefix):
            raise BadTokenError(NOT_OURS)
        _memory.keep(mark, prefix, float(claims["exp"]), ring)
    return prefix


def forget() -> None:
    """Check every signature anew."""
    _memory.clear()


class _Memory:
    """Tokens whose signature was good, by the hash of their text; the oldest go first.

    A hit costs one look into a dictionary: it changes nothing, so it needs no lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        self._ring: Ring | None = None  # the signing keys that they were checked with

    def recall(self, mark: bytes, ring: Ring) -> str | None:
        if ring is not self._ring:
            return None
        found = self._known.get(mark)
        if found is None or time.time() >= found[1] + CLOCK_LEEWAY_SECONDS:
            return None
        return found[0]

    def keep(self, mark: bytes, prefix: str, expires: float, ring: Ring) -> None:
        with self._lock:
            if ring is not self._ring:
                self._known.clear()
                self._ring = ring
            self._known[mark] = (prefix, expires)
            self._known.move_to_end(mark)
            if len(self._known) > MEMORY_ENTRIES:
                self._known.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._known.clear()


_memory = _Memory()


def _checked(text: str, ring: Ring) -> dict[str, Any]:
    error: Exception | None = None
    try:
        for key in _keys_for(jwt.get_unverified_header(text), ring):
            try:
                return _decoded(text, key)
            except jwt.InvalidSignatureError as wrong:
                error = wrong  # a token without a `kid` may be an older key's
    except (jwt.PyJWTError, ValueError) as wrong:
        error = wrong
    raise BadTokenError(_reason(error)) from error


def _keys_for(header: dict[str, Any], ring: Ring) -> tuple[SigningKey, ...]:
    now, key_id = datetime.now(UTC), header.get("kid")
    found = ring.for_token(key_id, now) or signing.ring(look_now=True).for_token(key_id, now)
    if not found:
        raise BadTokenError(f"The token was signed with a key that is not in use here, or no longer. {GET_ONE}")
    return found


def _decoded(text: str, key: SigningKey) -> dict[str, Any]:
    return jwt.decode(
        text,
        key.text,
        algorithms=[ALGORITHM],
        audience=AUDIENCE,
        issuer=ISSUER,
        leeway=CLOCK_LEEWAY_SECONDS,
        options={"require": REQUIRED},
    )


def _reason(error: Exception | None) -> str:
    return next((words for kind, words in REASONS if isinstance(error, kind)), NOT_OURS)
