"""Rate-limit state and the client's address, for the HTTP code of all apps.

Must not import rest_framework.views: that module loads the classes named in the settings, which use this one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.http import HttpRequest
from rest_framework.request import Request

# Paths for programs: errors are problem documents, and CORS applies.
API_PREFIXES = ("/api/", "/cricket-data", "/token/", "/health", "/status", "/metrics")
NO_STORE = {"Cache-Control": "no-store"}


class RateLimit(NamedTuple):
    """Rate-limit state of a consumer. `reset_at` is a Unix time."""

    limit: int
    remaining: int
    reset_at: int


def client_address(request: HttpRequest | Request, trusted_proxies: int) -> str:
    return address_in(request.META, trusted_proxies)


def address_in(meta: Mapping[str, Any], trusted_proxies: int) -> str:
    """Returns the client's address as the outermost trusted proxy saw it; an IPv6 client is its /64.

    Clients without a valid address (a unix socket, an invalid header) share the name "unknown".
    """
    direct = str(meta.get("REMOTE_ADDR") or "")
    if trusted_proxies:
        hops = str(meta.get("HTTP_X_FORWARDED_FOR") or "").split(",")
        if len(hops) >= trusted_proxies:
            return _normal(hops[-trusted_proxies]) or _normal(direct) or "unknown"
    return _normal(direct) or "unknown"


def _normal(text: str) -> str:
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), 64), strict=False))
    return str(address)
