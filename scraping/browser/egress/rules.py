"""Egress rules: reading a source may reach only the hosts of that source, and only their public addresses.

Guards against pages, redirects and name servers that lead into our own network. A host name proves nothing, because
its owner decides what it resolves to. So every resolved address is checked, and the connection uses the checked one.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from scraping.errors import EgressRefused
from scraping.readings import Site, split_host

SCHEMES = frozenset({"http", "https"})
WEB_PORTS = frozenset({80, 443})
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Metadata services of clouds, which hold keys: refused even where a source may use private addresses.
METADATA = frozenset(
    ipaddress.ip_address(one) for one in ("169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)
# Python's `is_global` accepts these networks; no public web server uses them.
NOT_PUBLIC = tuple(
    ipaddress.ip_network(one)
    for one in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # 6to4 relays
        "2001::/32",  # Teredo: contains an IPv4 address
        "2002::/16",  # 6to4: contains an IPv4 address
        "3fff::/20",  # documentation
    )
)
PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True)
class EgressRules:
    """The hosts, ports and kinds of address that one site may use. Built once, checked for every request."""

    key: str
    hosts: frozenset[str] = frozenset()
    ports: frozenset[int] = WEB_PORTS
    allows_private: bool = False
    pairs: frozenset[tuple[str, int]] = field(default_factory=frozenset)  # API hosts configured with a port

    @classmethod
    def of(cls, site: Site) -> EgressRules:
        """Allows the site's own hosts and API hosts, at the web ports and at the ports that their addresses name."""
        own = [urlsplit(address) for address in (site.base_url, site.token_url) if address]
        named = [split_host(entry) for entry in site.api_hosts]
        return cls(
            key=site.key,
            hosts=frozenset(ascii_host(host) for host in site.hosts if host),
            ports=WEB_PORTS | {one.port for one in own if one.port},
            allows_private=site.allows_private,
            pairs=frozenset((ascii_host(host), port) for host, port in named if port),
        )

    def check_url(self, url: str | URL) -> URL:
        """Returns the parsed URL, to which the caller connects; EgressRefused where it is not allowed."""
        try:
            found = URL(url, encoded=True) if isinstance(url, str) else url
            scheme, host, port = found.scheme, found.raw_host or "", found.port or 0
        except ValueError as error:
            raise EgressRefused(f"this is no web address: {error}; nothing was sent for {self.key}") from error
        if scheme not in SCHEMES:
            raise EgressRefused(f"{scheme or 'no scheme'}: is not read for {self.key}: nothing was sent")
        if found.raw_user is not None or found.raw_password is not None:
            raise EgressRefused(f"an address at {host} holds a user or a password: nothing was sent for {self.key}")
        self.check_host(host.lower(), port)
        return found

    def check_host(self, host: str, port: int) -> None:
        """EgressRefused for a host that is not the site's, and for a port that the site does not use."""
        if host not in self.hosts:
            raise EgressRefused(
                f"{host or 'no host'} is not a host of {self.key}: nothing was sent. If it should be, name it among "
                "the API hosts of the source"
            )
        if port not in self.ports and (host, port) not in self.pairs:
            raise EgressRefused(
                f"port {port} of {host} is not one of {self.key}: nothing was sent. If it should be, name "
                f"{host}:{port} among the API hosts of the source"
            )
        if is_ip_literal(host):
            self.check_address(host)

    def check_address(self, address: str) -> None:
        """EgressRefused for an address of this machine, of a private network, or of a cloud's metadata service."""
        problem = address_problem(ipaddress.ip_address(address.partition("%")[0]), allows_private=self.allows_private)
        if problem:
            raise EgressRefused(f"{address} is {problem}: nothing was sent for {self.key}")


class CheckedResolver(AbstractResolver):
    """Resolves a host and checks every address; the connection then uses one of these addresses."""

    def __init__(self, rules: EgressRules, inner: AbstractResolver, *, trusted: str | None = None) -> None:
        self._rules = rules
        self._inner = inner
        self._trusted = trusted  # the configured upstream proxy may have any address

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if host != self._trusted:
            for one in found:
                self._rules.check_address(one["host"])
        return found

    async def close(self) -> None:
        await self._inner.close()


def address_problem(address: Address, *, allows_private: bool) -> str:
    """Returns why an address is refused; empty for an allowed one."""
    embedded = _embedded_ipv4(address)
    if embedded is not None:
        return address_problem(embedded, allows_private=allows_private)
    if address in METADATA or address.is_link_local:
        return "a link-local address or a cloud's metadata service"
    if address.is_multicast or address.is_unspecified:
        return "no address of a single machine"
    is_other_ipv6 = isinstance(address, ipaddress.IPv6Address) and address not in PUBLIC_IPV6
    is_public = address.is_global and not is_other_ipv6 and not any(address in network for network in NOT_PUBLIC)
    return "" if allows_private or is_public else "not a public address"


def _embedded_ipv4(address: Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address inside an IPv6 address (NAT64, mapped), where the packets arrive in the end."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped


def is_ip_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return True


def ascii_host(host: str) -> str:
    """Returns a host as requests carry it: lower case, international names in punycode; empty for an invalid one."""
    try:
        return (URL.build(scheme="http", host=host.strip("[]")).raw_host or "").lower()
    except ValueError:
        return ""
