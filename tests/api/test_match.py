"""GET /api/v1/matches/{id} and its events."""

import math
import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone
from django.utils.http import http_date
from hypothesis import example, given
from hypothesis import strategies as st

from scraping.api.bodies import ItemFreshness
from scraping.api.fresh_view import Answer, match_etag, refuse_stale
from scraping.documents import queries
from scraping.documents.cached_match import SHOWN
from scraping.documents.freshness import DataState, Freshness
from scraping.models import Breaker, BreakerState, EventAction, Match, MatchLifecycle
from tests.api_fixtures import Caller
from tests.factories import (
    cricket_state,
    make_event,
    make_match,
    make_ref,
    make_scraper,
    make_snapshot,
    make_unread_match,
)
from victoryline.lib.http.problems import ApiProblem

pytestmark = pytest.mark.django_db


def path(match: Match, rest: str = "") -> str:
    return f"/api/v1/matches/{match.pk}{rest}"


def read_ago(seconds: float, **fields: Any) -> Match:
    """A match with a reference, last read so many seconds ago."""
    now = timezone.now() - timedelta(seconds=seconds)
    match = make_match(now=now, **fields)
    make_ref(match, now=timezone.now(), source_event_id="13KM")
    return match


class TestBody:
    @pytest.mark.requirement("SO-12")
    def test_is_the_unified_schema(self, caller: Caller) -> None:
        match = read_ago(3)
        body = caller.get(path(match)).json()
        assert (body["match_id"], body["domain_id"], body["id"]) == ("crex_13KM", "crex", match.pk)
        assert (body["status"], body["phase"], body["title"]) == ("live", "play", "India vs Australia")
        assert body["teams"]["team_a"] == {"name": "India", "short_name": "IND"}
        assert body["score"]["team_b"]["runs"] == 95
        assert body["current_innings"] == 2
        assert [innings["overs"] for innings in body["innings"]] == ["20.0", "12.3"]
        assert body["metadata"] == {"series": "India tour of Australia"}
        assert body["start_time"].endswith("Z")
        assert {"toss", "venue", "last_event", "result", "sequence"} <= body.keys()

    @pytest.mark.requirement("FR-013")
    def test_shows_source_and_age_of_the_data(self, caller: Caller) -> None:
        match = read_ago(3)
        scraper = make_scraper(match.refs.get())
        make_snapshot(match, data_source="manual")
        found = caller.get(path(match)).json()["_metadata"]
        assert found["scraper_id"] == str(scraper.scraper_id)
        assert (found["state"], found["sequence"], found["source"]) == ("fresh", 1, "manual")
        assert 3 <= found["data_age_seconds"] < 10
        assert 0 <= found["next_update_in_seconds"] <= 2.5

    @pytest.mark.parametrize("stored", ["2026-01-02T10:30:45Z", "2026-01-02T16:00:45+05:30"])
    def test_formats_the_time_of_the_last_event_like_all_times(self, caller: Caller, stored: str) -> None:
        match = read_ago(1)
        match.payload["last_event"] = {"type": "four", "description": "Four", "timestamp": stored}
        match.save()
        assert caller.get(path(match)).json()["last_event"]["timestamp"] == "2026-01-02T10:30:45.000Z"
        older = caller.get(f"/cricket-data/match-info/{match.pk}").json()
        assert older["lastEvent"]["timestamp"] == "2026-01-02T10:30:45.000Z"

    def test_of_football_has_goals_and_a_clock(self, caller: Caller) -> None:
        match = read_ago(1, sport="football")
        body = caller.get(path(match)).json()
        assert (body["score"]["team_a"]["goals"], body["clock"]) == (2, "67")

    def test_of_an_unread_match_has_no_data(self, caller: Caller) -> None:
        match = make_unread_match()
        response = caller.get(path(match))
        assert response["X-Data-State"] == "unknown"
        assert "X-Data-Freshness" not in response.headers
        assert "ETag" not in response.headers
        body = response.json()
        assert (body["teams"], body["score"], body["_metadata"]["data_age_seconds"]) == (None, None, None)
        assert body["match_id"] == str(match.pk)


SPARE = {"fresh": 60, "aging": 60, "stale": 300, "final": 86_400}


