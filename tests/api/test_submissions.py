"""Submissions over HTTP: accepted, refused, and the messages of refusals."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from scraping.api.submissions import SubmissionAnswer
from scraping.jobs.submission_schema import MOST_MATCHES
from scraping.models import Match, MatchRef, Snapshot, Submission
from tests.api_fixtures import Caller
from tests.factories import cricket_state, make_match, make_ref
from tests.scraping.submission_steps import ball, earlier, pushed_source, sent, work

pytestmark = [pytest.mark.django_db, pytest.mark.both]
ADDRESS = "/cricket-data"


@pytest.fixture(autouse=True)
def source() -> Any:
    return pushed_source()


@pytest.fixture
def sender(db: None) -> Caller:
    return Caller(name="partner", scopes=("read", "ingest"))


@pytest.fixture
def other(db: None) -> Caller:
    return Caller(name="another sender", scopes=("read", "ingest"))


class TestAccept:
    @pytest.mark.requirement("ZT-1")
    def test_responds_202_after_everything_is_stored(self, sender: Caller) -> None:
        response = sender.post(ADDRESS, sent(events=[ball(1)]))
        row = Submission.objects.select_related("ref__match").get()
        body = response.json()
        assert response.status_code == 202
        assert response["Location"] == f"http://testserver/cricket-data/submissions/{row.submission_id}"
        assert (response["Cache-Control"], body["state"], body["match_id"]) == ("no-store", "accepted", "ind-aus-1")
        assert (body["match"], body["key"]) == (row.ref.match_id, row.ref.key)
        assert (row.sender_name, row.body["events"][0]["id"]) == ("partner", "1-1")
        assert (row.ref.match.title, row.ref.match.team_a) == ("India vs Australia", "India")
        SubmissionAnswer.model_validate(body)

    def test_the_match_can_be_read_after_its_task(self, sender: Caller) -> None:
        read_at = earlier(7)
        address = sender.post(ADDRESS, sent(91, at=read_at, events=[ball(1)]))["Location"]
        work()
        submission = sender.get(address).json()
        assert (submission["state"], submission["sequence"]) == ("done", 1)
        assert (submission["is_changed"], submission["is_taken"]) == (True, True)
        assert submission["events"] == {"added": 1, "updated": 0, "retracted": 0}
        ended, snapshot = Submission.objects.get().finished_at, Snapshot.objects.get()
        assert ended is not None
        assert snapshot.created_at > ended  # the time of the write, not that before the transaction
        match = sender.get(f"/api/v1/matches/{submission['key']}")
        assert match.json()["score"]["team_a"] == {
            "runs": 91, "wickets": 2, "overs": "11.5", "goals": None, "penalties": None
        }  # fmt: skip
        assert match.json()["_metadata"]["source"] == "manual"
        assert 7 <= int(match["X-Data-Age-Seconds"]) <= 12
        assert "X-Next-Update-In" not in match
        events = sender.get(f"/api/v1/matches/{submission['match']}/events").json()["events"]
        assert [(one["event_id"], one["action"]) for one in events] == [("1-1", "add")]

    def test_a_match_of_another_source_is_paired(self, sender: Caller) -> None:
        now = timezone.now()
        known = make_ref(make_match(state=cricket_state(start_time=now), start_time=now, now=now), now=now).match
        assert sender.post(ADDRESS, sent(start_time=now.isoformat())).json()["match"] == known.pk
        assert Match.objects.count() == 1

    def test_two_senders_may_use_the_same_id_for_different_matches(self, sender: Caller, other: Caller) -> None:
        teams = {"team_a": {"name": "Kenya"}, "team_b": {"name": "Nepal"}}
        one, two = sender.post(ADDRESS, sent()).json(), other.post(ADDRESS, sent(teams=teams)).json()
        assert one["match_id"] == two["match_id"]
        assert one["match"] != two["match"]
        assert one["key"] != two["key"]

    def test_needs_the_scope_ingest(self, caller: Caller, anonymous: Client) -> None:
        assert caller.post(ADDRESS, sent()).status_code == 403
        assert anonymous.post(ADDRESS, sent(), content_type="application/json").status_code == 401
        assert not Submission.objects.exists()

    def test_is_refused_while_the_source_is_disabled(self, sender: Caller, source: Any) -> None:
        source.is_enabled = False
        source.save()
        response = sender.post(ADDRESS, sent())
        assert (response.status_code, response["Retry-After"]) == (503, "300")
        assert "switched off" in response.json()["detail"]
        assert not Submission.objects.exists()

    def test_a_database_that_goes_away_is_a_503_and_stores_nothing(
        self, sender: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*_: Any, **__: Any) -> None:
            raise OperationalError("server closed the connection unexpectedly")

        monkeypatch.setattr(Submission.objects, "create", away)
        response = sender.post(ADDRESS, sent())
        assert response.status_code == 503
        assert int(response["Retry-After"]) >= 1
        assert not MatchRef.objects.exists()
        assert not Match.objects.exists()


OVERS = "Send overs and balls such as 14.4. Extras do not count, so an over has at most 6 balls."


def unseen(char: str) -> str:
    return f"It holds {char}, a character that is not seen. Leave it out."


BAD: list[tuple[Any, str]] = [
    ({}, "match_id"),
    ([], "body"),
    (sent(match_id="a b"), "match_id"),
    (sent(match_id="x" * 65), "match_id"),
    (sent(status="over"), "status"),
    (sent(teams={"team_a": {"name": "India"}}), "teams.team_b"),
    (sent(teams={"team_a": {"name": " "}, "team_b": {"name": "B"}}), "teams.team_a.name"),
    (sent(teams={"team_a": {"name": "India"}, "team_b": {"name": "INDIA "}}), "teams"),
    (sent(current_innings=2), "current_innings"),
    (sent(events=[ball(1), ball(2, id="1-1")]), "events"),
    (sent(runs=-1), "innings.0.runs"),
    (sent("91"), "innings.0.runs"),  # type: ignore[arg-type]
    (sent(overs="11"), "innings.0.overs"),
    (sent(overs="11.12"), "innings"),
    (sent(innings=[{"number": 2, "team": "team_a", "runs": 1, "wickets": 0, "overs": "0.1"}]), "innings"),
    (sent(captured_at="yesterday"), "captured_at"),
    (sent(captured_at="2026-01-10T12:00:00"), "captured_at"),
    (sent(at=timezone.now() + timedelta(days=300)), "captured_at"),
    (sent(at=timezone.now() - timedelta(days=300)), "captured_at"),
    (sent(start_time="0001-01-01T00:00:00+14:00"), "start_time"),
    (sent(last_event={"type": "x", "description": "", "timestamp": "0001-01-01T00:00:00+14:00"}), "last_event"),
    (sent(events=[ball(1, happened_at="9999-12-31T23:59:59-14:00")]), "events.0.happened_at"),
    (sent(colour="blue"), "colour"),
    (sent(metadata={"a": [1]}), "metadata.a"),
    (sent(venue="Mum\x00bai"), "venue"),
    (sent(metadata={"a\x00": 1}), "metadata"),
    (sent(events=[{"id": "1"}]), "events.0.kind"),
    (sent(events=[ball(1, over="one")]), "events.0.over"),
    ({"matches": []}, "matches"),
    ({"matches": [sent(), sent(status="over")]}, "matches.1.status"),
    ({"matches": [sent(), sent(at=timezone.now() + timedelta(days=300))]}, "matches.1.captured_at"),
    ({"matches": [sent()] * (MOST_MATCHES + 1)}, "matches"),
]


class TestRefusal:
    @pytest.mark.parametrize(("body", "path"), BAD, ids=[path for _, path in BAD])
    def test_names_the_path_of_the_invalid_field_and_stores_nothing(self, sender: Caller, body: Any, path: str) -> None:
        response = sender.client.post(ADDRESS, body, content_type="application/json", headers=sender._headers({}))
        assert response.status_code == 400, response.content
        assert any(name == path or name.startswith(f"{path}.") for name in response.json()["invalid"]), response.json()
        assert not Submission.objects.exists()
        assert not MatchRef.objects.exists()

    @pytest.mark.parametrize(
        ("body", "path", "message"),
        [
            ({"matches": [sent()] * 51}, "matches", "At most 50 are accepted at once; there are 51."),
            ({"matches": []}, "matches", "At least 1 is needed."),
            ({**sent(), "colour": "red"}, "colour", "There is no such field here."),
            (sent(overs="11.9"), "innings.0.overs", OVERS),
            (sent(overs="11.7"), "innings.0.overs", OVERS),
            (sent(events=[ball(1, over="0.7")]), "events.0.over", OVERS),
            (
                sent(score={"team_a": {"overs": "11.9"}}),
                "score",
                "It must have overs such as 14.4, with at most 6 balls, and not '11.9'.",
            ),
            (sent(venue="Mum\u200bbai"), "venue", unseen("U+200B (ZERO WIDTH SPACE)")),
            (sent(title="\u202eaidnI"), "title", unseen("U+202E (RIGHT-TO-LEFT OVERRIDE)")),
            (sent(series="a\nb"), "series", unseen("U+000A (a control character)")),
            (sent(metadata={"a\x1b": 1}), "metadata", unseen("U+001B (a control character)")),
            (sent(result="\x07"), "result", unseen("U+0007 (a control character)")),
            (sent(metadata={"a": "x" * 201}), "metadata.a", "It must have at most 200 characters, and has 201."),
            (sent(metadata={"a": 2**60}), "metadata.a", f"It must be between {-(2**53)} and {2**53}."),
            (sent(metadata={"a": {"b": 1}}), "metadata.a", "It must be text, a number or null."),
            (
                sent(metadata={str(number): 1 for number in range(31)}),
                "metadata",
                "At most 30 are accepted at once.",
            ),
            (
                sent(metadata={str(number): "x" * 200 for number in range(30)}),
                "metadata",
                "It must have at most 4000 characters in all, and has 6231.",
            ),
            (
                sent(teams={"team_a": {"name": "..."}, "team_b": {"name": "B"}}),
                "teams",
                "It must have names with letters or figures.",
            ),
        ],
    )
    def test_names_the_invalid_value_as_the_api_does(self, sender: Caller, body: Any, path: str, message: str) -> None:
        assert sender.post(ADDRESS, body).json()["invalid"] == {path: [message]}

    @pytest.mark.parametrize(
        "char", ["\u200b", "\u200d", "\ufeff", "\u2060", "\x00", "\x85", "\u2028", "\ue000", "\u3164", "\ufe0f"]
    )
    def test_a_name_with_a_character_that_is_not_seen_is_refused(self, sender: Caller, char: str) -> None:
        """Otherwise two teams could have names that look the same."""
        teams = {"team_a": {"name": f"Ind{char}ia"}, "team_b": {"name": "Australia"}}
        assert sender.post(ADDRESS, sent(teams=teams)).json()["invalid"].keys() == {"teams.team_a.name"}

    def test_free_text_may_have_lines_joined_emoji_and_other_scripts(self, sender: Caller) -> None:
        said = "What a catch! \u2764\ufe0f\n\U0001f468\u200d\U0001f469 \u0915\u094d\u200d\u0937"
        assert sender.post(ADDRESS, sent(events=[ball(1, description=said)], result=said)).status_code == 202
        names = {"team_a": {"name": "São Paulo\u00a0FC"}, "team_b": {"name": "भारत"}}
        assert sender.post(ADDRESS, sent(teams=names, match_id="other")).status_code == 202

    def test_a_clock_that_is_slightly_ahead_is_accepted(self, sender: Caller) -> None:
        assert sender.post(ADDRESS, sent(at=timezone.now() + timedelta(seconds=30))).status_code == 202
        work()
        ref = MatchRef.objects.get()
        assert ref.captured_at is not None
        assert ref.captured_at <= timezone.now()

    def test_a_body_that_is_too_large_is_a_413(self, sender: Caller) -> None:
        body = sent(events=[ball(number, description="x" * 400) for number in range(1, 700)])
        assert sender.post(ADDRESS, body).status_code == 413

    def test_refuses_get(self, sender: Caller) -> None:
        response = sender.get(ADDRESS)
        assert (response.status_code, response["Allow"]) == (405, "POST, OPTIONS")


@pytest.mark.requirement("BX-13")
class TestIdempotency:
    def test_the_same_body_again_is_the_same_submission(self, sender: Caller) -> None:
        body = sent()
        first, again = (sender.post(ADDRESS, body) for _ in range(2))
        assert (first.status_code, again.status_code) == (202, 200)
        assert (again.json(), again["Location"]) == (first.json(), first["Location"])
        assert Submission.objects.count() == 1

    def test_the_same_key_returns_the_current_state(self, sender: Caller) -> None:
        body = sent()
        sender.post(ADDRESS, body, Idempotency_Key="k-1")
        work()
        again = sender.post(ADDRESS, dict(reversed(body.items())), Idempotency_Key="k-1")
        assert (again.status_code, again.json()["state"]) == (200, "done")

    def test_the_same_key_for_another_body_is_a_conflict(self, sender: Caller) -> None:
        first = sender.post(ADDRESS, sent(91), Idempotency_Key="k-1").json()
        for body in (sent(92), {"matches": [sent(92), sent(93)]}):
            response = sender.post(ADDRESS, body, Idempotency_Key="k-1")
            assert (response.status_code, response.json()["type"]) == (409, "/problems/conflict")
            assert response.json()["submission_id"] == first["submission_id"]
        assert Submission.objects.count() == 1

    def test_keys_of_two_senders_are_independent(self, sender: Caller, other: Caller) -> None:
        for who in (sender, other):
            assert who.post(ADDRESS, sent(), Idempotency_Key="k-1").status_code == 202

    def test_refuses_a_key_that_is_too_long(self, sender: Caller) -> None:
        response = sender.post(ADDRESS, sent(), Idempotency_Key="x" * 151)
        assert (response.status_code, response.json()["parameter"]) == (400, "Idempotency-Key")

    def test_a_batch_is_one_submission_and_recognised_again(self, sender: Caller) -> None:
        batch = {
            "matches": [sent(), sent(match_id="nep-ken", teams={"team_a": {"name": "N"}, "team_b": {"name": "K"}})]
        }
        first, again = (sender.post(ADDRESS, batch, Idempotency_Key="k-1") for _ in range(2))
        assert (first.status_code, again.status_code) == (202, 200)
        assert [one["match_id"] for one in first.json()["submissions"]] == ["ind-aus-1", "nep-ken"]
        assert again.json() == first.json()
        assert Submission.objects.count() == 2
        SubmissionAnswer.model_validate(first.json())

    def test_a_batch_is_stored_completely_or_not_at_all(self, sender: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        create, calls = Submission.objects.create, []

        def second_fails(**fields: Any) -> Submission:
            calls.append(fields)
            if len(calls) == 2:
                raise OperationalError("server closed the connection unexpectedly")
            return create(**fields)

        monkeypatch.setattr(Submission.objects, "create", second_fails)
        assert sender.post(ADDRESS, {"matches": [sent(), sent(match_id="b")]}).status_code == 503
        assert not Submission.objects.exists()
        assert not MatchRef.objects.exists()


@pytest.mark.scaled
@pytest.mark.django_db(transaction=True)
@pytest.mark.requirement("BX-13")
class TestConcurrentRequests:
    AT_ONCE = 8

    def together(self, posts: list[Any], sender: Caller) -> list[Any]:
        """Sends all requests at the same moment, each from a thread with its own connection."""
        barrier = threading.Barrier(len(posts))

        def send(body: Any) -> Any:
            barrier.wait()
            try:
                return sender.post(ADDRESS, body, Idempotency_Key="k-1")
            finally:
                connection.close()

        with ThreadPoolExecutor(len(posts)) as pool:
            return list(pool.map(send, posts))

    @pytest.mark.parametrize("is_batch", [False, True])
    def test_equal_ones_get_one_submission_and_one_response(self, sender: Caller, is_batch: bool) -> None:
        body: Any = {"matches": [sent(), sent(match_id="b")]} if is_batch else sent()
        answers = self.together([body] * self.AT_ONCE, sender)
        assert sorted(answer.status_code for answer in answers) == [200] * (self.AT_ONCE - 1) + [202]
        assert len({answer.content for answer in answers}) == 1
        assert Submission.objects.count() == 1 + is_batch
        assert MatchRef.objects.count() == Match.objects.count() == 1 + is_batch

    def test_two_bodies_with_one_key_store_one_of_them(self, sender: Caller) -> None:
        two = [sent(90, match_id="m-1"), sent(91, match_id="m-2")]
        answers = self.together(two * (self.AT_ONCE // 2), sender)
        codes = [answer.status_code for answer in answers]
        assert (codes.count(202), codes.count(409)) == (1, self.AT_ONCE // 2)
        assert Submission.objects.count() == 1
        assert Match.objects.count() == MatchRef.objects.count() == 1, "of the other one nothing is left"


class TestLookup:
    def test_finds_only_the_consumers_own(self, sender: Caller, other: Caller) -> None:
        address = sender.post(ADDRESS, sent())["Location"]
        assert sender.get(address).status_code == 200
        assert other.get(address).status_code == 404

    @pytest.mark.parametrize("name", ["nothing", "6f1c2a34-5b0e-4a55-9f0b-6a8f6a1d2c3e", "0" * 40, "%00"])
    def test_of_an_unknown_submission_is_a_404(self, sender: Caller, name: str) -> None:
        assert sender.get(f"/cricket-data/submissions/{name}").status_code == 404

    def test_shows_the_reason_of_a_refusal(self, sender: Caller) -> None:
        sender.post(ADDRESS, sent(at=earlier(9)))
        teams = {"team_a": {"name": "Kenya"}, "team_b": {"name": "Nepal"}}
        address = sender.post(ADDRESS, sent(teams=teams))["Location"]
        work()
        submission = sender.get(address).json()
        assert (submission["state"], submission["sequence"]) == ("refused", None)
        assert "India and Australia" in submission["reason"]

    def test_needs_the_scope_ingest(self, sender: Caller, caller: Caller) -> None:
        assert caller.get(sender.post(ADDRESS, sent())["Location"]).status_code == 403
