"""The client against the real API, through a proxy that injects faults."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from django.utils import timezone

import victoryline_client
from apiauth import keys
from apiauth.models import ApiKey, Tier
from scraping.models import Match, MatchRef, Submission
from tests.client.conftest import MakeClient
from tests.client.faulty_proxy import FaultyProxy
from tests.factories import make_event, make_match, make_ref, make_snapshot
from tests.scraping.submission_steps import pushed_source, sent, work
from victoryline_client import Client, Freshness, Problem
from victoryline_client.client import CACHE_SIZE, backoff, poll_interval
from victoryline_client.responses import parse_seconds

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=False)


class TestToken:
    def test_is_fetched_once_and_shared_by_threads(self, client: Client, proxy: FaultyProxy, ref: MatchRef) -> None:
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda _: client.match(ref.match_id).data["id"], range(12)))
        assert found == [ref.match_id] * 12
        assert len(proxy.requests_for("/token")) == 1

    @pytest.mark.requirement("FR-026")
    def test_is_replaced_once_when_refused(
        self, client: Client, proxy: FaultyProxy, waits: list[float], ref: MatchRef
    ) -> None:
        client.match(ref.match_id)
        client._token = "expired"
        assert client.match(ref.match_id).data["id"] == ref.match_id
        assert len(proxy.requests_for("/token")) == 2
        assert waits == []

    def test_is_used_while_the_token_service_is_down(self, client: Client, proxy: FaultyProxy, ref: MatchRef) -> None:
        client.match(ref.match_id)
        proxy.applies_to = lambda path: path.startswith("/token")
        proxy.faults.extend(["503"] * 5)
        for _ in range(3):
            assert client.match(ref.match_id).data["id"] == ref.match_id

    def test_fetching_is_retried(self, client: Client, proxy: FaultyProxy, waits: list[float], ref: MatchRef) -> None:
        proxy.applies_to = lambda path: path.startswith("/token")
        proxy.faults.extend(["503", "html"])
        assert client.match(ref.match_id).data["id"] == ref.match_id
        assert len(waits) == 2

    def test_a_wrong_key_is_refused_without_retry(
        self, make_client: MakeClient, proxy: FaultyProxy, ref: MatchRef, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.DEBUG), pytest.raises(Problem) as refused:
            make_client(key="vl_000000000000_wrongsecret").match(ref.match_id)
        assert (refused.value.status, refused.value.code) == (401, "unauthorized")
        assert refused.value.request_id
        assert len(proxy.seen) == 1
        assert "wrongsecret" not in caplog.text + str(refused.value)

    def test_a_revoked_key_is_refused(self, client: Client, ref: MatchRef) -> None:
        client.match(ref.match_id)
        keys.revoke(prefix=ApiKey.objects.get().prefix, now=timezone.now())
        with pytest.raises(Problem, match="401"):
            client.match(ref.match_id)

    def test_a_key_may_end_with_a_line_break(self, make_client: MakeClient, key: str, ref: MatchRef) -> None:
        assert make_client(key=f"{key}\n").match(ref.match_id).data["id"] == ref.match_id

    def test_key_and_token_are_never_logged(
        self, client: Client, proxy: FaultyProxy, key: str, ref: MatchRef, caplog: pytest.LogCaptureFixture
    ) -> None:
        proxy.faults.extend(["503", "drop", "garbage"])
        with caplog.at_level(logging.DEBUG):
            client.match(ref.match_id)
        assert "next attempt" in caplog.text
        for text in (caplog.text, repr(client)):
            assert key not in text
            assert client._token not in text


@pytest.mark.requirement("BX-1", "BX-2")
class TestFreshness:
    def test_is_in_every_response_and_grows(self, client: Client, ref: MatchRef) -> None:
        Match.objects.update(last_scraper_update=timezone.now() - timedelta(seconds=4))
        before = time.monotonic()
        freshness = client.match(ref.match_id).freshness
        assert freshness.state == "fresh"
        assert freshness.age_seconds in (4, 5)
        assert freshness.next_update_in
        assert freshness.scraped_at
        assert not freshness.is_from_cache
        assert before <= freshness.requested_at <= time.monotonic()
        assert freshness.age_now() >= freshness.age_seconds

    def test_age_counts_from_the_request(self) -> None:
        aged = Freshness(age_seconds=3, requested_at=time.monotonic() - 7)
        assert 10 <= aged.age_now() < 11
        assert Freshness().age_now() is None

    def test_each_match_of_a_list_has_its_own(self, client: Client, ref: MatchRef) -> None:
        now = timezone.now()
        old = make_ref(make_match(now=now - timedelta(minutes=2)), now=now)
        ages = {found.data["id"]: found.freshness.age_seconds for found in client.matches(status="live")}
        assert ages[ref.match_id] < 60
        assert ages[old.match_id] >= 120

    def test_too_old_is_refused_with_the_age(self, client: Client, waits: list[float], ref: MatchRef) -> None:
        Match.objects.update(last_scraper_update=timezone.now() - timedelta(seconds=40))
        with pytest.raises(Problem) as refused:
            client.match(ref.match_id, max_age=5)
        assert (refused.value.status, refused.value.code) == (503, "too-stale")
        assert refused.value.document["data_age_seconds"] >= 40
        assert refused.value.retry_after >= 1
        assert all(wait >= 1 for wait in waits)


class TestConditionalRequests:
    @pytest.mark.requirement("FR-027")
    def test_unchanged_data_is_the_same_object_with_a_new_age(
        self, client: Client, proxy: FaultyProxy, ref: MatchRef
    ) -> None:
        first = client.match(ref.match_id)
        Match.objects.update(last_scraper_update=timezone.now() - timedelta(seconds=30))
        again = client.match(ref.match_id)
        assert proxy.seen[-1].status == 304
        assert again.data is first.data
        assert again.is_unchanged
        assert again.freshness.state == "aging"
        assert again.freshness.age_now() >= 30

    def test_changed_data_is_new(self, client: Client, ref: MatchRef) -> None:
        first = client.match(ref.match_id)
        Match.objects.update(sequence=2)
        again = client.match(ref.match_id)
        assert not again.is_unchanged
        assert (first.data["sequence"], again.data["sequence"]) == (1, 2)

    def test_the_cache_evicts_the_least_recently_used(self, client: Client, ref: MatchRef) -> None:
        client._cache.update({f"/{number}": None for number in range(CACHE_SIZE)})
        client.match(ref.match_id)
        assert len(client._cache) == CACHE_SIZE
        assert "/0" not in client._cache
        assert client.match(ref.match_id).is_unchanged


class TestRetry:
    @pytest.mark.parametrize("fault", ["drop", "lost", "cut", "garbage", "html", "not_found", "503", "429", "500"])
    def test_a_temporary_fault_is_retried(
        self, client: Client, proxy: FaultyProxy, waits: list[float], ref: MatchRef, fault: str
    ) -> None:
        proxy.faults.extend([fault, fault])
        assert client.match(ref.match_id, "events").data["events"] == []
        assert len(waits) == 2

    def test_waits_at_least_for_retry_after(
        self, client: Client, proxy: FaultyProxy, waits: list[float], ref: MatchRef
    ) -> None:
        proxy.retry_after = "7"
        proxy.faults.extend(["429", "503"])
        client.match(ref.match_id)
        assert len(waits) == 2
        assert all(7 <= wait <= 8 for wait in waits)

    def test_a_longer_wait_than_allowed_is_raised_at_once(
        self, client: Client, proxy: FaultyProxy, waits: list[float], ref: MatchRef
    ) -> None:
        proxy.retry_after = "3600"
        proxy.faults.append("429")
        with pytest.raises(Problem) as refused:
            client.match(ref.match_id)
        assert (refused.value.status, refused.value.retry_after) == (429, 3600)
        assert waits == []

    def test_attempts_are_limited(self, client: Client, proxy: FaultyProxy, waits: list[float], ref: MatchRef) -> None:
        proxy.faults.extend(["drop"] * 10)
        with pytest.raises(httpx.TransportError):
            client.match(ref.match_id)
        assert len(waits) == 3
        assert len(proxy.requests_for("/matches")) == 4

    def test_silence_ends_with_a_timeout(self, make_client: MakeClient, proxy: FaultyProxy, ref: MatchRef) -> None:
        client = make_client(timeout=0.3, attempts=1)
        client.match(ref.match_id)
        proxy.faults.append("hang")
        with pytest.raises(httpx.TimeoutException):
            client.match(ref.match_id)

    def test_a_restarted_server_costs_no_wait(
        self, client: Client, proxy: FaultyProxy, waits: list[float], ref: MatchRef
    ) -> None:
        client.match(ref.match_id)
        proxy.stop()
        with pytest.raises(httpx.ConnectError):
            client.match(ref.match_id)
        waits.clear()
        proxy.start()
        assert client.match(ref.match_id).data["id"] == ref.match_id
        assert waits == []

    def test_the_real_rate_limit_has_retry_after(self, make_client: MakeClient, ref: MatchRef) -> None:
        issued = keys.issue(
            consumer_name="small", tier=Tier.CUSTOM, requests_per_minute=2, scopes=("read",), now=timezone.now()
        )
        client = make_client(key=issued.text, attempts=1)
        client.match(ref.match_id, "events", since=0)
        client.match(ref.match_id, "events", limit=3)
        with pytest.raises(Problem) as refused:
            client.match(ref.match_id, "events", limit=4)
        assert refused.value.status == 429
        assert 1 <= refused.value.retry_after <= 60

    def test_backoff_doubles_up_to_a_limit(self) -> None:
        for _ in range(20):
            waits = [backoff(httpx.ConnectError(""), attempt) for attempt in (1, 3, 5, 50)]
            assert waits == sorted(waits)
            assert 0.25 <= waits[0] <= 0.5
            assert 15 <= waits[-1] <= 30

    @pytest.mark.parametrize(
        ("next_update_in", "least", "most"), [(None, 10, 11), (0.2, 1, 1.1), (2, 2, 2.2), (60, 60, 66), (9999, 60, 66)]
    )
    def test_polls_are_a_second_to_a_minute_apart(
        self, next_update_in: float | None, least: float, most: float
    ) -> None:
        assert least <= poll_interval(next_update_in) <= most

    @pytest.mark.parametrize(
        ("header", "expected"), [("5", 5), ("2.5", 2.5), ("soon", None), ("-3", None), ("", None), (None, None)]
    )
    def test_unreadable_headers_count_as_missing(self, header: str | None, expected: float | None) -> None:
        assert parse_seconds(header) == expected


class TestSafety:
    def test_a_redirect_is_not_followed(self, make_client: MakeClient, proxy: FaultyProxy, ref: MatchRef) -> None:
        proxy.faults.append("redirect")
        with pytest.raises(httpx.RemoteProtocolError, match="302"):
            make_client(attempts=1).match(ref.match_id)

    def test_the_next_page_is_requested_from_the_same_server(
        self, client: Client, proxy: FaultyProxy, ref: MatchRef
    ) -> None:
        """The API names the address at which its proxy reached it; the token is not sent there."""
        more = [make_ref(make_match(now=timezone.now())).match_id for _ in range(4)]
        found = [each.data["id"] for each in client.matches(limit=2, status="live")]
        assert found == sorted([ref.match_id, *more], reverse=True)
        assert len(proxy.requests_for("/api/v1/matches")) == 3
        assert all("status=live" in each.path for each in proxy.requests_for("/api/v1/matches"))

    @pytest.mark.parametrize("url", ["", "scores.example.com", "ftp://x", "http://me:secret@x", "http://x?y"])
    def test_an_invalid_address_is_refused(self, url: str) -> None:
        with pytest.raises(ValueError, match="address"):
            Client(url, "key")

    @pytest.mark.parametrize("pasted", ["vl_0123\n456789ab.x", "vl_\u201cquoted\u201d"])
    def test_an_invalid_key_is_refused(self, pasted: str) -> None:
        with pytest.raises(ValueError, match="invalid characters"):
            Client("https://scores.example.com", pasted)

    def test_an_unencrypted_address_is_warned_about(self, caplog: pytest.LogCaptureFixture) -> None:
        Client("http://scores.example.com", "vl_secret").close()
        assert "unencrypted" in caplog.text
        assert "vl_secret" not in caplog.text

    def test_identifies_itself(self, client: Client, proxy: FaultyProxy, ref: MatchRef) -> None:
        client.match(ref.match_id)
        assert {each.headers["user-agent"] for each in proxy.seen} == {"victoryline-client/0.2.0"}


class TestReads:
    @pytest.mark.requirement("BX-4")
    def test_past_states(self, client: Client, ref: MatchRef) -> None:
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
        assert client.match(match.pk, "delta", since=1).data["changed"]["score"]["team_b"]["runs"] == 96
        assert [row["sequence"] for row in client.match(match.pk, "snapshots").data["snapshots"]] == [2, 1]
        assert client.match(match.pk, "snapshots/1").data["payload"]["score"]["team_b"]["runs"] == 95

    def test_parts_of_a_match_by_its_key(self, client: Client, ref: MatchRef) -> None:
        event = make_event(ref.match)
        name = f"crex_{ref.source_event_id}"
        assert client.match(name, include="provenance").data["id"] == ref.match_id
        assert [row["id"] for row in client.match(name, "events").data["events"]] == [event.pk]
        assert client.match(name, "lineups").data["lineups"] == []
        assert client.match(name, "conflicts", state="all").data["conflicts"] == []

    def test_filters(self, client: Client, ref: MatchRef) -> None:
        since = timezone.now() - timedelta(hours=1)
        found = client.matches(status="live,upcoming", updated_since=since)
        assert [each.data["id"] for each in found] == [ref.match_id]

    def test_unknown_matches_and_parameters_are_refused(
        self, client: Client, waits: list[float], ref: MatchRef
    ) -> None:
        for name in ("no_such", "../../admin"):
            with pytest.raises(Problem) as refused:
                client.match(name)
            assert (refused.value.status, refused.value.code) == (404, "not-found")
        with pytest.raises(Problem) as refused:
            list(client.matches(sprot="cricket"))
        assert (refused.value.status, refused.value.document["parameter"]) == (400, "sprot")
        assert waits == []

    @pytest.mark.requirement("FR-013")
    def test_usage(self, client: Client, ref: MatchRef) -> None:
        assert client.get("/api/v1/usage").data["limits"]["used"] == 0
        client.match(ref.match_id)
        usage = client.get("/api/v1/usage").data
        assert (usage["tier"], usage["limits"]["used"]) == ("premium", 1)


class TestSubmit:
    def test_counts_once_however_often_it_is_sent(self, client: Client, proxy: FaultyProxy, waits: list[float]) -> None:
        pushed_source()
        proxy.faults.extend(["lost", "503"])
        answer = client.submit(sent(91))
        assert len(waits) == 2
        assert answer.data["submission_id"] == str(Submission.objects.get().submission_id)
        assert len({each.headers["idempotency-key"] for each in proxy.requests_for("/cricket-data")}) == 1
        work()
        submission = client.get(f"/cricket-data/submissions/{answer.data['submission_id']}").data
        assert submission["state"] == "done"
        assert client.match(submission["match"]).data["score"]["team_a"]["runs"] == 91

    def test_a_given_key_counts_once_over_restarts(self, make_client: MakeClient) -> None:
        pushed_source()
        body = sent(91)
        first, again = (make_client().submit(body, idempotency_key="mine-1").data for _ in range(2))
        assert first["submission_id"] == again["submission_id"]
        with pytest.raises(Problem, match="409"):
            make_client().submit(sent(92), idempotency_key="mine-1")

    def test_needs_the_scope_ingest(self, make_client: MakeClient, transactional_db: None) -> None:
        issued = keys.issue(consumer_name="reader", tier=Tier.STANDARD, scopes=("read",), now=timezone.now())
        with pytest.raises(Problem, match="403"):
            make_client(key=issued.text).submit({"match_id": "x"})


def test_needs_httpx_only(tmp_path: Path) -> None:
    """A consumer copies the folder: it imports nothing else of this repository."""
    (tmp_path / "victoryline_client").symlink_to(Path(victoryline_client.__file__).parent)
    command = [sys.executable, "-E", "-m", "victoryline_client", "follow"]
    bare = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={}, check=False)
    assert bare.returncode == 1
    assert "VICTORYLINE_API_KEY" in bare.stderr
