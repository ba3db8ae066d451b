"""The client against the real API, through a proxy that can be told to misbehave."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from apiauth import keys
from apiauth.models import ApiKey, Tier
from scraping.models import Match, MatchRef, Submission
from tests.client.chaos import ChaosProxy
from tests.client.conftest import MakeClient
from tests.factories import make_event, make_match, make_ref, make_snapshot
from tests.scraping.sending import pushed_source, sent, work
from victoryline_client import (
    BadRequest,
    Client,
    Conflict,
    Forbidden,
    NotFound,
    Patience,
    RateLimited,
    TooStale,
    Unauthorized,
    Unavailable,
    Unreachable,
)

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=False)


class TestToken:
    def test_is_fetched_once_for_many_calls(self, client: Client, proxy: ChaosProxy, ref: MatchRef) -> None:
        for _ in range(3):
            client.match(ref.match_id)
        assert len(proxy.asked("/token")) == 1

    @pytest.mark.requirement("FR-026")
    def test_one_that_is_refused_is_replaced_once_and_nobody_notices(
        self, client: Client, proxy: ChaosProxy, ref: MatchRef
    ) -> None:
        client.match(ref.match_id)
        client._tokens._token = "ended.long.ago"
        assert client.match(ref.match_id).data["id"] == ref.match_id
        assert len(proxy.asked("/token")) == 2

    def test_is_renewed_before_it_ends(self, make_client: MakeClient, proxy: ChaosProxy, ref: MatchRef) -> None:
        clock = Clock()
        client = make_client(clock=clock)
        client.match(ref.match_id)
        clock.now += 0.89 * 86400
        client.match(ref.match_id)
        assert len(proxy.asked("/token")) == 1
        clock.now += 0.02 * 86400
        client.match(ref.match_id)
        assert len(proxy.asked("/token")) == 2

    def test_a_token_service_that_is_away_stops_nobody_whose_token_is_good(
        self, make_client: MakeClient, proxy: ChaosProxy, ref: MatchRef
    ) -> None:
        clock = Clock()
        client = make_client(clock=clock)
        client.match(ref.match_id)
        proxy.only = lambda path: path.startswith("/token")
        proxy.faults.extend(["503"] * 5)
        clock.now += 0.95 * 86400
        for _ in range(3):
            assert client.match(ref.match_id).data["id"] == ref.match_id
        assert len(proxy.asked("/token")) == 2  # asked for once more, not with every call
        clock.now += 0.1 * 86400
        with pytest.raises(Unavailable):
            client.match(ref.match_id, patience=Patience(attempts=1))

    def test_a_wrong_key_says_so_and_is_not_tried_again(
        self, make_client: MakeClient, proxy: ChaosProxy, ref: MatchRef, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.DEBUG, logger="victoryline_client"), pytest.raises(Unauthorized) as refused:
            make_client(key="vl_000000000000_wrongsecret").match(ref.match_id)
        assert refused.value.status == 401
        assert refused.value.code == "unauthorized"
        assert refused.value.request_id
        assert len(proxy.seen) == 1
        assert "wrongsecret" not in caplog.text + str(refused.value)

    def test_a_key_from_a_file_may_end_with_its_line(self, make_client: MakeClient, key: str, ref: MatchRef) -> None:
        assert make_client(key=f"{key}\n").match(ref.match_id).data["id"] == ref.match_id

    @pytest.mark.parametrize("pasted", ["vl_0123\n456789ab.x", "vl_\u201cquoted\u201d"])
    def test_what_is_no_key_is_told_at_once(self, make_client: MakeClient, pasted: str) -> None:
        with pytest.raises(ValueError, match="no key has"):
            make_client(key=pasted)

    def test_a_revoked_key_is_unauthorized(self, client: Client, ref: MatchRef) -> None:
        client.match(ref.match_id)
        keys.revoke(prefix=ApiKey.objects.get().prefix, now=timezone.now())
        with pytest.raises(Unauthorized):
            client.match(ref.match_id)

    def test_threads_share_one(self, client: Client, proxy: ChaosProxy, ref: MatchRef) -> None:
        with ThreadPoolExecutor(6) as crowd:
            found = list(crowd.map(lambda _: client.match(ref.match_id).data["id"], range(12)))
        assert found == [ref.match_id] * 12
        assert len(proxy.asked("/token")) == 1


@pytest.mark.requirement("BX-1", "BX-2")
class TestFreshness:
    def test_is_in_every_answer_and_grows_by_our_own_clock(self, make_client: MakeClient, ref: MatchRef) -> None:
        clock = Clock()
        Match.objects.update(last_scraper_update=timezone.now() - timedelta(seconds=4))
        answer = make_client(clock=clock).match(ref.match_id)
        assert answer.freshness.state == "fresh"
        assert answer.freshness.age_seconds in (4, 5)
        assert answer.freshness.next_update_in
        assert isinstance(answer.freshness.scraped_at, datetime)
        assert not answer.freshness.is_from_cache
        clock.now += 7
        assert answer.age_now() == answer.freshness.age_seconds + 7
        assert answer.freshness.next_update_now() == 0

    def test_each_match_of_a_list_has_its_own(self, client: Client, ref: MatchRef) -> None:
        now = timezone.now()
        old = make_ref(make_match(now=now - timedelta(minutes=2)), now=now)
        ages = {found.data["id"]: found.freshness.age_seconds for found in client.matches(status="live")}
        assert ages[ref.match_id] < 60
        assert ages[old.match_id] >= 120

    def test_too_old_is_an_error_that_tells_how_old(self, client: Client, waits: list[float], ref: MatchRef) -> None:
        Match.objects.update(last_scraper_update=timezone.now() - timedelta(seconds=40))
        with pytest.raises(TooStale) as refused:
            client.match(ref.match_id, max_age=5)
        assert refused.value.more["data_age_seconds"] >= 40
        assert refused.value.retry_after >= 1
        assert all(wait >= 1 for wait in waits)

    def test_a_warning_is_in_words(self, client: Client, ref: MatchRef) -> None:
        assert client.match(ref.match_id).freshness.warning == ""
        Match.objects.update(last_scraper_update=timezone.now() - timedelta(hours=1))
        assert "too long" in client.match(ref.match_id).freshness.warning


class TestConditionalRequests:
    @pytest.mark.requirement("FR-027")
    def test_what_has_not_changed_is_the_same_object_with_a_new_age(
        self, make_client: MakeClient, proxy: ChaosProxy, ref: MatchRef
    ) -> None:
        client = make_client()
        first = client.match(ref.match_id)
        Match.objects.update(last_scraper_update=timezone.now() - timedelta(seconds=30))
        again = client.match(ref.match_id)
        assert proxy.seen[-1].status == 304
        assert again.data is first.data
        assert again.is_unchanged
        assert again.freshness.state == "aging"
        assert again.age_now() >= 30

    def test_what_has_changed_is_new(self, client: Client, ref: MatchRef) -> None:
        first = client.match(ref.match_id)
        Match.objects.update(sequence=2)
        again = client.match(ref.match_id)
        assert not again.is_unchanged
        assert (first.data["sequence"], again.data["sequence"]) == (1, 2)

    def test_memory_is_bounded(self, make_client: MakeClient, proxy: ChaosProxy, ref: MatchRef) -> None:
        client = make_client(remembered=2)
        for since in range(5):
            client.events(ref.match_id, since)
        assert len(client._memory) == 2

    def test_an_answer_without_being_asked_for_is_not_believed(self, client: Client, ref: MatchRef) -> None:
        client.match(ref.match_id)
        target = f"/api/v1/matches/{ref.match_id}"
        etag = client._memory.get(target).etag
        client._memory.put(target, etag, {"id": "mine"})
        assert client.match(ref.match_id).data == {"id": "mine"}
        client._memory.forget(target)
        assert client.match(ref.match_id).data["id"] == ref.match_id


class TestWaiting:
    def test_a_passing_fault_is_survived(
        self, client: Client, proxy: ChaosProxy, waits: list[float], ref: MatchRef
    ) -> None:
        for number, fault in enumerate(("drop", "lost", "cut", "garbage", "html", "503", "429", "500")):
            proxy.faults.extend([fault, fault])
            assert client.events(ref.match_id, number).data["events"] == [], fault
            # A kept connection that is found closed is no failure yet: it is asked again at once, on a fresh one.
            assert len(waits) == (1 if fault in ("drop", "lost") else 2), fault
            waits.clear()

    def test_never_shorter_than_the_server_says(
        self, client: Client, proxy: ChaosProxy, waits: list[float], ref: MatchRef
    ) -> None:
        proxy.retry_after = "7"
        proxy.faults.extend(["429", "503"])
        client.match(ref.match_id)
        assert len(waits) == 2
        assert all(7 <= wait <= 8 for wait in waits)

    def test_longer_than_we_have_patience_for_is_raised_at_once(
        self, client: Client, proxy: ChaosProxy, waits: list[float], ref: MatchRef
    ) -> None:
        proxy.retry_after = "3600"
        proxy.faults.append("429")
        with pytest.raises(RateLimited) as refused:
            client.match(ref.match_id)
        assert refused.value.retry_after == 3600
        assert waits == []

    def test_attempts_are_counted(self, client: Client, proxy: ChaosProxy, waits: list[float], ref: MatchRef) -> None:
        proxy.faults.extend(["drop"] * 10)
        with pytest.raises(Unreachable):
            client.match(ref.match_id)
        assert len(waits) == 3
        assert len(proxy.asked("/matches")) == 5  # the first of them on the connection that was kept

    def test_silence_ends(self, make_client: MakeClient, proxy: ChaosProxy, ref: MatchRef) -> None:
        client = make_client(timeout=0.3)
        proxy.faults.append("hang")
        with pytest.raises(Unreachable, match="timed out"):
            client.match(ref.match_id, patience=Patience(attempts=1))

    def test_nobody_there(self, client: Client, proxy: ChaosProxy, ref: MatchRef) -> None:
        proxy.go_away()
        with pytest.raises(Unreachable):
            client.match(ref.match_id)
        proxy.come_back()
        assert client.match(ref.match_id).data["id"] == ref.match_id

    def test_a_connection_that_the_server_closed_meanwhile_costs_no_wait(
        self, client: Client, proxy: ChaosProxy, waits: list[float], ref: MatchRef
    ) -> None:
        client.match(ref.match_id)
        proxy.go_away()
        proxy.come_back()
        assert client.match(ref.match_id).data["id"] == ref.match_id
        assert waits == []

    def test_the_real_limit_is_waited_for(self, make_client: MakeClient, waits: list[float], ref: MatchRef) -> None:
        issued = keys.issue(
            consumer_name="small", tier=Tier.CUSTOM, requests_per_minute=2, scopes=("read",), now=timezone.now()
        )
        client = make_client(key=issued.text, patience=Patience(attempts=2, seconds=0))
        client.events(ref.match_id, 0)
        client.events(ref.match_id, 1)
        with pytest.raises(RateLimited) as refused:
            client.events(ref.match_id, 2)
        assert 1 <= refused.value.retry_after <= 60


class TestSafety:
    def test_a_redirect_is_not_followed(self, client: Client, proxy: ChaosProxy, ref: MatchRef) -> None:
        proxy.faults.append("redirect")
        with pytest.raises(Unreachable, match="302"):
            client.match(ref.match_id, patience=Patience(attempts=1))

    def test_the_next_page_is_asked_of_the_same_server(self, client: Client, proxy: ChaosProxy, ref: MatchRef) -> None:
        """The API names itself as its proxy called it; wherever that leads, the token doesn't go there."""
        more = [make_ref(make_match(now=timezone.now())).match_id for _ in range(4)]
        found = [each.data["id"] for each in client.matches(limit=2, status="live")]
        assert found == sorted([ref.match_id, *more], reverse=True)
        assert len(proxy.asked("/api/v1/matches")) == 3
        assert all("status=live" in each.path for each in proxy.asked("/api/v1/matches"))

    def test_nothing_secret_is_shown_or_logged(
        self, client: Client, proxy: ChaosProxy, key: str, ref: MatchRef, caplog: pytest.LogCaptureFixture
    ) -> None:
        proxy.faults.extend(["503", "drop", "garbage"])
        with caplog.at_level(logging.DEBUG, logger="victoryline_client"):
            client.match(ref.match_id)
        for text in (caplog.text, repr(client), repr(client._tokens)):
            assert key not in text
            assert client._tokens._token not in text

    def test_says_who_it_is(self, client: Client, proxy: ChaosProxy, ref: MatchRef) -> None:
        client.match(ref.match_id)
        assert {each.headers["user-agent"] for each in proxy.seen} == {"victoryline-client/0.1.0"}


