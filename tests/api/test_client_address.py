"""The client address that counts, also with a forged forwarding header."""

import pytest
from django.test import RequestFactory

from victoryline.lib.http.headers import client_address


@pytest.mark.parametrize(
    ("proxies", "forwarded", "direct", "expected"),
    [
        pytest.param(0, "1.2.3.4", "9.9.9.9", "9.9.9.9", id="no proxy: the header means nothing"),
        pytest.param(1, "1.2.3.4", "10.0.0.1", "1.2.3.4", id="one proxy wrote it"),
        pytest.param(1, "6.6.6.6, 1.2.3.4", "10.0.0.1", "1.2.3.4", id="what is further left is forged"),
        pytest.param(2, "6.6.6.6, 1.2.3.4, 10.0.0.2", "10.0.0.1", "1.2.3.4", id="two proxies"),
        pytest.param(2, "1.2.3.4", "10.0.0.1", "10.0.0.1", id="shorter than it must be: not through our proxies"),
        pytest.param(1, "", "10.0.0.1", "10.0.0.1", id="empty"),
        pytest.param(1, "rubbish", "10.0.0.1", "10.0.0.1", id="rubbish"),
        pytest.param(1, "1.2.3.4\x00", "10.0.0.1", "10.0.0.1", id="NUL"),
        pytest.param(1, "," * 5000, "10.0.0.1", "10.0.0.1", id="commas"),
        pytest.param(1, "1.2.3.4:5678", "10.0.0.1", "1.2.3.4", id="with a port"),
        pytest.param(1, "[2001:db8::1]:443", "10.0.0.1", "2001:db8::/64", id="IPv6 with a port"),
        pytest.param(1, "2001:db8::ffff:1", "10.0.0.1", "2001:db8::/64", id="an IPv6 caller is its network"),
        pytest.param(0, "", "::ffff:1.2.3.4", "1.2.3.4", id="IPv4 in IPv6"),
        pytest.param(0, "", "fe80::1%eth0", "fe80::/64", id="IPv6 with a zone"),
        pytest.param(0, "", "", "unknown", id="a unix socket"),
        pytest.param(1, "unix:", "", "unknown", id="nothing usable at all"),
    ],
)
def test_client_address(proxies: int, forwarded: str, direct: str, expected: str) -> None:
    request = RequestFactory().get("/", REMOTE_ADDR=direct, HTTP_X_FORWARDED_FOR=forwarded)
    assert client_address(request, proxies) == expected
