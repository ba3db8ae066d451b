"""The base address of links in messages."""

from __future__ import annotations

import pytest

from monitoring.alerts.delivery import base_url
from tests.monitoring.alerts.conftest import Configure


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, "", id="not configured: no link"),
        pytest.param({"public_url": "https://scores.example/"}, "https://scores.example", id="configured"),
        pytest.param({"https": True, "allowed_hosts": ("127.0.0.1", "vl.example")}, "https://vl.example", id="HTTPS"),
        pytest.param({"allowed_hosts": ("vl.example",)}, "", id="a name without HTTPS: unknown port"),
    ],
)
def test_base_url(configure: Configure, values: dict[str, object], expected: str) -> None:
    configure(**values)
    assert base_url() == expected
