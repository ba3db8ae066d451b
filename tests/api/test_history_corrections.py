"""From the source to the consumer: retractions, provisional scores, and the clock of each time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from scraping.documents.cache import documents
from scraping.models import MatchRef
from scraping.payloads import LastEvent
from tests.api_fixtures import Caller
from tests.factories import make_ref, make_unread_match
from tests.scraping.builders import ball, balls, chasing, payload_of, read

pytestmark = [pytest.mark.django_db, pytest.mark.both]


@pytest.fixture
def ref() -> MatchRef:
    return make_ref(make_unread_match(), captured_at=None)


@pytest.fixture
def began() -> datetime:
    return timezone.now().replace(microsecond=0) - timedelta(minutes=5)


def get(caller: Caller, ref: MatchRef, rest: str = "", **query: Any) -> Any:
    documents.clear()  # documents are cached for a tenth of a second: expire them
    response = caller.get(f"/api/v1/matches/{ref.match_id}{rest}", query)
    assert response.status_code == 200, response.json()
    return response.json()


@pytest.mark.requirement("BX-3")
class TestRetractedWicket:
    def test_in_the_feed_and_in_the_delta(self, caller: Caller, ref: MatchRef, began: datetime) -> None:
        """The source shows a wicket, adds how it fell, then retracts it."""
        out = ball(4, id="w-4", kind="wicket", runs=0, description="Smith out")
        caught = ball(4, id="w-4", kind="wicket", runs=0, description="Smith c Kohli")
        held: list[dict[str, Any]] = []
        states = [
            (chasing(95, wickets=3), balls(1, 2, 3)),
            (chasing(95, wickets=4), (*balls(1, 2, 3), out)),
            (chasing(95, wickets=4), (*balls(1, 2, 3), caught)),
            (chasing(96, wickets=3, overs="12.4"), (*balls(1, 2, 3), ball(4, id="b-4"))),
        ]
        for number, (state, events) in enumerate(states):
            at = began + timedelta(seconds=10 * number)
            read(ref, payload_of(ref, state, at=at, events=events, events_are_complete=True))
            held.append(get(caller, ref))
        # A lower score is accepted when it was read three times; 96/3 is not lower than 95/4.
        rows = get(caller, ref, "/events", since_sequence=held[0]["sequence"])["events"]
        assert [(row["event_id"], row["action"], row["revision"]) for row in rows] == [
            ("w-4", "add", 1),
            ("w-4", "update", 2),
            ("b-4", "add", 1),
            ("w-4", "retract", 3),
        ]
        assert rows[1]["reason"] == "the source corrected it"
        assert rows[3]["reason"] == "the source no longer lists it"
        delta = get(caller, ref, "/delta", since=held[1]["sequence"])
        assert [row["action"] for row in delta["events"]] == ["update", "add", "retract"]
        assert delta["changed"]["score"]["team_b"]["wickets"] == 3
        assert {row["sequence"] for row in delta["events"]} == {held[2]["sequence"], held[3]["sequence"]}

    def test_a_client_that_applies_all_deltas_has_the_final_events(
        self, caller: Caller, ref: MatchRef, began: datetime
    ) -> None:
        """A client that applies each row of each delta has the events that the source lists in the end."""
        lists = [balls(1), balls(1, 2), (*balls(1, 2), ball(3, runs=4)), balls(1, 3), balls(1, 3, 4)]
        known: dict[str, int] = {}
        since = 0
        for number, events in enumerate(lists):
            at = began + timedelta(seconds=10 * number)
            read(ref, payload_of(ref, chasing(90 + number), at=at, events=events, events_are_complete=True))
            delta = get(caller, ref, "/delta", since=since)
            since = delta["to_sequence"]
            for row in delta["events"]:
                if row["action"] == "retract":
                    del known[row["event_id"]]
                else:
                    known[row["event_id"]] = row["runs"]
        assert known == {"2-1": 1, "2-3": 1, "2-4": 1}


@pytest.mark.requirement("BX-3")
class TestLowerScore:
    def test_is_provisional_until_it_is_confirmed(self, caller: Caller, ref: MatchRef, began: datetime) -> None:
        def step(number: int, runs: int) -> dict[str, Any]:
            read(ref, payload_of(ref, chasing(runs), at=began + timedelta(seconds=10 * number)))
            return get(caller, ref, include="provisional")

        assert step(0, 95)["provisional"] is None
        for reading in (1, 2):
            doubted = step(reading, 91)
            assert doubted["score"]["team_b"]["runs"] == 95  # what is served
            provisional = doubted["provisional"]
            assert (provisional["source"], provisional["readings"]) == ("crex", reading)
            assert provisional["score"]["team_b"]["runs"] == 91
            assert datetime.fromisoformat(provisional["since"]) == began + timedelta(seconds=10)
        assert get(caller, ref, "/conflicts")["provisional"] == provisional
        confirmed = step(3, 91)
        assert (confirmed["provisional"], confirmed["score"]["team_b"]["runs"]) == (None, 91)
        assert get(caller, ref, "/conflicts")["provisional"] is None

    def test_is_shown_only_on_request(self, caller: Caller, ref: MatchRef, began: datetime) -> None:
        read(ref, payload_of(ref, at=began))
        assert "provisional" not in get(caller, ref)
        both = get(caller, ref, include="provenance,provisional")
        assert (both["provisional"], both["provenance"]["score"]["source"]) == (None, "crex")

    def test_changes_the_etag_of_requests_that_include_it(self, caller: Caller, ref: MatchRef, began: datetime) -> None:
        read(ref, payload_of(ref, chasing(95), at=began))
        for address in ("?include=provisional", "/conflicts"):
            whole = f"/api/v1/matches/{ref.match_id}{address}"
            documents.clear()
            etag = caller.get(whole)["ETag"]
            assert caller.get(whole, If_None_Match=etag).status_code == 304
            read(ref, payload_of(ref, chasing(90), at=timezone.now()))
            documents.clear()
            assert caller.get(whole, If_None_Match=etag).status_code == 200


@pytest.mark.requirement("BX-1")
class TestClocks:
    """The source's time, the time of the reading and the time of the response are never mixed."""

    def test_every_time_is_from_its_own_clock(self, caller: Caller, ref: MatchRef, began: datetime) -> None:
        starts, happened, captured, written = (began - timedelta(minutes=lag) for lag in (90, 40, 10, 9))
        state = chasing(
            95,
            start_time=starts,
            last_event=LastEvent(type="four", description="Four", timestamp=happened),
        )
        events = [ball(1, happened_at=happened), ball(2)]
        read(ref, payload_of(ref, state, at=captured, events=events), at=written)
        asked_at = timezone.now()
        response = caller.get(f"/api/v1/matches/{ref.match_id}")
        body = response.json()
        # the source's clock
        assert at(body["start_time"]) == starts
        assert at(body["last_event"]["timestamp"]) == happened
        rows = get(caller, ref, "/events")["events"]
        assert [row["happened_at"] and at(row["happened_at"]) for row in rows] == [happened, None]
        # when it was read
        assert at(body["_metadata"]["scraped_at"]) == at(response["X-Data-Freshness"]) == captured
        snapshot = get(caller, ref, "/snapshots")["snapshots"][0]
        assert at(snapshot["captured_at"]) == captured
        provenance = get(caller, ref, include="provenance")["provenance"]["score"]
        assert at(provenance["timestamp"]) == captured
        # when it was written
        assert at(snapshot["created_at"]) == written
        assert {at(row["created_at"]) for row in rows} == {written}
        # when it is answered
        age = (asked_at - captured).total_seconds()
        assert age - 1 <= body["_metadata"]["data_age_seconds"] <= age + 5
        generated = at(caller.get("/api/v1/matches").json()["_metadata"]["generated_at"])
        assert asked_at - timedelta(milliseconds=1) <= generated <= timezone.now()

    def test_a_future_source_time_does_not_make_data_fresh(
        self, caller: Caller, ref: MatchRef, began: datetime
    ) -> None:
        ahead = timezone.now() + timedelta(hours=3)
        state = chasing(95, last_event=LastEvent(type="four", description="Four", timestamp=ahead))
        read(ref, payload_of(ref, state, at=began, events=[ball(1, happened_at=ahead)]))
        response = caller.get(f"/api/v1/matches/{ref.match_id}")
        assert at(response["X-Data-Freshness"]) == began
        assert int(response["X-Data-Age-Seconds"]) >= 299


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)
