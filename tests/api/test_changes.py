"""GET /api/v1/delta: the changes of many matches in one request."""

from __future__ import annotations

import base64
import zlib
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from scraping.api import known_sequences
from scraping.documents.filters import MatchFilter
from scraping.matches import pairing
from scraping.models import Match, MatchRef, Snapshot
from scraping.payloads import MatchState, Phase, Status
from tests.api_fixtures import Caller
from tests.factories import make_ref, make_unread_match
from tests.scraping.builders import balls, chasing, payload_of, read
from tests.unreachable_database import known_to_be_away  # noqa: F401 - a fixture
from victoryline.lib.http.problems import ApiProblem

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/delta"
FIELDS = tuple(MatchState.model_fields)


class Consumer:
    """Follows matches as docs/api.md advises."""

    def __init__(self, caller: Caller, **filters: Any) -> None:
        self.caller, self.filters = caller, filters
        self.since: str | None = None
        self.documents: dict[int, dict[str, Any]] = {}
        self.left: list[int] = []

    def get(self, **headers: str) -> Any:
        since = {} if self.since is None else {"since": self.since}
        return self.caller.get(ADDRESS, {**self.filters, **since}, **headers)

    def follow(self) -> list[dict[str, Any]]:
        """Requests until there is no more; returns the deltas."""
        deltas: list[dict[str, Any]] = []
        has_more = True
        while has_more:
            response = self.get()
            assert response.status_code == 200, response.json()
            answer = response.json()
            for delta in answer["matches"]:
                assert delta["_diff_type"] == "initial" or delta["from_sequence"] == self.sequences()[delta["id"]]
                known = {} if delta["_diff_type"] == "initial" else self.documents[delta["id"]]
                kept = {name: value for name, value in known.items() if name not in delta["removed"]}
                self.documents[delta["id"]] = kept | delta["changed"] | {"sequence": delta["to_sequence"]}
            deltas += answer["matches"]
            self.left += answer["left"]
            self.since, has_more = answer["next_since"], answer["has_more"]
        return deltas

    def sequences(self) -> dict[int, int]:
        return {match_id: document["sequence"] for match_id, document in self.documents.items()}


def update(ref: MatchRef, runs: int, *, now: Any = None, **fields: Any) -> None:
    at = now or timezone.now()
    read(ref, payload_of(ref, chasing(runs, **fields), at=at, events=balls(*range(1, 2 + runs % 50))))


@pytest.fixture
def refs(db: None) -> list[MatchRef]:
    made = [make_ref(make_unread_match(), captured_at=None) for _ in range(5)]
    for number, ref in enumerate(made):
        update(ref, 60 + number)
    return made


def served(caller: Caller, match_id: int) -> dict[str, Any]:
    document = caller.get(f"/api/v1/matches/{match_id}").json()
    return {name: document[name] for name in (*FIELDS, "sequence")}


@pytest.mark.both
@pytest.mark.requirement("SO-4")
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_leads_to_the_present_state_of_every_match(caller: Caller, refs: list[MatchRef], limit: int) -> None:
    consumer = Consumer(caller, limit=limit)
    assert {delta["_diff_type"] for delta in consumer.follow()} == {"initial"}
    for number in range(1, 4):
        for ref in refs[number:]:
            update(ref, 70 + 10 * number)
        assert sorted(delta["id"] for delta in consumer.follow()) == [ref.match_id for ref in refs[number:]]
        for ref in refs:
            assert consumer.documents[ref.match_id] == served(caller, ref.match_id)
    assert consumer.left == []


def test_has_only_what_differs_with_the_events_since(caller: Caller, refs: list[MatchRef]) -> None:
    consumer = Consumer(caller)
    first = consumer.follow()
    assert [(delta["events"], delta["has_more"], delta["next_since"]) for delta in first] == [([], True, 0)] * 5
    update(refs[2], 63)
    (delta,) = consumer.follow()
    assert (delta["from_sequence"], delta["to_sequence"], delta["_diff_type"]) == (1, 2, "update")
    assert delta["changed"].keys() <= {"score", "innings"}
    assert [row["event_id"] for row in delta["events"]] == ["2-14"]
    assert delta["_metadata"]["data_age_seconds"] < 600


def test_without_a_change_is_a_304_with_the_same_cursor(caller: Caller, refs: list[MatchRef]) -> None:
    consumer = Consumer(caller)
    consumer.follow()
    response = consumer.get()
    assert (response.json()["matches"], response.json()["next_since"]) == ([], consumer.since)
    assert consumer.get(If_None_Match=response["ETag"]).status_code == 304
    update(refs[0], 99)
    assert consumer.get(If_None_Match=response["ETag"]).status_code == 200


def test_the_match_that_waits_longest_comes_first(caller: Caller, refs: list[MatchRef]) -> None:
    """With more changes than fit, none of them is put off for ever."""
    consumer = Consumer(caller, limit=2)
    consumer.follow()
    began = timezone.now()
    for seconds, number in enumerate((3, 0, 4, 1)):
        update(refs[number], 90, now=began + timedelta(seconds=seconds))
    assert [delta["id"] for delta in consumer.follow()] == [refs[number].match_id for number in (3, 0, 4, 1)]


