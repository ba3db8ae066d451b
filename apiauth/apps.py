"""The app of API access, with its system checks of keys that make tokens easy to forge."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning, register  # noqa: A004 - Django's name for it

SHORTEST_BYTES = 32  # the size of HS256's output; a shorter key can be found offline from one token
NEW_KEY_HINT = (
    "Make one: python -c 'import secrets; print(secrets.token_urlsafe(48))'. docs/operations.md says how to change it."
)


class ApiAuthConfig(AppConfig):
    name = "apiauth"
    verbose_name = "API access"
    default_auto_field = "django.db.models.BigAutoField"


@register()
def check_signing_keys(app_configs: Sequence[AppConfig] | None = None, **options: Any) -> list[CheckMessage]:
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
