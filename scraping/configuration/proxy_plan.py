"""The proxies of this installation, from its settings."""

from __future__ import annotations

from django.conf import settings

from scraping.browser.egress.upstream_proxies import ProxyPlan, RotationMode, gateway, parse


def current() -> ProxyPlan:
    """Returns the proxies and how they are used; ProxyError if one is invalid."""
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
        mode=RotationMode(config.scraper_proxy_mode),
        sticky_seconds=config.scraper_sticky_ttl_seconds,
    )
