"""Pausing and resuming a match over HTTP."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from monitoring.models import AuditEntry
from scraping.models import MatchLifecycle, Worker
from tests.api_fixtures import Caller
from tests.factories import make_match, make_ref

pytestmark = [pytest.mark.django_db, pytest.mark.both]


class TestPause:
    @pytest.mark.requirement("BX-8")
    def test_stops_a_match_until_a_time(self, operator: Caller) -> None:
        match = make_ref(make_match()).match
        response = operator.post(f"/api/v1/matches/{match.pk}/pause", {"minutes": 10, "reason": "source is down"})
        match.refresh_from_db()
        assert response.status_code == 200
        assert match.lifecycle == MatchLifecycle.PAUSED
        assert timedelta(minutes=9) < match.pause_until - timezone.now() <= timedelta(minutes=10)
        assert "source is down" in match.pause_reason
        assert "operator" in match.pause_reason
        assert response.json()["lifecycle"] == "PAUSED"
        assert operator.get(f"/api/v1/matches/{match.pk}")["X-Data-State"] == "paused"

    def test_takes_the_key_of_a_match_and_an_empty_body(self, operator: Caller) -> None:
        make_ref(make_match(), source_event_id="13KM")
        assert operator.post("/api/v1/matches/crex_13KM/pause").status_code == 200

    def test_of_a_paused_match_is_a_conflict(self, operator: Caller) -> None:
        match = make_match()
        operator.post(f"/api/v1/matches/{match.pk}/pause")
        response = operator.post(f"/api/v1/matches/{match.pk}/pause")
        assert (response.status_code, response.json()["type"]) == (409, "/problems/conflict")

    def test_of_a_finished_match_is_a_conflict(self, operator: Caller) -> None:
        match = make_match(status="completed", lifecycle=MatchLifecycle.COMPLETED)
        assert operator.post(f"/api/v1/matches/{match.pk}/pause").status_code == 409

    @pytest.mark.parametrize(
        "body",
        [
            {"minutes": 0},
            {"minutes": 1441},
            {"minutes": "x"},
            {"reason": "\x00"},
            {"reason": "x" * 151},
            {"reason": []},
            [1],
        ],
        ids=str,
    )
    def test_refuses_bad_values_by_name(self, operator: Caller, body: Any) -> None:
        response = operator.post(f"/api/v1/matches/{make_match().pk}/pause", body)
        assert response.status_code == 400
        assert response.json()["invalid"]

    def test_of_an_unknown_match_is_a_404(self, operator: Caller) -> None:
        assert operator.post("/api/v1/matches/999999/pause").status_code == 404

    @pytest.mark.requirement("FR-026")
    @pytest.mark.parametrize("action", ["pause", "resume"])
    def test_needs_the_scope_operate(self, caller: Caller, anonymous, action: str) -> None:
        address = f"/api/v1/matches/{make_match().pk}/{action}"
        response = caller.post(address)
        assert (response.status_code, response.json()["type"]) == (403, "/problems/forbidden")
        assert "operate" in response.json()["detail"]
        assert response["X-RateLimit-Remaining"] == "99"
        assert anonymous.post(address).status_code == 401


class TestResume:
    def test_continues_polling(self, operator: Caller) -> None:
        match = make_ref(make_match()).match
        operator.post(f"/api/v1/matches/{match.pk}/pause")
        response = operator.post(f"/api/v1/matches/{match.pk}/resume")
        assert response.json()["lifecycle"] == "ACTIVE"
        assert response.json()["pause_until"] is None

    def test_of_a_match_that_is_not_paused_is_a_conflict(self, operator: Caller) -> None:
        assert operator.post(f"/api/v1/matches/{make_match().pk}/resume").status_code == 409


def too_little_memory() -> None:
    now = timezone.now()
    Worker.objects.create(
        worker_id="w-1", host="h", pid=1, started_at=now, heartbeat_at=now, free_memory_bytes=100 * 1024 * 1024
    )


class TestWatch:
    def test_starts_and_stops(self, operator: Caller) -> None:
        match = make_ref(make_match()).match
        assert operator.post(f"/api/v1/matches/{match.pk}/stop").status_code == 200
        assert not match.refs.get().is_watched
        assert operator.post(f"/api/v1/matches/{match.pk}/stop").status_code == 409
        response = operator.post(f"/api/v1/matches/{match.pk}/watch")
        assert (response.status_code, response.json()["id"]) == (200, match.pk)
        assert match.refs.get().is_watched
        done = AuditEntry.objects.filter(action_type__startswith="watch").order_by("pk")
        done = done.values_list("action_type", "actor", "outcome")
        assert [(action, outcome) for action, _, outcome in done] == [("watch_end", "success"), ("watch", "success")]
        assert all("operator" in actor for _, actor, _ in done)

    @pytest.mark.requirement("EC-6", "BX-22")
    def test_is_refused_with_retry_after_without_free_memory(self, operator: Caller) -> None:
        match = make_ref(make_match()).match
        operator.post(f"/api/v1/matches/{match.pk}/stop")
        too_little_memory()
        response = operator.post(f"/api/v1/matches/{match.pk}/watch")
        assert (response.status_code, response["Retry-After"]) == (503, "60")
        assert response["Content-Type"] == "application/problem+json"
        problem = response.json()
        assert (problem["type"], problem["title"]) == ("/problems/insufficient-memory", "Insufficient memory resources")
        assert "100 MB are free" in problem["detail"]
        ref = match.refs.get()
        assert (ref.is_watched, ref.watch_at is not None) == (False, True)
        assert AuditEntry.objects.filter(action_type="watch", outcome="failed").count() == 1

    @pytest.mark.parametrize("action", ["watch", "stop"])
    def test_needs_the_scope_operate(self, caller: Caller, action: str) -> None:
        assert caller.post(f"/api/v1/matches/{make_match().pk}/{action}").status_code == 403
