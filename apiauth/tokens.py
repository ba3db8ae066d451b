"""The day's pass: a JWT made from an API key.

PyJWT directly: simplejwt's backend accepts a token without an expiry and shares SECRET_KEY unless told otherwise. Here
the algorithm is pinned, audience and issuer are checked, and every claim that we rely on is required. What a caller may
do is never taken from the token but looked up (`principals`); the claims say it only for the caller's information.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

import jwt
from django.conf import settings

from apiauth.models import ApiKey

ALGORITHM = "HS256"
AUDIENCE = "victoryline-api"
ISSUER = "victoryline"
REQUIRED = ["exp", "iat", "aud", "iss", "sub", "jti", "key"]
CLOCK_LEEWAY_SECONDS = 5
MAX_TOKEN_LENGTH = 4096
PREFIX = re.compile(r"[0-9a-f]{12}", re.ASCII)


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
    text = jwt.encode(claims, settings.JWT_SIGNING_KEY, algorithm=ALGORITHM)
    return Token(text=text, expires_at=expires_at, lifetime_seconds=expires - issued)


def read(text: str) -> str:
    """The prefix of the key that the token was made from; raises BadTokenError."""
    if len(text) > MAX_TOKEN_LENGTH:
        raise BadTokenError("The token is not one of ours.")
    try:
        claims = jwt.decode(
            text,
            settings.JWT_SIGNING_KEY,
            algorithms=[ALGORITHM],
            audience=AUDIENCE,
            issuer=ISSUER,
            leeway=CLOCK_LEEWAY_SECONDS,
            options={"require": REQUIRED},
        )
    except jwt.ExpiredSignatureError as error:
        raise BadTokenError("The token has expired. Get a new one at POST /token/generate-token.") from error
    except (jwt.PyJWTError, ValueError) as error:
        raise BadTokenError("The token is not one of ours. Get one at POST /token/generate-token.") from error
    if not PREFIX.fullmatch(str(claims["key"])):
        raise BadTokenError("The token is not one of ours. Get one at POST /token/generate-token.")
    return str(claims["key"])
