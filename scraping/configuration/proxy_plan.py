"""How this installation goes out to its sources, from its settings."""

from __future__ import annotations

from django.conf import settings

from scraping.browser.proxies import Mode, ProxyPlan, gateway, parse


def current() -> ProxyPlan:
    """ProxyError if a proxy cannot be used as it is written."""
    config = settings.CONFIG
    provider = gateway(
        host=config.iproyal_host,
        port=config.iproyal_port,
        username=config.iproyal_username,
        password=config.iproyal_password,
        country=config.iproyal_country,
    )
    return ProxyPlan(
        proxies=(*parse(config.scraper_proxies), *([provider] if provider else [])),
        mode=Mode(config.scraper_proxy_mode),
        sticky_seconds=config.scraper_sticky_ttl_seconds,
    )
