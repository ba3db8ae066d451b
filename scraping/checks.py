"""System checks of the settings: Django runs them with every command."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from scraping.browser.egress.upstream_proxies import ProxyError, ProxyPlan
from scraping.matches import importance


@register()
def check_proxies(**options: Any) -> list[CheckMessage]:
    try:
        ProxyPlan.of(settings.CONFIG)
    except ProxyError as error:
        hint = "SCRAPER_PROXIES holds addresses as http://user:password@host:port#country, separated by spaces."
        return [Error(f"A proxy cannot be used: {error}.", hint=hint, id="scraping.E001")]
    return []


@register()
def check_importance_rules(**options: Any) -> list[CheckMessage]:
    try:
        importance.read(importance.path())
    except importance.ImportanceFileError as error:
        hint = f"Correct {importance.path()}; the version that comes with the code shows the form."
        return [Error(f"The rules of importance cannot be used: {error}", hint=hint, id="scraping.E002")]
    return []