class TestReads:
    @pytest.mark.requirement("BX-4")
    def test_a_match_as_it_was(self, client: Client, ref: MatchRef) -> None:
        match = ref.match
        first = make_snapshot(match, now=timezone.now() - timedelta(minutes=5))
        match.payload["score"]["team_b"]["runs"] = 96
        match.sequence = 2
        match.save()
        make_snapshot(match, now=timezone.now())
        assert client.match(match.pk).data["score"]["team_b"]["runs"] == 96
        assert client.match(match.pk, sequence=1).data["score"]["team_b"]["runs"] == 95
        then = first.created_at + timedelta(seconds=1)
        assert client.match(match.pk, as_of=then).data["score"]["team_b"]["runs"] == 95
        assert client.delta(match.pk, 1).data["changed"]["score"]["team_b"]["runs"] == 96
        assert [row["sequence"] for row in client.snapshots(match.pk, limit=1)] == [2, 1]
        assert client.snapshot(match.pk, 1).data["payload"]["score"]["team_b"]["runs"] == 95

    def test_by_key_and_whatever_hangs_on_it(self, client: Client, ref: MatchRef) -> None:
        event = make_event(ref.match)
        name = f"crex_{ref.source_event_id}"
        assert client.match(name, include="provenance").data["id"] == ref.match_id
        assert [row["id"] for row in client.events(name).data["events"]] == [event.pk]
        assert client.lineups(name).data["lineups"] == []
        assert client.conflicts(name, state="all").data["conflicts"] == []

    def test_filters_may_be_lists_and_times(self, client: Client, ref: MatchRef) -> None:
        since = timezone.now() - timedelta(hours=1)
        found = client.matches(status=["live", "upcoming"], updated_since=since, team=None)
        assert [each.data["id"] for each in found] == [ref.match_id]
        with pytest.raises(ValueError, match="time zone"):
            client.match(ref.match_id, as_of=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the mistake

    def test_unknown_and_bad(self, client: Client, waits: list[float], ref: MatchRef) -> None:
        with pytest.raises(NotFound, match="no_such"):
            client.match("no_such")
        with pytest.raises(NotFound):
            client.match("../../admin")
        with pytest.raises(BadRequest) as refused:
            list(client.matches(sprot="cricket"))
        assert refused.value.more["parameter"] == "sprot"
        assert waits == []

    @pytest.mark.requirement("FR-013")
    def test_usage_tells_where_one_stands(self, client: Client, ref: MatchRef) -> None:
        client.events(ref.match_id)
        usage = client.usage().data
        assert usage["tier"] == "premium"
        assert usage["limits"]["used"] == 1


class TestSending:
    def test_what_is_sent_counts_once_however_often_it_is_tried(
        self, client: Client, proxy: ChaosProxy, waits: list[float]
    ) -> None:
        pushed_source()
        proxy.faults.extend(["lost", "503"])  # the first one was taken, and nobody knows
        answer = client.submit(sent(91))
        assert len(waits) == 2
        assert answer.data["submission_id"] == str(Submission.objects.get().submission_id)
        assert [each.headers["idempotency-key"] for each in proxy.asked("/cricket-data")].count(
            proxy.seen[-1].headers["idempotency-key"]
        ) == 3
        work()
        told = client.submission(answer.data["submission_id"]).data
        assert told["state"] == "done"
        assert client.match(told["match"]).data["score"]["team_a"]["runs"] == 91

    def test_a_key_of_ones_own_is_kept_over_restarts(self, make_client: MakeClient) -> None:
        pushed_source()
        body = sent(91)
        first, again = (make_client().submit(body, idempotency_key="mine-1").data for _ in range(2))
        assert first["submission_id"] == again["submission_id"]
        with pytest.raises(Conflict):
            make_client().submit(sent(92), idempotency_key="mine-1")

    def test_needs_its_scope(self, make_client: MakeClient, transactional_db: None) -> None:
        issued = keys.issue(consumer_name="reader", tier=Tier.STANDARD, scopes=("read",), now=timezone.now())
        with pytest.raises(Forbidden):
            make_client(key=issued.text).submit({"match_id": "x"})


class Clock:
    """Ours, moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
