"""Where reading may reach: only the hosts of the source that is read, and of these only public addresses.

Guards against pages, redirects and name servers that lead us into our own network. A host's name proves nothing (its
owner decides what it resolves to), so the addresses are looked at, and connections go to the very addresses that were.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from yarl import URL

from scraping.errors import EgressRefused
from scraping.readings import Site, split_host

SCHEMES = frozenset({"http", "https"})
WEB_PORTS = frozenset({80, 443})
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# What clouds tell their machines about themselves, keys included: no source lives there, whatever it is allowed.
METADATA = frozenset(
    ipaddress.ip_address(one) for one in ("169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)
# Python calls these public; nothing on the public internet answers there in its own name.
NOT_PUBLIC = tuple(
    ipaddress.ip_network(one)
    for one in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # relays of 6to4
        "2001::/32",  # Teredo: an IPv4 address in disguise
        "2002::/16",  # 6to4: the same
        "3fff::/20",  # documentation
    )
)
PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True)
class Reach:
    """What may be reached for one site: made once, asked for every request."""

    key: str
    hosts: frozenset[str] = frozenset()
    ports: frozenset[int] = WEB_PORTS
    allows_private: bool = False
    pairs: frozenset[tuple[str, int]] = field(default_factory=frozenset)  # hosts that were named with their port

    @classmethod
    def of(cls, site: Site) -> Reach:
        """Its own address and its API hosts, at the ports of the web and at those that its addresses name."""
        own = [urlsplit(address) for address in (site.base_url, site.token_url) if address]
        named = [split_host(entry) for entry in site.api_hosts]
        return cls(
            key=site.key,
            hosts=frozenset(ascii_host(host) for host in site.hosts if host),
            ports=WEB_PORTS | {one.port for one in own if one.port},
            allows_private=site.allows_private,
            pairs=frozenset((ascii_host(host), port) for host, port in named if port),
        )

    def url(self, url: str | URL) -> URL:
        """The URL as it may be asked. What is looked at here is what the connection uses: it is parsed only once."""
        try:
            found = URL(url, encoded=True) if isinstance(url, str) else url
            scheme, host, port = found.scheme, found.raw_host or "", found.port or 0
        except ValueError as error:
            raise EgressRefused(f"this is no web address: {error}; nothing was sent for {self.key}") from error
        if scheme not in SCHEMES:
            raise EgressRefused(f"{scheme or 'no scheme'}: is not read for {self.key}: nothing was sent")
        if found.raw_user is not None or found.raw_password is not None:
            raise EgressRefused(f"an address at {host} holds a user or a password: nothing was sent for {self.key}")
        self.host(host.lower(), port)
        return found

    def host(self, host: str, port: int) -> None:
        """EgressRefused for any host that is not the site's, and for a port where it does not live."""
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
        if is_literal(host):
            self.address(host)

    def address(self, address: str) -> None:
        """EgressRefused for an address of this machine, of a private network, or of a cloud's metadata service."""
        kind = why_refused(ipaddress.ip_address(address.partition("%")[0]), allows_private=self.allows_private)
        if kind:
            raise EgressRefused(f"{address} is {kind}: nothing was sent for {self.key}")


def why_refused(address: Address, *, allows_private: bool) -> str:
    """What is wrong with an address; empty for a good one."""
    inner = _inside(address)
    if inner is not None:
        return why_refused(inner, allows_private=allows_private)
    if address in METADATA or address.is_link_local:
        return "a link-local address or a cloud's metadata service"
    if address.is_multicast or address.is_unspecified:
        return "no address of a single machine"
    if not allows_private and not _is_public(address):
        return "not a public address"
    return ""


def _inside(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address only wraps: it is where the packets end up."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in PUBLIC_IPV6:
        return False
    return address.is_global and not any(address in network for network in NOT_PUBLIC)


def check_url(url: str, site: Site) -> str:
    """The host of a URL that may be asked for this site; EgressRefused for any other."""
    return Reach.of(site).url(url).raw_host or ""


def check_address(address: str, site: Site) -> None:
    """EgressRefused for an address that must not be reached for this site."""
    Reach.of(site).address(address)


def is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return True


def ascii_host(host: str) -> str:
    """A host as it stands on the wire: small letters, and those of other alphabets spelled out."""
    try:
        return (URL.build(scheme="http", host=host.strip("[]")).raw_host or "").lower()
    except ValueError:
        return ""  # no host at all: it matches nothing
