"""The app of scraping, with its system checks of the settings. Models can be imported once all apps are loaded."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register


class ScrapingConfig(AppConfig):
    name = "scraping"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Receivers register by being imported.
        from scraping.documents import publisher
        from scraping.journal import evidence  # noqa: F401
        from scraping.matches import match_logs  # noqa: F401

        publisher.connect()


@register()
def check_proxies(**options: Any) -> list[CheckMessage]:
    from scraping.browser.egress.upstream_proxies import ProxyError, ProxyPlan

    try:
        ProxyPlan.of(settings.CONFIG)
    except ProxyError as error:
        hint = "SCRAPER_PROXIES holds addresses as http://user:password@host:port#country, separated by spaces."
        return [Error(f"A proxy cannot be used: {error}.", hint=hint, id="scraping.E001")]
    return []


@register()
def check_importance_rules(**options: Any) -> list[CheckMessage]:
    from scraping.matches import importance

    try:
        importance.read(importance.path())
    except importance.ImportanceFileError as error:
        hint = f"Correct {importance.path()}; the version that comes with the code shows the form."
        return [Error(f"The rules of importance cannot be used: {error}", hint=hint, id="scraping.E002")]
    return []
