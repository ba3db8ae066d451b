"""Makes and verifies consumer tokens: JWTs that are exchanged for an API key and valid for a day.

simplejwt with three additions that it does not have by itself: a ring of signing keys chosen by `kid`, required claims,
and error messages for callers. Scopes and tier are never taken from the token but read from the database
(`authentication`); the claims are for the caller's information.

Verified tokens are cached by their hash until they expire: verification costs 90 us, a hit 2 us. Revocation does not
depend on this cache: `authentication` checks the key of every request.
"""

import hashlib
import re
import threading
import time
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

import jwt
from cachetools import FIFOCache
from django.conf import settings
from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import TokenError
from rest_framework_simplejwt.tokens import AccessToken

from apiauth.models import ApiKey

ALGORITHM = "HS256"
AUDIENCE = "victoryline-api"
ISSUER = "victoryline"
LIFETIME_HOURS = 24
REQUIRED_CLAIMS = {"exp", "iat", "aud", "iss", "sub", "jti", "key"}
CLOCK_LEEWAY_SECONDS = 5
MAX_TOKEN_LENGTH = 4096
CACHE_ENTRIES = 10_000
KEY_PREFIX = re.compile(r"[0-9a-f]{12}", re.ASCII)
GET_ONE = "Get a new one at POST /token/generate-token."
NOT_OURS = f"The token is not one of ours. {GET_ONE}"
IS_API_KEY = "This is an API key, not a token. POST /token/generate-token gives a token for it; send that one."
MISSING_CLAIM = f"The token lacks a claim that ours have. {GET_ONE}"
UNKNOWN_SIGNING_KEY = f"The token was signed with a key that is not in use here, or no longer. {GET_ONE}"

# PyJWT's errors, the most specific first, and the message for the caller.
MESSAGES: tuple[tuple[type[Exception], str], ...] = (
    (jwt.ExpiredSignatureError, f"The token has expired. {GET_ONE}"),
    (jwt.ImmatureSignatureError, f"The token is not valid yet: it was made by a clock ahead of ours. {GET_ONE}"),
    (jwt.InvalidAudienceError, f"The token was made for another service than this one. {GET_ONE}"),
    (jwt.InvalidIssuerError, f"The token was made by another service than this one. {GET_ONE}"),
    (jwt.MissingRequiredClaimError, MISSING_CLAIM),
    (jwt.InvalidAlgorithmError, f"The token is not signed the way ours are ({ALGORITHM}). {GET_ONE}"),
    (jwt.InvalidSignatureError, f"The token's signature is not ours, or the token was altered. {GET_ONE}"),
)


class BadTokenError(TokenError):
    """The token is refused; the message gives the reason to the caller."""


class KeyRingBackend(TokenBackend):
    """Signs with JWT_SIGNING_KEY; verifies with the key that the token's `kid` names, also one of JWT_PREVIOUS_KEYS."""

    def __init__(self) -> None:
        super().__init__(ALGORITHM, audience=AUDIENCE, issuer=ISSUER, leeway=CLOCK_LEEWAY_SECONDS)

    def encode(self, payload: dict[str, Any]) -> str:
        claims = {**payload, "aud": self.audience, "iss": self.issuer}
        key = settings.JWT_SIGNING_KEY
        return jwt.encode(claims, key, algorithm=self.algorithm, headers={"kid": key_id(key)})

    def get_verifying_key(self, token: Any) -> str:
        header = jwt.get_unverified_header(token)
        if header.get("alg") != self.algorithm:
            raise jwt.InvalidAlgorithmError
        for key in (settings.JWT_SIGNING_KEY, *settings.JWT_PREVIOUS_KEYS):
            if key_id(key) == header.get("kid"):
                return str(key)
        raise BadTokenError(UNKNOWN_SIGNING_KEY)


@cache
def key_id(key: str) -> str:
    return hashlib.sha256(f"victoryline kid {key}".encode()).hexdigest()[:8]


class ConsumerToken(AccessToken):
    _token_backend = KeyRingBackend()

    def verify(self) -> None:
        if not self.payload.keys() >= REQUIRED_CLAIMS:
            raise BadTokenError(MISSING_CLAIM)
        if not KEY_PREFIX.fullmatch(str(self.payload["key"])):
            raise BadTokenError(NOT_OURS)
        super().verify()


class IssuedToken(NamedTuple):
    text: str
    expires_at: datetime
    lifetime_seconds: int


def make(key: ApiKey, now: datetime) -> IssuedToken:
    """Makes a token for the key; it never outlives the key itself."""
    expires_at = now + timedelta(hours=LIFETIME_HOURS)
    if key.expires_at is not None:
        expires_at = min(expires_at, key.expires_at)
    issued, expires = int(now.timestamp()), int(expires_at.timestamp())
    token = ConsumerToken()
    token.payload |= {
        "sub": str(key.consumer.consumer_id),
        "consumer_id": str(key.consumer.consumer_id),
        "key": key.prefix,
        "tier": key.consumer.tier,
        "scopes": list(key.scopes),
        "iat": issued,
        "exp": expires,
    }
    return IssuedToken(text=str(token), expires_at=expires_at, lifetime_seconds=expires - issued)


# By hash: prefix of the key, and time of expiry. FIFO: a hit changes nothing in it, so that reading needs no lock.
_verified: FIFOCache[bytes, tuple[str, float]] = FIFOCache(CACHE_ENTRIES)
_lock = threading.Lock()


def read(text: str) -> str:
    """Verifies a token and returns the prefix of its API key; raises BadTokenError."""
    if len(text) > MAX_TOKEN_LENGTH:
        raise BadTokenError(NOT_OURS)
    if text.startswith("vl_"):
        raise BadTokenError(IS_API_KEY)
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    known = _verified.get(digest)
    if known is not None and time.time() < known[1] + CLOCK_LEEWAY_SECONDS:
        return known[0]
    try:
        token = ConsumerToken(text)  # type: ignore[arg-type]  # annotated as a Token, it is the text
    except BadTokenError:
        raise
    except (TokenError, ValueError, TypeError, ArithmeticError, OSError) as error:
        # All but the first: times that are text or no calendar can hold, which PyJWT lets pass.
        raise BadTokenError(_message(error)) from error
    prefix = str(token["key"])
    with _lock:
        _verified[digest] = (prefix, float(token["exp"]))
    return prefix


def _message(error: BaseException | None) -> str:
    """Returns the message of the PyJWT error that simplejwt has wrapped."""
    while error is not None:
        for kind, message in MESSAGES:
            if isinstance(error, kind):
                return message
        error = error.__cause__
    return NOT_OURS
