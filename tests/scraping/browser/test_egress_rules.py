"""Egress rules, as tables of addresses and URLs."""

from __future__ import annotations

import ipaddress

import pytest

from scraping.browser.egress.rules import EgressRules, address_problem
from scraping.errors import EgressRefused
from scraping.readings import Site, split_host

SITE = Site("crex", "https://crex.example", api_hosts=("api.crex.example", "feed.crex.example:8443", "bücher.example"))
LAN = Site("lan", "http://10.0.0.1", allows_private=True)
NEVER = (
    ("metadata of a cloud", "169.254.169.254"),
    ("metadata of another", "100.100.100.200"),
    ("metadata over IPv6", "fd00:ec2::254"),
    ("link-local", "169.254.1.1"),
    ("link-local of IPv6", "fe80::1"),
    ("this machine by its shortest name", "0.0.0.0"),
    ("the same in IPv6", "::"),
    ("multicast", "224.0.1.1"),
    ("multicast of IPv6", "ff0e::1"),
    ("metadata inside IPv6", "::ffff:169.254.169.254"),
    ("metadata behind NAT64", "64:ff9b::a9fe:a9fe"),
)
PRIVATE = (
    ("loopback", "127.0.0.1"),
    ("the rest of loopback", "127.8.9.10"),
    ("loopback of IPv6", "::1"),
    ("private", "10.1.2.3"),
    ("private", "172.16.0.1"),
    ("private", "192.168.1.1"),
    ("carrier's NAT", "100.64.0.1"),
    ("benchmarks", "198.18.0.1"),
    ("protocol assignments", "192.0.0.8"),
    ("documentation", "203.0.113.7"),
    ("reserved", "240.0.0.1"),
    ("broadcast", "255.255.255.255"),
    ("relays of 6to4", "192.88.99.1"),
    ("unique local", "fd12::1"),
    ("site-local, long gone", "fec0::1"),
    ("documentation of IPv6", "2001:db8::1"),
    ("more documentation", "3fff::1"),
    ("loopback inside IPv6", "::ffff:127.0.0.1"),
    ("private inside IPv6", "::ffff:10.0.0.1"),
    ("loopback in the oldest wrapping", "::127.0.0.1"),
    ("loopback in 6to4", "2002:7f00:1::"),
    ("a public one in 6to4", "2002:0808:0808::1"),
    ("Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
    ("private behind NAT64", "64:ff9b::a00:1"),
    ("NAT64 of a network's own", "64:ff9b:1::808:808"),
    ("translated", "::ffff:0:8.8.8.8"),
)
PUBLIC = ("8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")


@pytest.mark.fault_number(23)
class TestAddresses:
    @pytest.mark.parametrize(("_kind", "address"), [*NEVER, *PRIVATE])
    def test_refuses_addresses_that_are_not_public(self, _kind: str, address: str) -> None:
        assert address_problem(ipaddress.ip_address(address), allows_private=False)
        with pytest.raises(EgressRefused, match="nothing was sent"):
            EgressRules.of(SITE).check_address(address)

    @pytest.mark.parametrize("address", PUBLIC)
    def test_allows_public_addresses(self, address: str) -> None:
        EgressRules.of(SITE).check_address(address)

    @pytest.mark.parametrize(("_kind", "address"), NEVER)
    def test_refuses_metadata_services_even_for_a_private_site(self, _kind: str, address: str) -> None:
        with pytest.raises(EgressRefused):
            EgressRules.of(LAN).check_address(address)

    @pytest.mark.parametrize(("_kind", "address"), PRIVATE)
    def test_allows_private_addresses_for_a_private_site(self, _kind: str, address: str) -> None:
        EgressRules.of(LAN).check_address(address)

    def test_refuses_a_link_local_address_with_a_zone(self) -> None:
        with pytest.raises(EgressRefused):
            EgressRules.of(SITE).check_address("fe80::1%eth0")


class TestUrls:
    @pytest.mark.parametrize(
        ("url", "host"),
        [
            ("https://crex.example/live", "crex.example"),
            ("http://crex.example/live?x=1#y", "crex.example"),
            ("https://CREX.example/", "CREX.example"),
            ("https://api.crex.example:443/", "api.crex.example"),
            ("https://feed.crex.example:8443/", "feed.crex.example"),
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ],
    )
    def test_allows_the_hosts_of_the_site(self, url: str, host: str) -> None:
        assert EgressRules.of(SITE).check_url(url).raw_host == host

    @pytest.mark.fault_number(23)
    @pytest.mark.parametrize(
        ("_kind", "url"),
        [
            ("another host", "https://evil.example/"),
            ("a host below it", "https://x.crex.example/"),
            ("a host that ends like it", "https://notcrex.example/"),
            ("a host that begins like it", "https://crex.example.evil.example/"),
            ("a trailing dot", "https://crex.example./"),
            ("its name as a user", "https://crex.example@evil.example/"),
            ("a user at its own host", "https://user@crex.example/"),
            ("a password at its own host", "https://:secret@crex.example/"),
            ("a backslash, which browsers read otherwise", "https://evil.example\\@crex.example/"),
            ("a fragment in front", "https://evil.example#@crex.example/"),
            ("a file", "file:///etc/passwd"),
            ("a socket", "ws://crex.example/"),
            ("data", "data:text/html,hello"),
            ("an unknown scheme", "gopher://crex.example/"),
            ("no scheme", "//crex.example/"),
            ("no host", "https:///live"),
            ("the mail server's port", "http://crex.example:25/"),
            ("Redis's port", "http://crex.example:6379/"),
            ("the port of another of its hosts", "http://crex.example:8443/"),
            ("port zero", "http://crex.example:0/"),
            ("a port beyond all", "http://crex.example:99999/"),
            ("loopback in one number", "http://2130706433/"),
            ("loopback in octal", "http://017700000001/"),
            ("loopback in hex", "http://0x7f.1/"),
            ("loopback in short", "http://127.1/"),
            ("loopback in fancy digits", "http://①②⑦.0.0.1/"),
            ("loopback", "http://[::1]/"),
            ("letters that only look the same", "https://cr\u0435x.example/"),
            ("a dot of another alphabet", "https://crex。example/"),
        ],
    )
    def test_refuses_everything_else(self, _kind: str, url: str) -> None:
        with pytest.raises(EgressRefused):
            EgressRules.of(SITE).check_url(url)

    @pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "[::1]", "169.254.169.254"])
    def test_refuses_a_private_site_without_permission(self, host: str) -> None:
        with pytest.raises(EgressRefused):
            EgressRules.of(Site("lan", f"http://{host}")).check_url(f"http://{host}/")

    def test_allows_only_the_port_of_the_base_url(self) -> None:
        rules = EgressRules.of(Site("stadium", "http://127.0.0.1:8001/crex", allows_private=True))
        rules.check_url("http://127.0.0.1:8001/x")
        with pytest.raises(EgressRefused, match=r"port 6379.*127\.0\.0\.1:6379 among"):
            rules.check_url("http://127.0.0.1:6379/")

    def test_the_error_does_not_contain_the_password(self) -> None:
        with pytest.raises(EgressRefused) as caught:
            EgressRules.of(SITE).check_url("https://user:secret@crex.example/")
        assert "secret" not in str(caught.value)

    def test_refuses_everything_for_a_site_without_a_host(self) -> None:
        with pytest.raises(EgressRefused):
            EgressRules.of(Site("empty")).check_url("http://crex.example/")


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("api.example", ("api.example", None)),
        ("API.example:8443", ("api.example", 8443)),
        ("127.0.0.2:80", ("127.0.0.2", 80)),
        ("::1", ("::1", None)),
        ("[::1]:8080", ("::1", 8080)),
        ("", ("", None)),
    ],
)
def test_split_host(entry: str, found: tuple[str, int | None]) -> None:
    assert split_host(entry) == found
