"""System checks of incomplete alert settings."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, register
from sentry_sdk.utils import BadDsn, Dsn


@register()
def check_alert_settings(app_configs: Sequence[AppConfig] | None = None, **options: Any) -> list[CheckMessage]:
    return list(alert_setting_warnings(settings.CONFIG))


def alert_setting_warnings(config: Any) -> Iterator[CheckMessage]:
    if config.alert_webhook_secret and not config.alert_webhook_url:
        yield checks.Warning(
            "ALERT_WEBHOOK_SECRET is set and ALERT_WEBHOOK_URL is not: nothing is posted.",
            hint="Set ALERT_WEBHOOK_URL, or leave ALERT_WEBHOOK_SECRET empty.",
            id="monitoring.W003",
        )
    if config.sentry_dsn and not _is_dsn(config.sentry_dsn):
        yield checks.Warning(
            "SENTRY_DSN is not valid: nothing is sent to Sentry.",
            hint="The format is https://key@host/number; copy it from the project's settings there.",
            id="monitoring.W004",
        )


def _is_dsn(text: str) -> bool:
    try:
        Dsn(text)
    except BadDsn:
        return False
    return True
