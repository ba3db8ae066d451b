"""Where reading may reach, as tables."""

from __future__ import annotations

import ipaddress

import pytest

from scraping.browser.egress import Reach, check_address, check_url, why_refused
from scraping.errors import EgressRefused
from scraping.readings import Site, split_host

SITE = Site("crex", "https://crex.example", api_hosts=("api.crex.example", "feed.crex.example:8443", "bücher.example"))
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
    def test_only_public_ones_are_reached(self, _kind: str, address: str) -> None:
        assert why_refused(ipaddress.ip_address(address), allows_private=False)
        with pytest.raises(EgressRefused, match="nothing was sent"):
            check_address(address, SITE)

    @pytest.mark.parametrize("address", PUBLIC)
    def test_public_ones_are(self, address: str) -> None:
        check_address(address, SITE)

    @pytest.mark.parametrize(("_kind", "address"), NEVER)
    def test_some_not_even_for_a_site_in_a_private_network(self, _kind: str, address: str) -> None:
        with pytest.raises(EgressRefused):
            check_address(address, Site("lan", "http://10.0.0.1", allows_private=True))

    @pytest.mark.parametrize(("_kind", "address"), PRIVATE)
    def test_a_site_in_a_private_network_is_reached_there(self, _kind: str, address: str) -> None:
        check_address(address, Site("lan", "http://10.0.0.1", allows_private=True))

    def test_a_zone_is_no_way_around(self) -> None:
        with pytest.raises(EgressRefused):
            check_address("fe80::1%eth0", SITE)


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
    def test_its_own_hosts(self, url: str, host: str) -> None:
        assert check_url(url, SITE) == host

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
            ("a scheme of nobody's", "gopher://crex.example/"),
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
    def test_nothing_else(self, _kind: str, url: str) -> None:
        with pytest.raises(EgressRefused):
            check_url(url, SITE)

    @pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "[::1]", "169.254.169.254"])
    def test_a_source_that_lives_at_a_private_address_without_leave(self, host: str) -> None:
        with pytest.raises(EgressRefused):
            check_url(f"http://{host}/", Site("lan", f"http://{host}"))

    def test_the_port_of_its_own_address(self) -> None:
        reach = Reach.of(Site("stadium", "http://127.0.0.1:8001/crex", allows_private=True))
        reach.url("http://127.0.0.1:8001/x")
        with pytest.raises(EgressRefused, match=r"port 6379.*127\.0\.0\.1:6379 among"):
            reach.url("http://127.0.0.1:6379/")

    def test_the_password_of_a_url_is_not_told(self) -> None:
        with pytest.raises(EgressRefused) as told:
            check_url("https://user:secret@crex.example/", SITE)
        assert "secret" not in str(told.value)

    def test_a_source_without_a_host_reaches_nothing(self) -> None:
        with pytest.raises(EgressRefused):
            check_url("http://crex.example/", Site("empty"))


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
def test_a_listed_host(entry: str, found: tuple[str, int | None]) -> None:
    assert split_host(entry) == found