class TestHeaders:
    @pytest.mark.requirement("FR-013", "BX-1", "BX-2")
    def test_show_age_state_and_next_update(self, caller: Caller) -> None:
        response = caller.get(path(read_ago(7)))
        assert 7 <= int(response["X-Data-Age-Seconds"]) < 10
        assert response["X-Data-Freshness"].endswith("Z")
        assert response["X-Data-State"] == "fresh"
        assert 1 <= int(response["X-Next-Update-In"]) <= 3
        assert response["Cache-Control"] == "private, max-age=1, stale-if-error=60"
        assert "Authorization" in response["Vary"]
        assert response["ETag"].startswith('"')
        assert response["X-Request-Id"]
        assert response["X-RateLimit-Remaining"] == "99"

    @pytest.mark.requirement("BX-1")
    @pytest.mark.parametrize(
        ("age", "fields", "state", "cache"),
        [
            (30, {}, "aging", 1),
            (400, {}, "stale", 1),
            (400, {"status": "completed"}, "final", 60),
            (5, {"status": "upcoming"}, "fresh", 10),
        ],
    )
    def test_follow_the_match(self, caller: Caller, age: float, fields: dict[str, Any], state: str, cache: int) -> None:
        response = caller.get(path(read_ago(age, **fields)))
        assert (response["X-Data-State"], response["Cache-Control"]) == (
            state,
            f"private, max-age={cache}, stale-if-error={SPARE[state]}",
        )

    def test_show_the_last_change_of_the_match(self, caller: Caller) -> None:
        """Not the time of the reading or of the response. It causes no 304, because a second may have two changes."""
        changed = timezone.now() - timedelta(minutes=5)
        match = read_ago(3, last_changed_at=changed)
        for address in (path(match), f"/cricket-data/match-info/{match.pk}", "/api/v1/matches"):
            response = caller.get(address, If_Modified_Since=http_date())
            assert (response.status_code, response["Last-Modified"]) == (200, http_date(changed.timestamp()))

    def test_of_a_paused_match_show_when_it_resumes(self, caller: Caller) -> None:
        until = timezone.now() + timedelta(seconds=100)
        response = caller.get(path(read_ago(5, lifecycle=MatchLifecycle.PAUSED, pause_until=until)))
        assert response["X-Data-State"] == "paused"
        assert 90 <= int(response["X-Next-Update-In"]) <= 100

    def test_of_a_paused_and_unwatched_match_promise_no_update(self, caller: Caller) -> None:
        match = read_ago(5, lifecycle=MatchLifecycle.PAUSED, pause_until=timezone.now() + timedelta(seconds=100))
        match.refs.update(is_watched=False, next_poll_at=None)
        for address in (path(match), "/api/v1/matches"):
            assert "X-Next-Update-In" not in caller.get(address)

    def test_never_suggest_an_immediate_retry(self, caller: Caller) -> None:
        match = read_ago(60)
        match.refs.update(next_poll_at=timezone.now() - timedelta(seconds=5))
        assert caller.get(path(match))["X-Next-Update-In"] == "1"

    @pytest.mark.both
    def test_next_update_respects_the_open_breaker_of_the_source(self, caller: Caller) -> None:
        match, now = read_ago(400), timezone.now()
        Breaker.objects.create(
            name="crex",
            source=match.refs.get().source,
            state=BreakerState.OPEN,
            open_until=now + timedelta(minutes=15),
            last_state_change=now,
        )
        for address in (path(match), "/api/v1/matches"):
            answer = caller.get(address)
            assert (answer["X-Data-State"], 890 <= int(answer["X-Next-Update-In"]) <= 900) == ("stale", True)
            assert 890 <= int(caller.get(address, {"max_age": 60})["Retry-After"]) <= 900

    @pytest.mark.requirement("BX-1")
    def test_of_a_refusal_for_age_show_the_age(self, caller: Caller) -> None:
        response = caller.get(path(read_ago(30)), {"max_age": 5})
        assert (response.status_code, response["X-Data-State"]) == (503, "aging")
        assert 30 <= int(response["X-Data-Age-Seconds"]) < 40
        assert response["X-Data-Freshness"].endswith("Z")
        assert response["Cache-Control"] == "no-store"

    def test_the_etag_changes_with_the_lifecycle(self, caller: Caller) -> None:
        match = read_ago(1)
        etag = caller.get(path(match))["ETag"]
        assert caller.get(path(match), If_None_Match=etag).status_code == 304
        until = timezone.now() + timedelta(minutes=5)
        Match.objects.filter(pk=match.pk).update(lifecycle=MatchLifecycle.PAUSED, pause_until=until)
        response = caller.get(path(match), If_None_Match=etag)
        assert (response.status_code, response.json()["lifecycle"]) == (200, "PAUSED")

    @pytest.mark.parametrize("name", SHOWN)
    def test_the_etag_changes_with_every_shown_column(self, name: str) -> None:
        (match,) = queries.cached_matches(ids=[read_ago(1).pk])
        other = replace(match, **{name: timezone.now() if name == "start_time" else "another"})
        assert match_etag(match) != match_etag(other)

    @pytest.mark.requirement("BX-22")
    def test_a_callers_own_request_id_is_kept_if_harmless(self, caller: Caller) -> None:
        match = read_ago(1)
        assert caller.get(path(match), X_Request_Id="trace-7.a_B")["X-Request-Id"] == "trace-7.a_B"
        for bad in ("x" * 65, "a b", "a\u00fc", "<script>"):
            assert caller.get(path(match), X_Request_Id=bad)["X-Request-Id"] != bad