def test_a_match_that_leaves_the_filters_is_delivered_once_more(caller: Caller, refs: list[MatchRef]) -> None:
    consumer = Consumer(caller, status="live")
    consumer.follow()
    update(refs[1], 188, wickets=6, status=Status.COMPLETED, phase=Phase.FINISHED, result="Australia won")
    Match.objects.filter(pk=refs[2].match_id).delete()
    (delta,) = consumer.follow()
    assert (delta["id"], delta["changed"]["status"]) == (refs[1].match_id, "completed")
    assert consumer.left == [refs[1].match_id, refs[2].match_id]
    assert consumer.follow() == []
    assert consumer.left == [refs[1].match_id, refs[2].match_id]  # named once


def test_a_match_that_became_part_of_another_one_has_left(caller: Caller, refs: list[MatchRef]) -> None:
    other = make_ref(make_unread_match(), source="espn", captured_at=None)
    update(other, 61)
    consumer = Consumer(caller)
    consumer.follow()
    pairing.merge(refs[0].match_id, other.match_id, actor="ann", now=timezone.now())
    assert {delta["id"] for delta in consumer.follow()} <= {refs[0].match_id}
    assert consumer.left == [other.match_id]


def test_a_state_that_is_kept_no_more_leads_to_the_whole_state(caller: Caller, refs: list[MatchRef]) -> None:
    consumer = Consumer(caller)
    consumer.follow()
    update(refs[0], 95)
    Snapshot.objects.filter(match=refs[0].match_id, sequence=1).delete()
    (delta,) = consumer.follow()
    assert (delta["_diff_type"], delta["from_sequence"], delta["has_more"]) == ("initial", 0, True)
    assert consumer.documents[refs[0].match_id] == served(caller, refs[0].match_id)


def test_a_server_that_is_behind_says_so_and_keeps_the_cursor(caller: Caller, refs: list[MatchRef]) -> None:
    consumer = Consumer(caller)
    consumer.follow()
    Match.objects.filter(pk=refs[0].match_id).update(sequence=0)
    answer = consumer.get().json()
    assert (answer["matches"], answer["ahead"], answer["next_since"]) == ([], [refs[0].match_id], consumer.since)


def test_headers_speak_for_all_followed_matches(caller: Caller, refs: list[MatchRef]) -> None:
    old = timezone.now() - timedelta(seconds=120)
    Match.objects.filter(pk=refs[0].match_id).update(last_scraper_update=old)
    consumer = Consumer(caller)
    consumer.follow()
    assert int(consumer.get()["X-Data-Age-Seconds"]) >= 120
    refused = caller.get(ADDRESS, {"max_age": 60, "since": consumer.since or ""})
    assert (refused.status_code, refused.json()["code"]) == (503, "too-stale")


def test_continues_while_the_database_is_away(caller: Caller, refs: list[MatchRef], request: Any) -> None:
    consumer = Consumer(caller)
    consumer.follow()
    update(refs[0], 95)
    before = consumer.get().json()
    request.getfixturevalue("known_to_be_away")
    response = consumer.get()
    assert (response.status_code, response["X-Data-Source"]) == (200, "cache")
    assert [delta["changed"] for delta in response.json()["matches"]] == [
        delta["changed"] for delta in before["matches"]
    ]


def test_more_matches_than_can_be_followed_are_a_400(
    caller: Caller, refs: list[MatchRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_sequences, "MAX_FOLLOWED", 4)
    problem = caller.get(ADDRESS).json()
    assert (problem["status"], "at most 4 matches" in problem["detail"]) == (400, True)
    assert caller.get(ADDRESS, {"ids": f"{refs[0].match_id}"}).status_code == 200


def packed(document: bytes) -> str:
    return base64.urlsafe_b64encode(zlib.compress(document)).decode()


class TestCursor:
    @given(st.dictionaries(st.integers(1, 2**63 - 1), st.integers(1, 2**31 - 1), max_size=50))
    def test_holds_every_sequence(self, known: dict[int, int]) -> None:
        wanted = MatchFilter(status="live")
        assert known_sequences.read(known_sequences.write(known, wanted), wanted) == known

    def test_is_short_for_a_thousand_matches(self) -> None:
        numbers = Random(7)
        known = {number: numbers.randint(1, 10_000) for number in numbers.sample(range(1, 500_000), 1_000)}
        assert len(known_sequences.write(known, MatchFilter())) < known_sequences.MAX_LENGTH

    @pytest.mark.parametrize(
        "text",
        [
            *("x", "ü", "nonsense", "A" * 7, "____", "AAAAAAAB", "AAAAAAAAAA", "A" * 8001, "\x00"),
            *(packed(b'["", [1], []]'), packed(b'["", [0], [1]]'), packed(b'["", [1], [true]]'), packed(b"[")),
            *(packed(b'["", [9223372036854775807, 1], [1, 1]]'), packed(b" " * 10_000_000)),
        ],
    )
    def test_another_text_is_a_400(self, caller: Caller, text: str) -> None:
        response = caller.get(ADDRESS, {"since": text})
        assert (response.status_code, response.json()["parameter"]) == (400, "since")

    def test_belongs_to_its_filters(self) -> None:
        text = known_sequences.write({1: 1}, MatchFilter(status="live"))
        with pytest.raises(ApiProblem, match="other filters"):
            known_sequences.read(text, MatchFilter())
