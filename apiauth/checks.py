"""What would make tokens easy to forge; Django says so with every command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning, register  # noqa: A004 - Django's name for it

SHORTEST_BYTES = 32  # as long as what HS256 makes of it; with less, a token in hand lets its key be guessed offline
HINT = (
    "Make one: python -c 'import secrets; print(secrets.token_urlsafe(48))'. docs/operations.md tells how to change it."
)


@register()
def signing_keys_protect(app_configs: Sequence[AppConfig] | None = None, **options: Any) -> list[CheckMessage]:
    signs = settings.JWT_SIGNING_KEY
    found: list[CheckMessage] = []
    if any(len(key.encode()) < SHORTEST_BYTES for key in (signs, *settings.JWT_PREVIOUS_KEYS) if key):
        found.append(
            Warning(
                f"A key in JWT_SIGNING_KEY or JWT_PREVIOUS_KEYS has fewer than {SHORTEST_BYTES} bytes: who holds a "
                "token can find it by trying, and make tokens.",
                hint=HINT,
                id="apiauth.W001",
            )
        )
    if signs and signs == settings.SECRET_KEY:
        found.append(
            Warning(
                "JWT_SIGNING_KEY is the same as SECRET_KEY: whoever learns one can forge tokens and sessions.",
                hint=HINT,
                id="apiauth.W002",
            )
        )
    return found
