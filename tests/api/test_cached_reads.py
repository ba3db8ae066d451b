"""Reads come from the document cache: correct within its lifetime, without queries inside it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apiauth import access_records
from scraping.documents.cache import COMPARE_SECONDS, LIFETIME_SECONDS, documents
from scraping.models import Match, MatchLifecycle
from tests.api_fixtures import Caller
from tests.factories import make_event, make_match, make_ref, make_snapshot
from tests.patience import wait_for
from victoryline.lib import availability

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both]

READS = (
    "/api/v1/matches/{id}",
    "/api/v1/matches/{key}",
    "/api/v1/matches",
    "/api/v1/matches?status=live&sport=cricket&limit=5",
    "/api/v1/matches/{id}/events?since=0",
    "/api/v1/matches/{id}/delta?since=1",
    "/cricket-data/match-info/{id}",
    "/cricket-data/live-matches",
)


@pytest.fixture(autouse=True)
def _no_access_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_records, "insert", lambda batch: None)  # written by a thread outside of tests


@pytest.fixture
def long_lifetime(clean_api: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lifetime longer than any test."""
    monkeypatch.setattr(documents, "lifetime_seconds", 3600.0)
    monkeypatch.setattr(documents, "compare_seconds", 3600.0)
    for name in ("COMPARE_SECONDS", "FOLLOWED_SECONDS"):
        monkeypatch.setattr(f"scraping.documents.cache.{name}", 3600.0)


@pytest.fixture
def real_lifetime(clean_api: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "lifetime_seconds", LIFETIME_SECONDS)
    monkeypatch.setattr(documents, "compare_seconds", COMPARE_SECONDS)


def live_match() -> Match:
    match = make_match(now=timezone.now())
    make_ref(match)
    make_snapshot(match)
    make_event(match)
    return match


def asked(caller: Caller, address: str) -> tuple[Any, list[str]]:
    with CaptureQueriesContext(connection) as queries:
        answer = caller.get(address)
    return answer, [each["sql"] for each in queries.captured_queries]


@pytest.mark.usefixtures("long_lifetime")
class TestWithinTheLifetime:
    def test_reads_make_no_queries(self, caller: Caller) -> None:
        match = live_match()
        key = match.refs.get().key
        for address in READS:
            place = address.format(id=match.pk, key=key)
            assert caller.get(place).status_code == 200, place
            answer, queries = asked(caller, place)
            assert (answer.status_code, queries) == (200, []), place

    def test_reads_show_the_callers_own_changes(self) -> None:
        match, operator = live_match(), Caller(name="operator", scopes=("read", "operate"))
        for action, lifecycle in (("pause", "PAUSED"), ("resume", "ACTIVE")) * 3:
            assert operator.post(f"/api/v1/matches/{match.pk}/{action}").status_code == 200
            assert operator.get(f"/api/v1/matches/{match.pk}").json()["lifecycle"] == lifecycle
            (listed,) = operator.get("/api/v1/matches").json()["matches"]
            assert listed["lifecycle"] == lifecycle

    def test_an_archived_match_is_cached(self, caller: Caller) -> None:
        match = make_match(lifecycle=MatchLifecycle.ARCHIVED, status="completed", now=timezone.now())
        make_ref(match)
        caller.get("/api/v1/matches")
        answer, first = asked(caller, f"/api/v1/matches/{match.pk}")
        _, second = asked(caller, f"/api/v1/matches/{match.pk}")
        assert (answer.status_code, bool(first), second) == (200, True, [])

    def test_a_former_id_returns_the_merged_match(self, caller: Caller) -> None:
        match = live_match()
        former = make_match(merged_into=match)
        assert caller.get(f"/api/v1/matches/{former.pk}").json()["id"] == match.pk
        assert asked(caller, f"/api/v1/matches/{former.pk}")[1] == []

    @pytest.mark.requirement("BX-1")
    def test_reads_continue_while_the_database_is_away(self, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        match = live_match()
        caller.get(f"/api/v1/matches/{match.pk}/events?since=0")
        caller.get(f"/api/v1/matches/{match.pk}/delta?since=1")
        monkeypatch.setattr(availability.database, "is_away", lambda: True)
        documents.expire()
        for address in READS:
            place = address.format(id=match.pk, key=match.pk)
            answer, queries = asked(caller, place)
            assert (answer.status_code, answer["X-Data-Source"], queries) == (200, "cache", []), place
        assert caller.get(f"/api/v1/matches/{match.pk}").json()["_metadata"]["source"] == "cache"

    def test_reads_continue_if_a_change_was_not_read_before_the_outage(
        self, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        match = live_match()
        key = match.refs.get().key
        caller.get(f"/api/v1/matches/{match.pk}")
        monkeypatch.setattr(availability.database, "is_away", lambda: True)
        documents.invalidate([match.pk])
        for name in (match.pk, key):
            answer = caller.get(f"/api/v1/matches/{name}")
            assert (answer.status_code, answer["X-Data-Source"]) == (200, "cache")


@pytest.mark.usefixtures("real_lifetime")
class TestAfterTheLifetime:
    def test_a_commit_of_another_process_is_served(self, caller: Caller) -> None:
        match = live_match()
        address = f"/api/v1/matches/{match.pk}"
        etag = caller.get(address)["ETag"]
        Match.objects.filter(pk=match.pk).update(sequence=2, title="Something has happened")

        def changed() -> Any:
            answer = caller.get(address, If_None_Match=etag)
            return answer.json() if answer.status_code == 200 else None

        found = wait_for(changed, seconds=5, what="the change is served")
        assert found["title"] == "Something has happened"


class TestWithoutLifetime:
    def test_a_new_key_changes_the_etag(self, caller: Caller) -> None:
        match = live_match()
        places = (f"/api/v1/matches/{match.pk}", "/api/v1/matches")
        etags = [caller.get(place)["ETag"] for place in places]
        make_ref(match)
        for place, etag in zip(places, etags, strict=True):
            assert caller.get(place, If_None_Match=etag).status_code == 200

    def test_an_unknown_name_is_not_found(self, caller: Caller) -> None:
        live_match()
        for name in ("999999", "crex_unknown"):
            assert caller.get(f"/api/v1/matches/{name}").status_code == 404

    def test_the_age_is_computed_at_the_request(self, caller: Caller) -> None:
        match = live_match()
        long_ago = timezone.now() - timedelta(seconds=77)
        Match.objects.filter(pk=match.pk).update(last_scraper_update=long_ago, sequence=2)
        answer = caller.get(f"/api/v1/matches/{match.pk}")
        assert 77 <= int(answer["X-Data-Age-Seconds"]) < 90
        assert answer["X-Data-State"] == "aging"
