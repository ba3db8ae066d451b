"""The keys that sign tokens: the current one signs, earlier ones verify until their last token has expired.

The current one is JWT_SIGNING_KEY, or else the file that the first start writes to VAR_DIR; earlier ones are in
JWT_PREVIOUS_KEYS. docs/operations.md has the steps of a change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning, register  # noqa: A004 - Django's name for it

SHORTEST_BYTES = 32  # the size of HS256's output; a shorter key can be found offline from one token
NEW_KEY_HINT = (
    "Make one: python -c 'import secrets; print(secrets.token_urlsafe(48))'. docs/operations.md says how to change it."
)


@dataclass(frozen=True)
class SigningKey:
    id: str  # the `kid` of its tokens
    secret: str = field(repr=False)  # not in a traceback


def current() -> SigningKey:
    return _key(settings.JWT_SIGNING_KEY)


def find(key_id: str) -> SigningKey | None:
    """Returns the key with this `kid`, current or earlier."""
    known = (_key(secret) for secret in (settings.JWT_SIGNING_KEY, *settings.JWT_PREVIOUS_KEYS))
    return next((key for key in known if key.id == key_id), None)


@cache
def _key(secret: str) -> SigningKey:
    return SigningKey(hashlib.sha256(f"victoryline kid {secret}".encode()).hexdigest()[:8], secret)


@register()
def check_signing_keys(app_configs: Sequence[AppConfig] | None = None, **options: Any) -> list[CheckMessage]:
    """Django system check: warns of keys that make tokens easy to forge."""
    current, warnings = settings.JWT_SIGNING_KEY, {}
    if any(len(key.encode()) < SHORTEST_BYTES for key in (current, *settings.JWT_PREVIOUS_KEYS)):
        warnings["apiauth.W001"] = (
            f"A key in JWT_SIGNING_KEY or JWT_PREVIOUS_KEYS has fewer than {SHORTEST_BYTES} bytes: with one token it "
            "can be found by trying, and then tokens can be forged."
        )
    if current == settings.SECRET_KEY:
        warnings["apiauth.W002"] = (
            "JWT_SIGNING_KEY is the same as SECRET_KEY: with one leak both tokens and sessions can be forged."
        )
    return [Warning(text, hint=NEW_KEY_HINT, id=name) for name, text in warnings.items()]
