"""Fixtures of the API tests: a caller with a token, and empty counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import caches
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from apiauth import authentication, keys, limits, tokens
from apiauth.models import Tier
from scraping.documents.cache import documents
from victoryline.lib import availability
from victoryline.lib.http import request_log


class Caller:
    """A consumer of the API with a token."""

    def __init__(self, name: str = "acme", tier: Tier = Tier.STANDARD, scopes: tuple[str, ...] = ("read",)) -> None:
        now = timezone.now()
        self.issued = keys.issue(consumer_name=name, tier=tier, scopes=scopes, now=now)
        self.key = self.issued.key
        self.token = tokens.make(self.key, now).text
        self.client = Client(raise_request_exception=False)

    def get(self, path: str, query: dict[str, Any] | None = None, **headers: str) -> HttpResponse:
        return self.client.get(path, query or {}, headers=self._headers(headers))

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        return self.client.post(path, body or {}, content_type="application/json", headers=self._headers(headers))

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {"Authorization": f"Bearer {self.token}", **named}


@pytest.fixture(autouse=True)
def clean_api(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Empties counters and caches; documents live for one read, and the access log is written at once."""
    settings.ACCESS_LOG_IS_SYNCHRONOUS = True
    monkeypatch.setattr(documents, "lifetime_seconds", 0.0)
    monkeypatch.setattr(documents, "compare_seconds", 0.0)
    _forget()
    yield
    _forget()


def _forget() -> None:
    authentication.forget()
    documents.clear()
    availability.database.forget()
    request_log._logged.clear()
    forget_open_limits()
    limiter = limits.limiter()
    limiter._memory._buckets.clear()
    if limiter._redis is not None:
        _delete_keys(f"{limits.KEY_PREFIX}*")


def forget_open_limits() -> None:
    """Empties the counters of django-ratelimit."""
    cache = caches["limits"]
    cache.clear()
    if limits.limiter()._redis is not None:
        _delete_keys("victoryline:1:rl:*")


def _delete_keys(pattern: str) -> None:
    windows = limits.limiter()._redis
    assert windows is not None  # the Redis of the configuration as it was before a test changed it
    for key in windows._client.scan_iter(pattern, count=1000):
        windows._client.delete(key)


@pytest.fixture
def caller(db: None) -> Caller:
    return Caller()


@pytest.fixture
def operator(db: None) -> Caller:
    return Caller(name="operator", tier=Tier.PREMIUM, scopes=("read", "operate"))


@pytest.fixture
def anonymous(db: None) -> Client:
    return Client(raise_request_exception=False)
