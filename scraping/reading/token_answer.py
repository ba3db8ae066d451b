"""What a token service answered: the token, and how long it is good for.

A token's end is its `exp` claim, read without checking the signature: whether it opens anything is the source's to say.
Ends are kept as spans, not as times of day, so that a clock that is wrong or jumps costs a token too many, no data.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from scraping.errors import SchemaBreak
from scraping.readings import Document

NAMES = ("token", "access_token", "accessToken", "jwt")
UNKNOWN_LIFE_SECONDS = 600.0  # nothing says when it ends; a refusal will
SHORTEST_LIFE_SECONDS = 1.0
LONGEST_LIFE_SECONDS = 86_400.0
LONGEST_TOKEN = 8192


@dataclass(frozen=True)
class TokenAnswer:
    text: str = field(repr=False)
    life_seconds: float


def parse_answer(document: Document, *, now: float) -> TokenAnswer:
    """SchemaBreak, without a word of the answer, where there is no token in it. `now`: unix seconds."""
    try:
        body = orjson.loads(document.body)
    except orjson.JSONDecodeError:
        raise SchemaBreak("the answer of the token service is not JSON") from None
    told: Mapping[str, Any] = body if isinstance(body, dict) else {}
    text = next((told[name] for name in NAMES if isinstance(told.get(name), str)), "")
    if not text or len(text) > LONGEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise SchemaBreak("the answer of the token service holds no token")
    return TokenAnswer(text, life_seconds(text, told.get("expires_in"), now=now))


def life_seconds(token: str, expires_in: object, *, now: float) -> float:
    claims = claims_of(token)
    end, begin = _number(claims.get("exp")), _number(claims.get("iat"))
    life = _number(expires_in) or UNKNOWN_LIFE_SECONDS
    if end is not None:
        left, whole = end - now, end - begin if begin is not None else None
        # By our clock it has ended already, or lasts longer than it can: then it is our clock that is wrong.
        is_skewed = left <= 0 or (whole is not None and left > whole)
        life = (whole if whole is not None else UNKNOWN_LIFE_SECONDS) if is_skewed else left
    return min(max(life, SHORTEST_LIFE_SECONDS), LONGEST_LIFE_SECONDS)


def claims_of(token: str) -> Mapping[str, Any]:
    """The claims of a JWT; nothing where it is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
