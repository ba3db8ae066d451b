"""Consumers of the API for a bench: rows, keys, and tokens from the token endpoint. Needs Django set up."""

from __future__ import annotations

import http.client
import json

from django.utils import timezone

from apiauth import keys
from apiauth.models import AccessLog, Tier, UsageHour
from benchmarks.errors import BenchError

PREFIX = "bench-"


def make(number: int, *, prefix: str = PREFIX) -> list[str]:
    """Creates consumers and returns their API keys."""
    now = timezone.now()
    names = [f"{prefix}{index}" for index in range(number)]
    return [keys.issue(consumer_name=name, tier=Tier.PREMIUM, scopes=("read",), now=now).text for name in names]


def fetch_tokens(address: tuple[str, int], api_keys: list[str]) -> list[str]:
    """Returns a token of the web process for each key."""
    connection = http.client.HTTPConnection(*address, timeout=10)
    try:
        return [_token(connection, each) for each in api_keys]
    finally:
        connection.close()


def _token(connection: http.client.HTTPConnection, api_key: str) -> str:
    body = json.dumps({"api_key": api_key})
    connection.request("POST", "/token/generate-token", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    content = response.read()
    if response.status != 200:
        raise BenchError(f"no token: {response.status} {content[:300].decode(errors='replace')}")
    return str(json.loads(content)["token"])


def logged(*, prefix: str = PREFIX) -> int:
    """Returns the number of their data requests in the access log."""
    return AccessLog.objects.filter(consumer__name__startswith=prefix, method="GET").count()


def summed(*, prefix: str = PREFIX) -> int:
    """Returns the number of their data requests in the hourly sums."""
    rows = UsageHour.objects.filter(consumer__name__startswith=prefix).exclude(route="generate-token")
    return sum(rows.values_list("requests", flat=True))
