"""Where reading may reach: only the hosts of the source that is read, and of these only public addresses.

Guards against pages and redirects that lead us into our own network. A host's name proves nothing (its owner decides
what it resolves to), so the addresses are looked at, and connections go to the very addresses that were.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from scraping.errors import EgressRefused
from scraping.readings import Site

SCHEMES = frozenset({"http", "https"})


def check_url(url: str, site: Site) -> str:
    """The host of a URL that may be asked for this site; EgressRefused for any other."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if parts.scheme not in SCHEMES or host not in site.hosts:
        raise EgressRefused(f"{parts.scheme}://{host} is not a host of {site.key}: nothing was sent", url=url)
    if is_literal(host):
        check_address(host, site, url=url)
    return host


def check_address(address: str, site: Site, *, url: str = "") -> None:
    """EgressRefused for an address of this machine, of a private network, or of a cloud's metadata service."""
    if not site.allows_private and not ipaddress.ip_address(address.partition("%")[0]).is_global:
        raise EgressRefused(f"{address} is not a public address: nothing was sent for {site.key}", url=url)


def is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
