"""Reads are answered from the board: what was committed last, without a question to the database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apiauth import access_records
from scraping.documents import looking
from scraping.documents.board import board
from scraping.documents.follower import follower
from scraping.models import Match, MatchLifecycle
from tests.api_fixtures import Caller
from tests.factories import make_event, make_match, make_ref, make_snapshot
from tests.system import wait_for
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


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process follows what is committed, as a web process does."""
    monkeypatch.setattr(access_records, "insert", lambda batch: None)  # written by a thread outside of tests
    board.clear()
    follower.start()
    wait_for(lambda: board.is_in_step, seconds=10, what="the board is filled")
    yield
    follower.stop()
    board.clear()


def live_match() -> Match:
    match = make_match(now=timezone.now())
    make_ref(match)
    make_snapshot(match)
    make_event(match)
    wait_for(
        lambda: (held := board.get(match.pk)) and held.keys, seconds=10, what="the match and its key are on the board"
    )
    return match


def asked(caller: Caller, address: str) -> tuple[Any, list[str]]:
    with CaptureQueriesContext(connection) as queries:
        answer = caller.get(address)
    return answer, [each["sql"] for each in queries.captured_queries]


@pytest.mark.usefixtures("followed")
class TestReads:
    def test_ask_the_database_nothing(self, caller: Caller) -> None:
        match = live_match()
        key = board.get(match.pk).keys[0]
        for address in READS:
            place = address.format(id=match.pk, key=key)
            assert caller.get(place).status_code == 200, place
            answer, queries = asked(caller, place)
            assert (answer.status_code, queries) == (200, []), place

    def test_say_the_same_as_the_database_does(self, caller: Caller) -> None:
        """But for ages, which grow, and the time of the answer."""
        match = live_match()
        followed = [_timeless(caller.get(place.format(id=match.pk, key=match.pk)).json()) for place in READS]
        follower.stop()
        board.clear()
        assert [_timeless(caller.get(place.format(id=match.pk, key=match.pk)).json()) for place in READS] == followed
        follower.start()

    def test_show_a_commit(self, caller: Caller) -> None:
        match = live_match()
        etag = caller.get(f"/api/v1/matches/{match.pk}")["ETag"]
        Match.objects.filter(pk=match.pk).update(sequence=2, title="Something has happened")
        wait_for(lambda: board.get(match.pk).sequence == 2, seconds=5, what="the board shows it")
        answer = caller.get(f"/api/v1/matches/{match.pk}", If_None_Match=etag)
        assert (answer.status_code, answer.json()["title"]) == (200, "Something has happened")

    def test_have_another_etag_where_only_its_names_have_changed(self, caller: Caller) -> None:
        match = live_match()
        places = (f"/api/v1/matches/{match.pk}", "/api/v1/matches")
        etags = [caller.get(place)["ETag"] for place in places]
        make_ref(match)
        wait_for(lambda: len(board.get(match.pk).keys) == 2, seconds=5, what="the board shows it")
        for place, etag in zip(places, etags, strict=True):
            assert caller.get(place, If_None_Match=etag).status_code == 200

    def test_show_what_was_done_by_the_same_caller_a_moment_ago(self) -> None:
        match, operator = live_match(), Caller(name="operator", scopes=("read", "operate"))
        for word, lifecycle in (("pause", "PAUSED"), ("resume", "ACTIVE")) * 3:
            assert operator.post(f"/api/v1/matches/{match.pk}/{word}").status_code == 200
            assert operator.get(f"/api/v1/matches/{match.pk}").json()["lifecycle"] == lifecycle
            (listed,) = operator.get("/api/v1/matches").json()["matches"]
            assert listed["lifecycle"] == lifecycle

    def test_of_an_archived_match_ask_once_in_a_while(self, caller: Caller) -> None:
        match = make_match(lifecycle=MatchLifecycle.ARCHIVED, status="completed", now=timezone.now())
        make_ref(match)
        caller.get("/api/v1/matches")
        answer, first = asked(caller, f"/api/v1/matches/{match.pk}")
        _, second = asked(caller, f"/api/v1/matches/{match.pk}")
        assert (answer.status_code, bool(first), second) == (200, True, [])

    def test_of_a_match_that_is_not_held_show_a_commit_too(
        self, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(looking, "HELD_AT_MOST", 1)
        older = make_match(now=timezone.now())
        make_ref(older)
        live_match()
        wait_for(lambda: not board.holds(older.pk), seconds=5, what="only the newest is held")
        assert caller.get(f"/api/v1/matches/{older.pk}").json()["sequence"] == 1
        Match.objects.filter(pk=older.pk).update(sequence=2)
        assert caller.get(f"/api/v1/matches/{older.pk}").json()["sequence"] == 2

    def test_of_an_old_number_lead_to_what_it_became(self, caller: Caller) -> None:
        match = live_match()
        gone = make_match(merged_into=match)
        assert caller.get(f"/api/v1/matches/{gone.pk}").json()["id"] == match.pk
        assert asked(caller, f"/api/v1/matches/{gone.pk}")[1] == []
        board.put(replace(board.get(match.pk), sequence=9, title="It goes on"))
        assert caller.get(f"/api/v1/matches/{gone.pk}").json()["title"] == "It goes on"

    def test_of_nobody_are_not_found(self, caller: Caller) -> None:
        live_match()
        for name in ("999999", "crex_nobody"):
            assert caller.get(f"/api/v1/matches/{name}").status_code == 404

    @pytest.mark.requirement("BX-1")
    def test_go_on_while_the_database_is_away(self, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        match = live_match()
        caller.get(f"/api/v1/matches/{match.pk}/events?since=0")
        caller.get(f"/api/v1/matches/{match.pk}/delta?since=1")
        monkeypatch.setattr(availability.database, "is_away", lambda: True)
        for address in READS:
            place = address.format(id=match.pk, key=match.pk)
            answer, queries = asked(caller, place)
            assert (answer.status_code, answer["X-Data-Source"], queries) == (200, "cache", []), place
        assert caller.get(f"/api/v1/matches/{match.pk}").json()["_metadata"]["source"] == "cache"

    def test_go_on_where_it_went_away_before_what_was_done_could_be_looked_up(
        self, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        match = live_match()
        caller.get("/api/v1/usage")  # its key is known
        monkeypatch.setattr(availability.database, "is_away", lambda: True)
        board.expect([match.pk])
        for name in (match.pk, match.refs.get().key):
            answer = caller.get(f"/api/v1/matches/{name}")
            assert (answer.status_code, answer["X-Data-Source"]) == (200, "cache")

    def test_grow_old_by_the_second(self, caller: Caller) -> None:
        match = live_match()
        long_ago = timezone.now() - timedelta(seconds=77)
        Match.objects.filter(pk=match.pk).update(last_scraper_update=long_ago, sequence=2)
        wait_for(lambda: board.get(match.pk).sequence == 2, seconds=5, what="the board shows it")
        answer = caller.get(f"/api/v1/matches/{match.pk}")
        assert 77 <= int(answer["X-Data-Age-Seconds"]) < 90
        assert answer["X-Data-State"] == "aging"


def _timeless(body: Any) -> Any:
    if isinstance(body, dict):
        clocks = {"data_age_seconds", "age_seconds", "next_update_in", "next_update_in_seconds", "generated_at"}
        return {name: _timeless(value) for name, value in body.items() if name not in clocks}
    return [_timeless(each) for each in body] if isinstance(body, list) else body
