"""System checks of the settings: Django runs them with every command."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from scraping.browser.egress.upstream_proxies import ProxyError, ProxyPlan
from scraping.matches import importance


@register()
def proxies_can_be_used(**options: Any) -> list[CheckMessage]:
    try:
        ProxyPlan.of(settings.CONFIG)
    except ProxyError as error:
        hint = "SCRAPER_PROXIES holds addresses as http://user:password@host:port#country, separated by spaces."
        return [Error(f"A proxy cannot be used: {error}.", hint=hint, id="scraping.E001")]
    return []


@register()
def importance_can_be_judged(**options: Any) -> list[CheckMessage]:
    try:
        importance.read(importance.path())
    except importance.ImportanceFileError as error:
        hint = (
            f"Mend {importance.path()}, or let IMPORTANCE_FILE name another file; config/importance.yaml, as it comes "
            "with the code, shows the form."
        )
        return [Error(f"The rules of importance cannot be used: {error}", hint=hint, id="scraping.E002")]
    return []