EVERY_PLACE = (
    "/api/v1/matches",
    "/api/v1/matches/{id}",
    "/api/v1/matches/{id}/delta?since=0",
    "/api/v1/matches/{id}/events",
    "/api/v1/matches/{id}/snapshots",
    "/api/v1/matches/{id}/lineups",
    "/api/v1/matches/{id}/conflicts",
    "/cricket-data/match-info/{id}",
    "/cricket-data/live-matches",
)


@pytest.mark.requirement("FR-013", "US3.3", "BX-1", "BX-2")
@pytest.mark.parametrize("place", EVERY_PLACE)
def test_every_answer_with_match_data_keeps_the_contract(caller: Caller, place: str) -> None:
    """Time, age, state, next update; a strong ETag with a free 304; refused if older than max_age."""
    address = place.format(id=read_ago(30).pk)
    response = caller.get(address)
    age, metadata = int(response["X-Data-Age-Seconds"]), response.json()["_metadata"]
    assert 30 <= age < 90
    assert datetime.fromisoformat(response["X-Data-Freshness"]) == datetime.fromisoformat(metadata["scraped_at"])
    assert abs(age - metadata["data_age_seconds"]) <= 1
    assert response["X-Data-State"] == metadata["state"] == "aging"
    assert int(response["X-Next-Update-In"]) == max(1, math.ceil(metadata["next_update_in_seconds"]))
    assert re.fullmatch(r'"[\x21\x23-\x7e]+"', response["ETag"])
    assert response["Cache-Control"] == "private, max-age=1, stale-if-error=60"
    unchanged = caller.get(address, If_None_Match=response["ETag"])
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged["X-RateLimit-Remaining"] == response["X-RateLimit-Remaining"] == "99"
    assert int(unchanged["X-Data-Age-Seconds"]) >= age
    refused = caller.get(address, {"max_age": 5, **({"since": 0} if "delta" in place else {})})
    assert (refused.status_code, refused.json()["code"]) == (503, "too-stale")
    assert int(refused["Retry-After"]) >= 1
    assert int(refused["X-Data-Age-Seconds"]) >= age


@pytest.mark.requirement("BX-2")
@given(st.floats(min_value=0, max_value=100_000))
@example(2.03)
@example(2.0)
def test_header_and_body_have_the_same_next_update(seconds: float) -> None:
    freshness = Freshness(state=DataState.FRESH, scraped_at=None, age_seconds=None, next_update_in=seconds)
    header = Answer(freshness, etag="", cache_seconds=1, body=dict).headers()["X-Next-Update-In"]
    body = ItemFreshness.render(freshness)["next_update_in"]
    assert body >= seconds
    assert int(header) == max(1, math.ceil(body))


@pytest.mark.requirement("BX-1")
@pytest.mark.parametrize("place", EVERY_PLACE)
def test_max_age_limits_the_lifetime_in_caches(caller: Caller, place: str) -> None:
    """Otherwise a cache would serve its older copy in place of our next 503."""
    address, since = place.format(id=read_ago(20).pk), {"since": 0} if "delta" in place else {}
    for max_age, longest in ((20 + 9, 9), (20 + 30, 30), (86_400, 61)):
        kept = caller.get(address, {"max_age": max_age, **since})["Cache-Control"]
        assert sum(map(int, re.findall(r"=(\d+)", kept))) <= longest, kept
    assert kept == "private, max-age=1, stale-if-error=60"


