"""What must be right in the settings before anything starts; Django asks with every command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from scraping.browser.egress.upstream_proxies import ProxyError, ProxyPlan
from scraping.matches import importance


@register()
def proxies_can_be_used(app_configs: Sequence[AppConfig] | None = None, **options: Any) -> list[CheckMessage]:
    try:
        ProxyPlan.of(settings.CONFIG)
    except ProxyError as error:
        return [
            Error(
                f"A proxy cannot be used: {error}.",
                hint="SCRAPER_PROXIES holds addresses as http://user:password@host:port#country, separated by spaces.",
                id="scraping.E001",
            )
        ]
    return []


@register()
def importance_can_be_judged(app_configs: Sequence[AppConfig] | None = None, **options: Any) -> list[CheckMessage]:
    try:
        importance.read(importance.path())
    except importance.ImportanceFileError as error:
        return [
            Error(
                f"The rules of importance cannot be used: {error}",
                hint=f"Mend {importance.path()}, or let IMPORTANCE_FILE name another file; "
                "config/importance.yaml, as it comes with the code, shows the form.",
                id="scraping.E002",
            )
        ]
    return []
