"""What the tests of the client share: the real API on a port, a key, a proxy before it that misbehaves when told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from apiauth import keys
from apiauth.models import Tier
from scraping.models import MatchRef
from tests.api_fixtures import clean_api
from tests.client.chaos import ChaosProxy
from tests.factories import make_match, make_ref
from victoryline_client import Client, Patience

__all__ = ["clean_api"]

MakeClient = Callable[..., Client]


@pytest.fixture
def key(transactional_db: None) -> str:
    issued = keys.issue(consumer_name="acme", tier=Tier.PREMIUM, scopes=("read", "ingest"), now=timezone.now())
    return issued.text


@pytest.fixture
def proxy(live_server: LiveServer) -> Iterator[ChaosProxy]:
    with ChaosProxy(live_server.url) as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """How long the client would have slept."""
    return []


@pytest.fixture
def make_client(proxy: ChaosProxy, key: str, waits: list[float]) -> Iterator[MakeClient]:
    made: list[Client] = []

    def make(**more: Any) -> Client:
        values: dict[str, Any] = {"timeout": 10.0, "sleep": waits.append, "patience": Patience(attempts=4), **more}
        made.append(Client(values.pop("url", proxy.url), values.pop("key", key), **values))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client: MakeClient) -> Client:
    return make_client()


@pytest.fixture
def ref(transactional_db: None) -> MatchRef:
    """A live match that was read just now."""
    now = timezone.now()
    return make_ref(make_match(now=now), now=now)
