"""Earlier states of a match and the changes since: as of a time or a number, delta, snapshots."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.utils import timezone

from scraping.documents.cache import documents
from scraping.documents.queries import SERVED_AFTER
from scraping.models import Match, MatchEvent, MatchRef, Snapshot
from scraping.models.snapshot import KEPT_HOURS
from scraping.payloads import MatchState, Phase, Status, Toss
from scraping.scheduler.retention import often
from tests.api_fixtures import Caller
from tests.factories import cricket_state, make_match, make_ref, make_snapshot, make_unread_match
from tests.scraping.builders import balls, chasing, payload_of, read

pytestmark = pytest.mark.django_db
FIELDS = tuple(MatchState.model_fields)
START = timedelta(minutes=30)  # ago
STEP = timedelta(seconds=40)  # between readings; each is written five seconds after it was made
WRITTEN = timedelta(seconds=5)
SERVED = WRITTEN + SERVED_AFTER


def story() -> list[MatchState]:
    """A chase in nine states: fields are added, changed and removed."""
    toss = Toss(winner="India", decision="bat")
    when = datetime(2026, 1, 10, 10, 0, tzinfo=UTC)
    states = [
        cricket_state(status=Status.UPCOMING, phase=Phase.SCHEDULED, innings=(), current_innings=None),
        chasing(90, start_time=when),
        chasing(91, start_time=when, toss=toss, metadata={"series": "Tour", "round": 3, "umpire": "Dar"}),
        chasing(95, start_time=when, toss=toss, venue="MCG", metadata={"series": "Tour"}),
        chasing(95, wickets=4, start_time=when, toss=toss, venue="MCG", metadata={}),
        chasing(99, wickets=4, start_time=when + timedelta(minutes=5), toss=toss, metadata={"series": "Tour"}),
        chasing(99, wickets=4, phase=Phase.RAIN, start_time=None, toss=toss),
        chasing(120, wickets=6, start_time=None, toss=toss, venue="MCG"),
        chasing(188, wickets=6, status=Status.COMPLETED, phase=Phase.FINISHED, result="Australia won", toss=toss),
    ]
    assert len({state.checksum() for state in states}) == len(states)
    return states


class Past:
    """A match that was read once for each state, and the API's response after each reading."""

    def __init__(self, caller: Caller, states: list[MatchState]) -> None:
        self.caller = caller
        self.ref: MatchRef = make_ref(make_unread_match(), captured_at=None)
        self.began = timezone.now().replace(microsecond=0) - START
        self.documents: dict[int, dict[str, Any]] = {}
        for number, state in enumerate(states, start=1):
            at = self.read_at(number)
            read(self.ref, payload_of(self.ref, state, at=at, events=balls(*range(1, number + 1))), at=at + WRITTEN)
            self.documents[number] = self.get().json()

    def read_at(self, number: int) -> datetime:
        return self.began + number * STEP

    def get(self, rest: str = "", **query: Any) -> HttpResponse:
        return self.caller.get(f"/api/v1/matches/{self.ref.match_id}{rest}", query)

    def prune(self, number: int) -> None:
        """Deletes the states before `number`, as retention does."""
        rule = next(rule for rule in often() if rule.table == "snapshots")
        rule.step(self.read_at(number) + WRITTEN + timedelta(hours=KEPT_HOURS))
        documents.clear()  # this process would serve its cached states


def state_without_start(document: dict[str, Any]) -> dict[str, Any]:
    """Without the start: for a state without one, the present start is shown."""
    return {name: document[name] for name in FIELDS if name != "start_time"}


def state_in(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in FIELDS}


@pytest.fixture
def past(caller: Caller) -> Past:
    return Past(caller, story())


@pytest.fixture
def short(caller: Caller) -> Past:
    return Past(caller, story()[:4])


