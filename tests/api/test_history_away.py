"""History while the database is away: documents that were requested before, or a 503."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from apiauth.access_log import writer
from scraping.documents import queries
from scraping.models import MatchRef
from tests.api_fixtures import Caller
from tests.factories import make_ref, make_unread_match
from tests.scraping.builders import balls, chasing, payload_of, read
from victoryline.lib import availability

pytestmark = [pytest.mark.django_db, pytest.mark.fault, pytest.mark.requirement("EC-2")]
ADDRESSES = ["/delta?since=1", "?sequence=1", "/snapshots", "/snapshots/1", "/events?since_sequence=1"]


@pytest.fixture
def away(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    settings.ACCESS_LOG_IS_SYNCHRONOUS = False
    monkeypatch.setattr(writer, "write", lambda _: None)

    def refuse(*_: Any) -> None:
        raise OperationalError("connection refused")

    return lambda: connection.execute_wrapper(refuse)


@pytest.fixture
def ref() -> MatchRef:
    return make_ref(make_unread_match(), captured_at=None)


def bowl(ref: MatchRef, number: int) -> None:
    at = timezone.now() - timedelta(seconds=30 - 10 * number)
    read(ref, payload_of(ref, chasing(90 + number), at=at, events=balls(number)))


@pytest.fixture
def match(ref: MatchRef) -> str:
    for number in (1, 2):
        bowl(ref, number)
    return f"/api/v1/matches/{ref.match_id}"


@pytest.mark.parametrize("address", ADDRESSES)
def test_documents_requested_before_are_answered(caller: Caller, match: str, away: Any, address: str) -> None:
    before = caller.get(match + address)
    with away():
        after = caller.get(match + address)
    assert (after.status_code, after["ETag"]) == (200, before["ETag"])
    cached, known = after.json(), before.json()
    cached.pop("_metadata")
    known.pop("_metadata")
    assert cached == known


@pytest.mark.parametrize("address", ADDRESSES)
def test_documents_not_cached_are_a_503(caller: Caller, match: str, away: Any, address: str) -> None:
    caller.get(match)
    with away():
        response = caller.get(match + address)
    assert (response.status_code, response.json()["type"]) == (503, "/problems/unavailable")
    assert int(response["Retry-After"]) >= 1


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_database_that_goes_away_in_the_middle_is_a_503(
    caller: Caller, match: str, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused")

    for name in ("at_sequence", "at_time", "page_of_snapshots"):
        monkeypatch.setattr(queries, name, refuse)
    monkeypatch.setattr(queries, "page_of_events", refuse)
    assert caller.get(match + address).status_code == 503


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("/lineups", "lineups_of"),
        ("/conflicts", "conflicts_of"),
        ("?include=provenance", "column_of"),
        ("?include=readings", "readings_of"),
    ],
)
def test_a_database_that_goes_away_after_the_match_was_found_is_a_503(
    caller: Caller, match: str, monkeypatch: pytest.MonkeyPatch, address: str, name: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(queries, name, refuse)
    assert caller.get(match + address).status_code == 503


def test_an_empty_delta_needs_no_database(caller: Caller, match: str, away: Any) -> None:
    sequence = caller.get(match).json()["sequence"]
    with away():
        assert caller.get(f"{match}/delta?since={sequence}").json()["_diff_type"] == "none"


class TestMatchCachedWithoutItsEvents:
    """The change was published just before the database went away; its rows were not requested before."""

    @pytest.fixture
    def later(self, caller: Caller, match: str, ref: MatchRef) -> str:
        for address in ("/delta?since=1", "/events"):
            assert len(caller.get(match + address).json()["events"]) in (1, 2)
        bowl(ref, 3)
        assert caller.get(match).json()["sequence"] == 3
        return match

    def test_has_no_delta_that_would_skip_them(self, caller: Caller, later: str, away: Any) -> None:
        with away():
            response = caller.get(f"{later}/delta?since=1")
        assert (response.status_code, response.json()["type"]) == (503, "/problems/unavailable")
        availability.database.forget()
        assert len(caller.get(f"{later}/delta?since=1").json()["events"]) == 2

    def test_has_a_feed_with_its_last_position(self, caller: Caller, later: str, away: Any) -> None:
        with away():
            old = caller.get(f"{later}/events")
        availability.database.forget()
        new = caller.get(f"{later}/events", If_None_Match=old["ETag"])
        feeds = [(len(feed["events"]), feed["_metadata"]["sequence"]) for feed in (old.json(), new.json())]
        assert feeds == [(2, 2), (3, 3)]