class TestNames:
    def test_a_key_at_a_source_works_as_an_id(self, caller: Caller) -> None:
        match = read_ago(1)
        assert caller.get("/api/v1/matches/crex_13KM").json()["id"] == match.pk

    def test_source_keys_may_contain_underscores(self, caller: Caller) -> None:
        ref = make_ref(source="my_site", source_event_id="a_b_1")
        assert caller.get("/api/v1/matches/my_site_a_b_1").json()["id"] == ref.match_id

    @pytest.mark.requirement("BX-22")
    @pytest.mark.parametrize(
        "name",
        [
            "0",
            "999999",
            "9" * 19,
            "9" * 400,
            "-1",
            "1.5",
            "crex_",
            "_",
            "crex_13KM%00",
            "%00",
            "a_%ED%A0%80b",
            "_" * 500,
            "٣",
            "crex_'; DROP TABLE matches;--",
            "%F0%9F%8F%8F_1",
            "crex%0A_1",
        ],
    )
    def test_unknown_ones_are_a_404_problem(self, caller: Caller, name: str) -> None:
        response = caller.get(f"/api/v1/matches/{name}")
        problem = response.json()
        assert response.status_code == 404
        assert response["Content-Type"] == "application/problem+json"
        assert (problem["type"], problem["status"]) == ("/problems/not-found", 404)
        assert problem["request_id"] == response["X-Request-Id"]


class TestIfNoneMatch:
    def test_costs_no_quota_and_still_shows_the_age(self, caller: Caller) -> None:
        match = read_ago(6)
        first = caller.get(path(match))
        again = [caller.get(path(match), If_None_Match=first["ETag"]) for _ in range(5)]
        assert {response.status_code for response in again} == {304}
        assert {response["X-RateLimit-Remaining"] for response in again} == {"99"}
        assert again[-1].content == b""
        assert int(again[-1]["X-Data-Age-Seconds"]) >= 6
        assert again[-1]["ETag"] == first["ETag"]
        assert caller.get(path(match))["X-RateLimit-Remaining"] == "98"

    def test_is_limited_too_far_above_the_tier(self, caller: Caller, settings) -> None:

        settings.CONFIG = settings.CONFIG.model_copy(update={"rate_limit_standard_per_minute": 1})
        match = read_ago(1)
        etag = caller.get(path(match))["ETag"]
        answers = [caller.get(path(match), If_None_Match=etag).status_code for _ in range(12)]
        assert answers == [304] * 10 + [429] * 2

    def test_sees_a_new_sequence_and_a_new_status(self, caller: Caller) -> None:
        match = read_ago(1)
        etag = caller.get(path(match))["ETag"]
        for change in ({"sequence": 2}, {"status": "completed"}):
            Match.objects.filter(pk=match.pk).update(**change)
            response = caller.get(path(match), If_None_Match=etag)
            assert response.status_code == 200
            etag = response["ETag"]

    @pytest.mark.parametrize("form", ["W/{}", '"x", {}', "*", "{} , W/{}"])
    def test_accepts_every_form_of_the_header(self, caller: Caller, form: str) -> None:
        match = read_ago(1)
        etag = caller.get(path(match))["ETag"]
        assert caller.get(path(match), If_None_Match=form.replace("{}", etag)).status_code == 304

    @pytest.mark.parametrize("value", ["", "nonsense", '"1-1-live', "W/", ",,,", "\x7f"])
    def test_an_invalid_header_is_ignored(self, caller: Caller, value: str) -> None:
        assert caller.get(path(read_ago(1)), If_None_Match=value).status_code == 200

    def test_a_refusal_is_counted_even_with_the_header(self, caller: Caller) -> None:
        response = caller.get("/api/v1/matches/999999", If_None_Match="*")
        assert response.status_code == 404
        assert response["X-RateLimit-Remaining"] == "99"


