"""Fixtures of the client's tests: the real API on a port, an API key, a faulty proxy in front, and a match in play."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from apiauth import keys
from apiauth.models import Tier
from scraping.models import MatchEvent, MatchRef
from scraping.payloads import Event, Status
from tests.api_fixtures import clean_api
from tests.client.faulty_proxy import FaultyProxy
from tests.factories import make_match, make_ref
from tests.scraping.builders import ball, chasing, payload_of, read
from victoryline_client import Client

__all__ = ["clean_api"]

MakeClient = Callable[..., Client]


@dataclass
class Play:
    """A match in play: the state that its source shows, ingested after each step."""

    ref: MatchRef
    runs: int = 95
    balls: dict[int, Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bowl()

    def bowl(self, count: int = 1, **fields: Any) -> None:
        for _ in range(count):
            number = max(self.balls, default=0) + 1
            self.balls[number] = ball(number, **fields)
            self.runs += 1
        self.ingest()

    def correct(self, number: int, runs: int) -> None:
        self.balls[number] = self.balls[number].model_copy(update={"runs": runs})
        self.ingest()

    def retract(self, number: int) -> None:
        del self.balls[number]
        self.ingest()

    def end(self, result: str = "Australia won") -> None:
        self.ingest(status=Status.COMPLETED, result=result)

    def ingest(self, **fields: Any) -> None:
        self.ref.refresh_from_db()
        state = chasing(self.runs, start_time=self.ref.match.start_time, **fields)
        now = timezone.now()
        events = self.balls.values()
        read(self.ref, payload_of(self.ref, state, at=now, events=events, events_are_complete=True), at=now)


def rows_of(match_id: int) -> list[int]:
    """Returns the ids of the feed's rows in the database."""
    return list(MatchEvent.objects.filter(match=match_id, is_served=True).order_by("pk").values_list("pk", flat=True))


def steps(*actions: Callable[[], object]) -> Callable[[float], None]:
    """Returns a sleep function that runs one of the actions instead of waiting."""
    left = deque(actions)

    def sleep(_: float) -> None:
        if left:
            left.popleft()()

    return sleep


@pytest.fixture
def key(transactional_db: None) -> str:
    issued = keys.issue(consumer_name="acme", tier=Tier.PREMIUM, scopes=("read", "ingest"), now=timezone.now())
    return issued.text


@pytest.fixture
def proxy(live_server: LiveServer) -> Iterator[FaultyProxy]:
    with FaultyProxy(live_server.url) as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """The seconds that the client would have slept."""
    return []


@pytest.fixture
def make_client(proxy: FaultyProxy, key: str, waits: list[float]) -> Iterator[MakeClient]:
    made: list[Client] = []

    def make(**options: Any) -> Client:
        # A longer timeout than usual: a busy machine must not add a retry.
        values = {"url": proxy.url, "key": key, "sleep": waits.append, "timeout": 60.0, **options}
        made.append(Client(values.pop("url"), values.pop("key"), **values))
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


@pytest.fixture
def play(ref: MatchRef) -> Play:
    return Play(ref)
