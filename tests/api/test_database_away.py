"""The API while the database is away: the last known data with its true age, or a 503."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from cachetools import FIFOCache
from django.db import InterfaceError, OperationalError, connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apiauth import authentication
from apiauth.access_log import writer
from scraping.models import Match
from tests.api_fixtures import Caller
from tests.factories import make_event, make_match, make_ref
from tests.unreachable_database import known_to_be_away  # noqa: F401 - a fixture
from victoryline.lib.availability import Availability

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.fault, pytest.mark.requirement("EC-2")]

Away = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def no_access_log(settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Rows of the access log stay queued, as in a web process whose database is away."""
    settings.ACCESS_LOG_IS_SYNCHRONOUS = False
    rows: list[Any] = []
    monkeypatch.setattr(writer, "write", rows.append)
    return rows


@pytest.fixture(params=[OperationalError, InterfaceError])
def away(request: pytest.FixtureRequest, no_access_log: list[Any]) -> Away:
    def refuse(*_: Any) -> None:
        raise request.param("connection refused")

    return lambda: connection.execute_wrapper(refuse)


def read_ago(seconds: float, **fields: Any) -> Match:
    now = timezone.now() - timedelta(seconds=seconds)
    return make_ref(make_match(now=now, **fields), now=now, source_event_id="13KM").match


class TestMatch:
    @pytest.mark.parametrize("address", ["/api/v1/matches/{}", "/cricket-data/match-info/{}"])
    def test_cached_is_served_in_the_same_shape(self, caller: Caller, away: Away, address: str) -> None:
        match = read_ago(4)
        before = caller.get(address.format(match.pk))
        with away():
            after = caller.get(address.format(match.pk))
        assert (after.status_code, after["X-Data-Source"], after["ETag"]) == (200, "cache", before["ETag"])
        assert "X-Data-Source" not in before.headers
        cached, known = after.json(), before.json()
        assert cached.pop("_metadata").items() >= {"source": "cache"}.items()
        assert known.pop("_metadata")["source"] == "scraper"
        assert cached == known

    @pytest.mark.requirement("BX-1")
    def test_shows_its_current_age(self, caller: Caller, away: Away, monkeypatch: pytest.MonkeyPatch) -> None:
        match = read_ago(4)
        caller.get(f"/api/v1/matches/{match.pk}")
        later = timezone.now() + timedelta(seconds=350)
        monkeypatch.setattr("scraping.api.fresh_view.timezone.now", lambda: later)
        with away():
            answer = caller.get(f"/api/v1/matches/{match.pk}")
            refused = caller.get(f"/api/v1/matches/{match.pk}", {"max_age": 60})
        assert 354 <= int(answer["X-Data-Age-Seconds"]) <= 360
        assert (answer["X-Data-State"], answer.json()["_metadata"]["state"]) == ("stale", "stale")
        assert (refused.status_code, refused.json()["type"]) == (503, "/problems/too-stale")

    def test_is_found_by_its_name_at_a_source(self, caller: Caller, away: Away) -> None:
        match = read_ago(1)
        caller.get(f"/api/v1/matches/{match.pk}")
        with away():
            assert caller.get("/api/v1/matches/crex_13KM").json()["id"] == match.pk

    def test_unchanged_is_a_304_that_costs_no_quota(self, caller: Caller, away: Away) -> None:
        match = read_ago(1)
        first = caller.get(f"/api/v1/matches/{match.pk}")
        with away():
            again = caller.get(f"/api/v1/matches/{match.pk}", If_None_Match=first["ETag"])
        assert (again.status_code, again["X-Data-Source"]) == (304, "cache")
        assert again["X-RateLimit-Remaining"] == first["X-RateLimit-Remaining"]

    def test_unknown_is_a_503_and_not_a_404(self, caller: Caller, away: Away) -> None:
        caller.get("/api/v1/matches/999")
        with away():
            for name in ("999", "crex_999"):
                answer = caller.get(f"/api/v1/matches/{name}")
                assert (answer.status_code, answer.json()["type"]) == (503, "/problems/unavailable")
                assert answer["Retry-After"] == "5"

    def test_of_another_sport_is_not_found_under_cricket(self, caller: Caller, away: Away) -> None:
        match = read_ago(1, sport="football")
        caller.get(f"/api/v1/matches/{match.pk}")
        with away():
            assert caller.get(f"/cricket-data/match-info/{match.pk}").status_code == 404

    def test_merged_is_served_under_its_former_id(self, caller: Caller, away: Away) -> None:
        keep, gone = read_ago(1), make_match(now=timezone.now())
        address = f"/api/v1/matches/{gone.pk}"
        caller.get(address)
        Match.objects.filter(pk=gone.pk).update(merged_into=keep)
        caller.get(address)
        with away():
            assert caller.get(address).json()["id"] == keep.pk
            assert caller.get(f"{address}/delta", {"since": 1}).status_code == 410

    def test_bad_parameters_are_still_the_callers_mistake(self, caller: Caller, away: Away) -> None:
        caller.get("/api/v1/matches")
        with away():
            assert caller.get("/api/v1/matches", {"limit": 0}).status_code == 400