@pytest.mark.requirement("BX-1")
class TestMaxAge:
    def test_refuses_older_data_with_503_and_retry_after(self, caller: Caller) -> None:
        match = read_ago(30)
        response = caller.get(path(match), {"max_age": 5})
        problem = response.json()
        assert (response.status_code, problem["type"]) == (503, "/problems/too-stale")
        assert 1 <= int(response["Retry-After"]) <= 3
        assert problem["data_age_seconds"] >= 30
        assert caller.get(path(match), {"max_age": 60}).status_code == 200

    @pytest.mark.parametrize(
        ("age", "max_age", "said"),
        [(2.34, 2, "is 2.4 s"), (0.01, 0, "is 0.1 s"), (9.9, 2, "is 9 s"), (None, 5, "was never")],
    )
    def test_the_refusal_shows_an_age_above_max_age(self, age: float | None, max_age: int, said: str) -> None:
        old = Freshness(state=DataState.FRESH, scraped_at=None, age_seconds=age, next_update_in=1.0)
        with pytest.raises(ApiProblem) as refusal:
            refuse_stale(old, max_age)
        assert f"The data {said}" in str(refusal.value.detail)

    @pytest.mark.parametrize(("next_in", "wait"), [(None, 10), (0.0, 1), (0.4, 1), (3.5, 4), (600.0, 600)])
    def test_retry_after_is_the_next_update(self, next_in: float | None, wait: float) -> None:
        old = Freshness(state=DataState.STALE, scraped_at=None, age_seconds=900.0, next_update_in=next_in)
        with pytest.raises(ApiProblem) as refusal:
            refuse_stale(old, 5)
        assert refusal.value.extensions["retry_after"] == wait

    def test_never_refuses_a_finished_match(self, caller: Caller) -> None:
        assert caller.get(path(read_ago(5000, status="completed")), {"max_age": 5}).status_code == 200

    def test_refuses_an_unread_match(self, caller: Caller) -> None:
        assert caller.get(path(make_unread_match()), {"max_age": 5}).status_code == 503

    @pytest.mark.parametrize("value", ["-1", "nan", "inf", "soon", "1e3", "9" * 2000, "86401", "\x00"])
    def test_a_bad_value_is_a_400_that_names_it(self, caller: Caller, value: str) -> None:
        response = caller.get(path(read_ago(1)), {"max_age": value})
        assert response.status_code == 400
        assert response.json()["parameter"] == "max_age"


@pytest.mark.requirement("BX-3")
class TestEvents:
    def test_are_a_feed_of_additions_corrections_and_retractions(self, caller: Caller) -> None:
        match = read_ago(1)
        added = make_event(match, event_id="2-12.3", is_current=False, description="Smith out")
        updated = make_event(
            match, event_id="2-12.3", revision=2, action=EventAction.UPDATE, is_current=False, description="Smyth out"
        )
        retracted = make_event(match, event_id="2-12.3", revision=3, action=EventAction.RETRACT)
        body = caller.get(path(match, "/events")).json()
        assert [event["id"] for event in body["events"]] == [added.pk, updated.pk, retracted.pk]
        assert [event["action"] for event in body["events"]] == ["add", "update", "retract"]
        assert (body["next_since"], body["has_more"]) == (retracted.pk, False)
        assert body["events"][1]["source"] == "crex"

    def test_continue_from_the_position_of_the_caller(self, caller: Caller) -> None:
        match = read_ago(1)
        rows = [make_event(match) for _ in range(5)]
        make_event(read_other := make_match())
        first = caller.get(path(match, "/events"), {"limit": 3}).json()
        rest = caller.get(path(match, "/events"), {"since": first["next_since"]}).json()
        assert first["has_more"]
        assert [event["id"] for event in first["events"] + rest["events"]] == [row.pk for row in rows]
        end = caller.get(path(match, "/events"), {"since": rest["next_since"]})
        assert end.json()["events"] == []
        assert (
            caller.get(path(match, "/events"), {"since": rest["next_since"]}, If_None_Match=end["ETag"]).status_code
            == 304
        )
        assert read_other.events.count() == 1

    def test_a_new_row_ends_the_304(self, caller: Caller) -> None:
        match = read_ago(1)
        etag = caller.get(path(match, "/events"))["ETag"]
        make_event(match)
        Match.objects.filter(pk=match.pk).update(sequence=F("sequence") + 1)
        assert caller.get(path(match, "/events"), If_None_Match=etag).status_code == 200

    @pytest.mark.parametrize("query", [{"since": -1}, {"since": 2**63}, {"since": "x"}, {"limit": 0}, {"limit": 101}])
    def test_bad_parameters_are_named(self, caller: Caller, query: dict[str, Any]) -> None:
        response = caller.get(path(read_ago(1), "/events"), query)
        assert response.status_code == 400
        assert response.json()["parameter"] == next(iter(query))


class TestCost:
    def test_a_match_takes_two_queries(self, caller: Caller, django_assert_num_queries) -> None:
        match = read_ago(1)
        caller.get(path(match))
        with django_assert_num_queries(3):  # the third writes the access log, which a thread does outside of tests
            caller.get(path(match))

    def test_a_payload_written_by_an_older_release_is_still_served(self, caller: Caller) -> None:
        state = cricket_state().model_dump(mode="json")
        match = make_match(payload={name: state[name] for name in ("teams", "score")})
        assert caller.get(path(match)).status_code == 200