def applied(delta: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Follows a match as docs/api.md advises consumers to do."""
    kept = {name: value for name, value in document.items() if name not in delta["removed"]}
    return kept | delta["changed"]


@pytest.mark.requirement("SO-4")
class TestDelta:
    @pytest.mark.both
    def test_leads_from_every_state_to_the_present_one_field_for_field(self, caller: Caller) -> None:
        """Checks clients with the previous, the first or no state after each reading, all others at the end."""
        states = story()
        past = Past(caller, [])
        for number, state in enumerate(states, start=1):
            at = past.read_at(number)
            read(past.ref, payload_of(past.ref, state, at=at), at=at + WRITTEN)
            now = past.documents[number] = past.get().json()
            for since in {0, 1, number - 1} if number < len(states) else range(number + 1):
                delta = past.get("/delta", since=since).json()
                before = state_in(past.documents[since]) if since else {}
                assert applied(delta, before) == state_in(now), (since, number)
                assert (delta["from_sequence"], delta["to_sequence"]) == (since, number)

    def test_names_its_kind_and_only_what_differs(self, short: Past) -> None:
        update = short.get("/delta", since=3).json()
        assert (update["_diff_type"], update["_sequence_delta"]) == ("update", 1)
        assert update["changed"].keys() == {"score", "innings", "venue", "metadata"}
        assert update["changed"]["metadata"] == {"series": "Tour"}  # complete: missing entries were removed
        assert update["removed"] == []

    def test_since_nothing_has_every_field(self, short: Past) -> None:
        delta = short.get("/delta").json()
        assert (delta["_diff_type"], delta["_sequence_delta"], delta["from_sequence"]) == ("initial", 4, 0)
        assert delta["changed"] == state_in(short.documents[4])
        assert [row["event_id"] for row in delta["events"]] == [f"2-{number}" for number in range(1, 5)]

    def test_excludes_events_of_the_next_sequence(self, short: Past) -> None:
        """Committed between the reads of the match and of its events: a client that goes on from here gets it then."""
        Match.objects.filter(pk=short.ref.match_id).update(sequence=3)
        now = short.get("/delta", since=1).json()
        assert ([row["event_id"] for row in now["events"]], now["has_more"]) == (["2-2", "2-3"], False)
        Match.objects.filter(pk=short.ref.match_id).update(sequence=4)
        then = short.get("/delta", since=now["to_sequence"]).json()
        assert [row["event_id"] for row in then["events"]] == ["2-4"]

    def test_since_the_current_sequence_is_empty_and_then_a_304(self, short: Past) -> None:
        response = short.get("/delta", since=4)
        delta = response.json()
        assert (delta["_diff_type"], delta["_sequence_delta"]) == ("none", 0)
        assert (delta["changed"], delta["removed"], delta["events"]) == ({}, [], [])
        address = f"/api/v1/matches/{short.ref.match_id}/delta?since=4"
        assert short.caller.get(address, If_None_Match=response["ETag"]).status_code == 304
        at = short.read_at(5)
        read(short.ref, payload_of(short.ref, chasing(150), at=at))
        assert short.caller.get(address, If_None_Match=response["ETag"]).status_code == 200

    @pytest.mark.both
    def test_a_removed_field_is_named(self, caller: Caller) -> None:
        """A state written by an older release may have other fields."""
        state = cricket_state(venue="MCG").model_dump(mode="json")
        kept = {name: state[name] for name in state if name not in ("venue", "toss")}
        match = make_match(sequence=2, payload=kept, start_time=None)
        make_snapshot(match, sequence=1, payload=state)
        make_ref(match)
        delta = caller.get(f"/api/v1/matches/{match.pk}/delta", {"since": 1}).json()
        assert (delta["changed"], sorted(delta["removed"])) == ({}, ["toss", "venue"])

    @pytest.mark.both
    def test_has_the_feed_rows_since_then_and_the_next_position(self, short: Past) -> None:
        first = short.get("/delta", since=1, limit=2).json()
        assert [row["event_id"] for row in first["events"]] == ["2-2", "2-3"]
        assert (first["has_more"], first["next_since"]) == (True, first["events"][-1]["id"])
        rest = short.get("/events", since=first["next_since"]).json()
        assert [row["event_id"] for row in rest["events"]] == ["2-4"]
        whole = short.get("/delta", since=1).json()
        assert (whole["has_more"], whole["next_since"], len(whole["events"])) == (False, None, 3)

    def test_ahead_of_the_match_is_a_409_with_the_current_sequence(self, short: Past) -> None:
        response = short.get("/delta", since=5)
        assert (response.status_code, response.json()["newest_sequence"]) == (409, 4)
        assert response["Retry-After"] == "1"

    @pytest.mark.both
    def test_before_the_oldest_state_is_a_410_with_the_oldest_sequence(self, short: Past) -> None:
        short.prune(3)
        response = short.get("/delta", since=2)
        problem = response.json()
        assert (response.status_code, problem["type"]) == (410, "/problems/delta-overflow")
        assert (problem["oldest_sequence"], problem["newest_sequence"]) == (3, 4)
        assert "Read the whole match" in problem["detail"]
        assert short.get("/delta", since=3).status_code == 200
        assert short.get("/delta").status_code == 200

    def test_of_a_merged_match_starts_from_the_beginning(self, short: Past) -> None:
        gone = make_match(sequence=2, merged_into_id=short.ref.match_id)
        response = short.caller.get(f"/api/v1/matches/{gone.pk}/delta", {"since": 2})
        assert (response.status_code, response.json()["match_id"]) == (410, short.ref.match_id)
        whole = short.caller.get(f"/api/v1/matches/{gone.pk}/delta").json()
        assert (whole["id"], whole["_diff_type"]) == (short.ref.match_id, "initial")

    @pytest.mark.parametrize("place", [{"since": 1}, {"since_sequence": 2}])
    def test_the_feed_of_a_merged_match_starts_from_the_beginning(self, short: Past, place: dict[str, int]) -> None:
        gone = make_match(sequence=2, merged_into_id=short.ref.match_id)
        response = short.caller.get(f"/api/v1/matches/{gone.pk}/events", place)
        assert (response.status_code, response.json()["match_id"]) == (410, short.ref.match_id)
        assert len(short.caller.get(f"/api/v1/matches/{gone.pk}/events").json()["events"]) == 4
        assert short.get("/events", **place).status_code == 200

    @pytest.mark.parametrize("rest", ["?sequence=2", "/snapshots/2"])
    def test_sequences_of_a_merged_match_are_too_old(self, short: Past, rest: str) -> None:
        gone = make_match(sequence=2, merged_into_id=short.ref.match_id)
        response = short.caller.get(f"/api/v1/matches/{gone.pk}{rest}")
        problem = response.json()
        assert (response.status_code, problem["code"], problem["match_id"]) == (410, "too-old", short.ref.match_id)
        assert short.caller.get(f"/api/v1/matches/{short.ref.match_id}{rest}").status_code == 200

    def test_has_the_freshness_of_the_match_and_takes_max_age(self, short: Past) -> None:
        response = short.get("/delta", since=4)
        assert response["X-Data-Freshness"] == short.documents[4]["_metadata"]["scraped_at"]
        assert response.json()["_metadata"]["sequence"] == 4
        assert short.get("/delta", since=4, max_age=5).status_code == 503

    def test_of_an_unread_match_is_empty(self, caller: Caller) -> None:
        delta = caller.get(f"/api/v1/matches/{make_unread_match().pk}/delta").json()
        assert (delta["_diff_type"], delta["changed"], delta["to_sequence"]) == ("none", {}, 0)

    @pytest.mark.parametrize("query", [{"since": -1}, {"since": 2**31}, {"since": "x"}, {"sinse": 1}, {"limit": 101}])
    def test_bad_parameters_are_named(self, caller: Caller, query: dict[str, Any]) -> None:
        response = caller.get(f"/api/v1/matches/{make_match().pk}/delta", query)
        assert (response.status_code, response.json()["parameter"]) == (400, next(iter(query)))

    def test_is_read_once_for_all_callers(self, short: Past, django_assert_num_queries) -> None:
        short.get("/delta", since=2)
        with django_assert_num_queries(3):  # the match with its references; the third writes the access log
            short.get("/delta", since=2)


@pytest.mark.requirement("BX-4")
class TestAsOf:
    @pytest.mark.both
    def test_a_sequence_returns_the_answer_of_that_time(self, past: Past) -> None:
        for number, document in past.documents.items():
            body = past.get(sequence=number).json()
            assert (state_without_start(body), body["sequence"]) == (state_without_start(document), number)
            assert body["_metadata"]["scraped_at"] == document["_metadata"]["scraped_at"]

    @pytest.mark.both
    def test_a_time_returns_the_answer_of_that_time(self, past: Past) -> None:
        """A state counts from when it was served: what a source showed and was not written yet is not included."""
        for number in (1, 4, 8):
            served = past.read_at(number) + SERVED
            for moment in (served, served + STEP - timedelta(milliseconds=1)):
                body = past.get(as_of=moment.isoformat()).json()
                assert (body["sequence"], state_without_start(body)) == (
                    number,
                    state_without_start(past.documents[number]),
                )
            earlier = past.get(as_of=(served - timedelta(milliseconds=1)).isoformat())
            assert earlier.status_code == 410 if number == 1 else earlier.json()["sequence"] == number - 1

    @pytest.mark.both
    def test_the_time_in_a_state_returns_that_state(self, short: Past) -> None:
        Snapshot.objects.filter(sequence=3).update(created_at=short.read_at(3) + timedelta(microseconds=123_987))
        shown = short.get(sequence=3).json()["_metadata"]["served_at"]
        assert short.get(as_of=shown).json()["sequence"] == 3
        before = short.read_at(3) + timedelta(milliseconds=122) + SERVED_AFTER
        assert short.get(as_of=before.isoformat()).json()["sequence"] == 2
        listed = next(row for row in short.get("/snapshots").json()["snapshots"] if row["sequence"] == 3)
        assert listed["served_at"] == short.get("/snapshots/3").json()["served_at"] == shown

    @pytest.mark.both
    def test_a_time_before_a_state_was_written_does_not_return_it(self, caller: Caller) -> None:
        """The reading ended before, but its transaction waited for locks: no consumer could have seen it."""
        ref = make_ref(make_unread_match(), captured_at=None)
        began = timezone.now() - timedelta(minutes=5)
        read(ref, payload_of(ref, chasing(90), at=began), at=began)
        waited = began + timedelta(seconds=60)
        read(ref, payload_of(ref, chasing(91), at=waited), at=waited, clock=lambda: waited + timedelta(seconds=2))
        address = f"/api/v1/matches/{ref.match_id}"
        for seconds, sequence in ((1.0, 1), (2.0, 1), (2.49, 1), (2.51, 2)):
            found = caller.get(address, {"as_of": (waited + timedelta(seconds=seconds)).isoformat()})
            assert found.json()["sequence"] == sequence, seconds

    def test_the_first_moment_of_the_calendar_is_too_old(self, short: Past) -> None:
        assert short.get(as_of="0001-01-01T00:00:00Z").status_code == 410

    @pytest.mark.both
    def test_a_worker_whose_clock_is_behind_does_not_change_the_past(self, short: Past) -> None:
        """Its state was written after the one before it, whatever its clock says."""
        moment = short.read_at(3) + SERVED - timedelta(seconds=1)
        before = short.get(as_of=moment.isoformat()).json()
        Snapshot.objects.filter(sequence=4).update(created_at=short.read_at(3) + WRITTEN - timedelta(seconds=2))
        documents.clear()
        again = short.get(as_of=moment.isoformat()).json()
        assert (before["sequence"], again["sequence"]) == (2, 2)

    def test_names_its_state_and_is_immutable(self, short: Past) -> None:
        moment = short.read_at(3) + WRITTEN + timedelta(seconds=1)
        response = short.get(as_of=moment.isoformat())
        found = response.json()["_metadata"]
        snapshot = Snapshot.objects.get(match=short.ref.match_id, sequence=3)
        assert (found["sequence"], found["scraper_id"]) == (3, str(snapshot.scraper_id))
        assert (found["state"], found["next_update_in_seconds"]) == ("final", None)
        assert datetime.fromisoformat(found["as_of"]) == moment
        assert datetime.fromisoformat(found["captured_at"]) == short.read_at(3)
        assert datetime.fromisoformat(found["created_at"]) == short.read_at(3) + WRITTEN
        assert response["X-Data-State"] == "final"
        assert response["X-Data-Freshness"] == found["captured_at"]
        age = (timezone.now() - short.read_at(3)).total_seconds()
        assert age - 5 < int(response["X-Data-Age-Seconds"]) <= age
        assert "X-Next-Update-In" not in response.headers
        assert "max-age=86400" in response["Cache-Control"]
        assert response.json()["lifecycle"] is None

    def test_max_age_does_not_apply_to_past_states(self, short: Past) -> None:
        assert short.get(sequence=2, max_age=0).status_code == 200

    def test_has_its_own_permanent_etag(self, short: Past) -> None:
        first = short.get(sequence=2)
        assert first["ETag"] != short.get()["ETag"]
        address = f"/api/v1/matches/{short.ref.match_id}?sequence=2"
        read(short.ref, payload_of(short.ref, chasing(170), at=short.read_at(6)))
        assert short.caller.get(address, If_None_Match=first["ETag"]).status_code == 304

    def test_has_another_etag_when_names_or_start_change(self, short: Past) -> None:
        """Names, and a start that the state lacks, are the present ones."""
        address = f"/api/v1/matches/{short.ref.match_id}?sequence=1"
        for change in (
            lambda: make_ref(short.ref.match, source="espn"),
            lambda: Match.objects.update(start_time=timezone.now()),
        ):
            before = short.caller.get(address)
            change()
            after = short.caller.get(address, If_None_Match=before["ETag"])
            assert (after.status_code, after["ETag"] != before["ETag"]) == (200, True)

    def test_the_current_state_is_cached_briefly(self, short: Past) -> None:
        response = short.get(as_of=timezone.now().isoformat())
        assert response.json()["sequence"] == 4
        assert "max-age=86400" not in response["Cache-Control"]

    @pytest.mark.requirement("BX-5")
    def test_includes_the_provenance_of_that_time(self, short: Past) -> None:
        found = short.get(sequence=2, include="provenance").json()["provenance"]["score"]
        assert (found["source"], datetime.fromisoformat(found["timestamp"])) == ("crex", short.read_at(2))

    def test_a_deleted_state_is_a_410_with_the_oldest_kept_one(self, short: Past) -> None:
        short.prune(3)
        for query in ({"sequence": 2}, {"as_of": short.read_at(2).isoformat()}):
            response = short.get(**query)
            problem = response.json()
            assert (response.status_code, problem["type"]) == (410, "/problems/too-old")
            assert (problem["oldest_sequence"], problem["newest_sequence"]) == (3, 4)
            assert datetime.fromisoformat(problem["oldest_at"]) == short.read_at(3) + SERVED
        assert short.get(sequence=3).status_code == 200

    def test_a_future_state_is_a_404_with_the_latest_one(self, short: Past) -> None:
        response = short.get(sequence=5)
        assert (response.status_code, response.json()["newest_sequence"]) == (404, 4)

    @pytest.mark.parametrize(
        ("query", "named"),
        [
            ({"as_of": "2999-01-01T00:00:00Z"}, "as_of"),
            ({"as_of": "noon"}, "as_of"),
            ({"as_of": "2026-01-01T00:00:00Z", "sequence": 1}, "as_of"),
            ({"sequence": 0}, "sequence"),
            ({"sequence": 2**31}, "sequence"),
            ({"sequence": 1, "include": "provisional"}, "sequence"),
        ],
    )
    def test_bad_parameters_are_named(self, caller: Caller, query: dict[str, Any], named: str) -> None:
        response = caller.get(f"/api/v1/matches/{make_match().pk}", query)
        assert (response.status_code, response.json()["parameter"]) == (400, named)

    def test_an_unread_match_has_no_past_state(self, caller: Caller) -> None:
        response = caller.get(f"/api/v1/matches/{make_unread_match().pk}?as_of=2026-01-01T00:00:00Z")
        assert (response.status_code, response.json()["oldest_sequence"]) == (410, None)


@pytest.mark.requirement("SO-3")
@pytest.mark.requirement("SO-3", "BX-4")
class TestSnapshots:
    def test_are_listed_newest_first_with_what_changed(self, short: Past) -> None:
        rows = short.get("/snapshots").json()["snapshots"]
        assert [row["sequence"] for row in rows] == [4, 3, 2, 1]
        assert rows[0]["changed"] == ["innings", "metadata", "score", "venue"]
        assert set(rows[-1]["changed"]) == set(FIELDS)
        for row in rows:
            stored = Snapshot.objects.get(match=short.ref.match_id, sequence=row["sequence"])
            assert (row["checksum"], row["data_source"]) == (stored.checksum, "scraper")
            assert row["scraper_id"] == (str(stored.scraper_id) if stored.scraper_id else None)
            assert datetime.fromisoformat(row["captured_at"]) == short.read_at(row["sequence"])
            assert datetime.fromisoformat(row["created_at"]) == short.read_at(row["sequence"]) + WRITTEN

    @pytest.mark.both
    def test_come_in_pages_that_a_new_one_does_not_shift(self, short: Past) -> None:
        found: list[int] = []
        address: str | None = f"/api/v1/matches/{short.ref.match_id}/snapshots?limit=2"
        while address:
            response = short.caller.get(address)
            body = response.json()
            found += [row["sequence"] for row in body["snapshots"]]
            assert ('rel="next"' in response["Link"]) is (body["next"] is not None)
            assert 'rel="first"' in response["Link"]
            Match.objects.filter(pk=short.ref.match_id).update(sequence=5)
            address = body["next"]
        assert found == list(range(4, 0, -1))

    @pytest.mark.both
    def test_clients_can_verify_the_checksum(self, past: Past) -> None:
        for number in past.documents:
            body = past.get(f"/snapshots/{number}").json()
            text = json.dumps(body["payload"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            assert hashlib.sha256(text.encode()).hexdigest() == body["checksum"]
            assert body["payload"]["score"] == past.documents[number]["score"]
            assert body["provenance"]["score"]["source"] == "crex"

    def test_one_is_immutable_and_cached_for_long(self, short: Past) -> None:
        response = short.get("/snapshots/2")
        assert (response["X-Data-State"], response.json()["_metadata"]["sequence"]) == ("final", 2)
        assert "max-age=86400" in response["Cache-Control"]
        assert short.get("/snapshots/2", max_age=0).status_code == 200

    def test_a_deleted_or_future_one_is_refused(self, short: Past) -> None:
        short.prune(3)
        gone = short.get("/snapshots/2")
        assert (gone.status_code, gone.json()["oldest_sequence"]) == (410, 3)
        assert [short.get(f"/snapshots/{name}").status_code for name in ("5", "0", "9" * 40, "x", "-1")] == [404] * 5
        listed = short.get("/snapshots").json()["snapshots"]
        assert [row["sequence"] for row in listed] == list(range(4, 2, -1))

    def test_the_list_is_unchanged_until_the_next_snapshot(self, short: Past) -> None:
        etag = short.get("/snapshots")["ETag"]
        address = f"/api/v1/matches/{short.ref.match_id}/snapshots"
        assert short.caller.get(address, If_None_Match=etag).status_code == 304
        read(short.ref, payload_of(short.ref, chasing(170), at=short.read_at(6)))
        assert short.caller.get(address, If_None_Match=etag).status_code == 200


@pytest.mark.requirement("BX-3", "BX-4")
class TestEventsSinceASequence:
    def test_are_those_written_later(self, short: Past) -> None:
        for since, limit, expected, has_more in (
            (0, 100, ["2-1", "2-2", "2-3", "2-4"], False),
            (2, 100, ["2-3", "2-4"], False),
            (2, 2, ["2-3", "2-4"], False),
            (2, 1, ["2-3"], True),
            (1, 2, ["2-2", "2-3"], True),
            (3, 1, ["2-4"], False),
            (4, 100, [], False),
        ):
            feed = short.get("/events", since_sequence=since, limit=limit).json()
            assert ([row["event_id"] for row in feed["events"]], feed["has_more"]) == (expected, has_more), since

    def test_continue_by_row_id(self, short: Past) -> None:
        first = short.get("/events", since_sequence=1, limit=2).json()
        rest = short.get("/events", since_sequence=1, since=first["next_since"], limit=2).json()
        assert [row["event_id"] for row in first["events"] + rest["events"]] == ["2-2", "2-3", "2-4"]
        assert not rest["has_more"]

    def test_an_empty_page_keeps_the_position(self, short: Past) -> None:
        last = short.get("/events").json()["next_since"]
        for since in ({"since_sequence": 4}, {"since_sequence": 4, "since": last}):
            none = short.get("/events", **since).json()
            assert (none["events"], none["next_since"]) == ([], last)
        read(short.ref, payload_of(short.ref, chasing(150), at=short.read_at(5), events=balls(5)))
        rows = short.get("/events", since=none["next_since"]).json()["events"]
        assert [row["event_id"] for row in rows] == ["2-5"]

    def test_a_position_beyond_the_feed_is_a_conflict(self, short: Past) -> None:
        """After a restore rows have other numbers: an empty page for ever would hide them all."""
        last = short.get("/events").json()["next_since"]
        assert short.get("/events", since=last).json()["events"] == []
        for ahead in ({"since": last + 1}, {"since_sequence": 5}):
            response = short.get("/events", **ahead)
            assert (response.status_code, response["Retry-After"]) == (409, "1")
            assert response.json()["newest_sequence"] == 4

    def test_the_id_of_a_removed_row_is_a_valid_position(self, short: Past) -> None:
        last = short.get("/events").json()["next_since"]
        MatchEvent.objects.filter(pk=last).update(is_served=False)
        assert short.get("/events", since=last).json()["events"] == []


class TestHead:
    def test_is_answered_like_get_without_a_body(self, short: Past) -> None:
        of_a_match = (
            "",
            "?sequence=1",
            "/events",
            "/delta?since=1",
            "/snapshots",
            "/snapshots/1",
            "/lineups",
            "/conflicts",
        )
        addresses = [f"/api/v1/matches/{short.ref.match_id}{rest}" for rest in of_a_match]
        for address in ("/api/v1/matches", f"/cricket-data/match-info/{short.ref.match_id}", *addresses):
            got = short.caller.get(address)
            head = short.caller.client.head(address, headers={"Authorization": f"Bearer {short.caller.token}"})
            assert (head.status_code, head.content, head["ETag"]) == (200, b"", got["ETag"]), address
            assert head["X-Data-State"] == got["X-Data-State"]