class TestLists:
    @pytest.mark.parametrize(
        "address", ["/api/v1/matches", "/api/v1/matches?status=live", "/cricket-data/live-matches"]
    )
    def test_the_same_request_gets_the_last_response(self, caller: Caller, away: Away, address: str) -> None:
        read_ago(2)
        before = caller.get(address)
        with away():
            after = caller.get(address)
        assert (after.status_code, after["X-Data-Source"], after["ETag"]) == (200, "cache", before["ETag"])
        assert len(after.json()["matches"]) == 1
        assert int(after["X-Data-Age-Seconds"]) >= 2

    def test_other_filters_are_answered_from_memory(self, caller: Caller, away: Away) -> None:
        read_ago(2)
        caller.get("/api/v1/matches?status=completed")
        with away():
            assert len(caller.get("/api/v1/matches?status=live").json()["matches"]) == 1

    def test_archived_matches_are_refused(self, caller: Caller, away: Away) -> None:
        read_ago(2)
        caller.get("/api/v1/matches")
        with away():
            assert caller.get("/api/v1/matches?lifecycle=ARCHIVED").status_code == 503

    def test_an_incomplete_list_is_refused(self, caller: Caller, away: Away, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("scraping.documents.cache.MAX_MATCHES", 1)
        for number in range(2):
            make_ref(make_match(now=timezone.now()), source_event_id=str(number))
        caller.get("/api/v1/matches?status=live")
        with away():
            assert caller.get("/api/v1/matches").status_code == 503


class TestEvents:
    def test_cached_pages_are_served(self, caller: Caller, away: Away) -> None:
        match = read_ago(2)
        event = make_event(match)
        address = f"/api/v1/matches/{match.pk}/events"
        before, end = caller.get(address), caller.get(address, {"since": event.pk})
        with away():
            assert caller.get(address).json()["events"] == before.json()["events"] != []
            assert caller.get(address, {"since": event.pk})["ETag"] == end["ETag"]
            assert caller.get(address, {"since": 1, "limit": 3}).status_code == 503


class TestTokens:
    def test_a_cached_key_is_accepted_for_a_while(
        self, caller: Caller, away: Away, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        match = read_ago(1)
        caller.get(f"/api/v1/matches/{match.pk}")
        began, real = time.monotonic(), time.monotonic
        with away():
            for later, status in ((authentication.AWAY_SECONDS - 5, 200), (authentication.AWAY_SECONDS + 5, 503)):
                monkeypatch.setattr("apiauth.authentication.time.monotonic", lambda later=later: began + later)
                assert caller.get(f"/api/v1/matches/{match.pk}").status_code == status
                monkeypatch.setattr("apiauth.authentication.time.monotonic", real)

    def test_an_uncached_key_is_a_503(self, caller: Caller, away: Away) -> None:
        with away():
            answer = caller.get("/api/v1/matches")
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/unavailable")
        assert "token can't be checked" in answer.json()["detail"]

    def test_a_forged_token_is_refused_without_the_database(self, anonymous: Client, away: Away) -> None:
        with away():
            answer = anonymous.get("/api/v1/matches", headers={"Authorization": "Bearer a.b.c"})
        assert answer.status_code == 401

    def test_cache_of_keys_is_bounded(self, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(authentication, "_cache", FIFOCache(3))
        for number in range(10):
            authentication.find(f"{number:012x}")
        authentication.find(caller.key.prefix)
        assert len(authentication._cache) == 3
        assert caller.key.prefix in authentication._cache

    def test_none_are_issued(self, caller: Caller, anonymous: Client, away: Away) -> None:
        with away():
            answer = anonymous.post(
                "/token/generate-token", {"api_key": caller.issued.text}, content_type="application/json"
            )
        assert (answer.status_code, answer["Retry-After"]) == (503, "5")


class TestKnownToBeAway:
    def test_no_request_queries_the_database(
        self,
        caller: Caller,
        operator: Caller,
        no_access_log: list[Any],
        django_assert_num_queries: DjangoAssertNumQueries,
        request: pytest.FixtureRequest,
    ) -> None:
        match = read_ago(1)
        caller.get(f"/api/v1/matches/{match.pk}")
        operator.get("/api/v1/matches")
        gone: Availability = request.getfixturevalue("known_to_be_away")
        with django_assert_num_queries(0):
            assert caller.get(f"/api/v1/matches/{match.pk}")["X-Data-Source"] == "cache"
            assert caller.get("/api/v1/matches").status_code == 200  # the operator's request, the same response
            assert operator.post(f"/api/v1/matches/{match.pk}/pause").status_code == 503
            issued = caller.client.post("/token/generate-token", {"api_key": "x"}, content_type="application/json")
            assert issued.status_code == 503
        assert len(no_access_log) == 6
        gone.forget()
        assert "X-Data-Source" not in caller.get(f"/api/v1/matches/{match.pk}").headers
