"""Rounds and lists of matches over HTTP."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from monitoring.health.match_cards import shown_matches
from scraping.errors import Gone, LayoutChanged, Transient
from scraping.models import ErrorGroup, JobKind, MatchRef, ScrapeJob, ScrapeTask, TaskState, Worker
from scraping.payloads import Resource
from scraping.scheduler.upkeep import close_finished_jobs
from tests.api_fixtures import Caller
from tests.factories import make_source
from tests.scraping.rounds import ASKED, IDS, RoundReader, engine_of, make_due, run_due, url_of

pytestmark = [pytest.mark.django_db, pytest.mark.both]

ROUND = {"source": "sofascore", "round": ASKED}


@pytest.fixture(autouse=True)
def source() -> Any:
    return make_source("sofascore")


def run(outcomes: Any = None, *, rounds: int = 4) -> None:
    """Runs workers and scheduler until no task is left."""
    engine = engine_of(RoundReader(outcomes=outcomes))
    for _ in range(rounds):
        run_due(engine)
        make_due()
    close_finished_jobs(timezone.now())


@pytest.mark.requirement("ZT-7")
class TestStart:
    def test_of_a_round_responds_at_once_with_the_job_and_its_address(self, operator: Caller) -> None:
        response = operator.post("/api/scrape", ROUND)
        job = ScrapeJob.objects.get()
        assert response.status_code == 202
        assert response["Location"] == f"http://testserver/api/scrape/jobs/{job.pk}"
        assert response["Cache-Control"] == "no-store"
        body = response.json()
        assert (body["id"], body["state"], body["expected"], body["requested_by"]) == (
            job.pk, "discovering", 0, "api:operator"
        )  # fmt: skip
        assert operator.get(response["Location"]).json() == body

    def test_of_addresses_has_its_expected_matches_at_once(self, operator: Caller) -> None:
        body = operator.post("/api/scrape", {"urls": [url_of(IDS[0]), url_of(IDS[1])]}).json()
        assert (body["kind"], body["state"], body["expected"], body["pending"]) == ("urls", "running", 2, 2)
        assert [one["key"] for one in body["missing"]] == [f"sofascore_{IDS[0]}", f"sofascore_{IDS[1]}"]

    @pytest.mark.parametrize("exists", [True, False])
    def test_of_an_address_is_a_public_match_once_it_was_read(self, operator: Caller, exists: bool) -> None:
        operator.post("/api/scrape", {"urls": [url_of(IDS[0])]})
        assert operator.get("/api/v1/matches").json()["matches"] == []
        assert operator.get(f"/api/v1/matches/{MatchRef.objects.get().match_id}").status_code == 404
        assert shown_matches() == []
        run(None if exists else {IDS[0]: Gone("not found", http_status=404)})
        listed = operator.get("/api/v1/matches").json()["matches"]
        assert [one["title"] != "" for one in listed] == ([True] if exists else [])
        found = operator.get(f"/api/v1/matches/sofascore_{IDS[0]}")
        assert found.status_code == (200 if exists else 404)
        assert len(shown_matches()) == exists

    def test_of_an_open_round_responds_200_with_the_existing_job(self, operator: Caller) -> None:
        first, again = (operator.post("/api/scrape", ROUND) for _ in range(2))
        assert (first.status_code, again.status_code) == (202, 200)
        assert again["Location"] == first["Location"]
        assert ScrapeJob.objects.count() == 1

    def test_with_the_same_key_always_returns_the_same_job(self, operator: Caller) -> None:
        first = operator.post("/api/scrape", ROUND, Idempotency_Key="abc")
        run()
        again = operator.post("/api/scrape", ROUND, Idempotency_Key="abc")
        assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
        assert again.json()["state"] == "complete"

    def test_with_the_key_of_another_request_is_a_conflict(self, operator: Caller) -> None:
        operator.post("/api/scrape", ROUND, Idempotency_Key="abc")
        response = operator.post("/api/scrape", {"urls": [url_of(IDS[0])]}, Idempotency_Key="abc")
        assert (response.status_code, response.json()["type"]) == (409, "/problems/conflict")
        assert response.json()["job"] == ScrapeJob.objects.get().pk

    def test_refuses_a_key_that_is_too_long(self, operator: Caller) -> None:
        response = operator.post("/api/scrape", ROUND, Idempotency_Key="x" * 201)
        assert (response.status_code, response.json()["parameter"]) == (400, "Idempotency-Key")

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "source"),
            ({"source": "sofascore"}, "round"),
            ({"source": "nowhere", "round": ASKED}, "source"),
            ({"source": "crex", "round": ASKED}, "round"),
            ({"source": "sofascore", "round": {"round": 1}}, "round"),
            ({"source": "sofascore", "round": {**ASKED, "round": 0}}, "round"),
            ({"source": "sofascore", "round": []}, "round"),
            ({"source": "sofascore", "round": ASKED, "matches": 0}, "matches"),
            ({"urls": []}, "urls"),
            ({"urls": ["x"] * 501}, "urls"),
            ({"urls": [url_of(IDS[0]), "https://evil.example/"]}, "urls"),
            ({"urls": [url_of(IDS[0])], "source": "sofascore"}, "urls"),
            ({"urls": ["\x00"]}, "urls"),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_names_the_invalid_parameter(self, operator: Caller, body: Any, field: str) -> None:
        make_source("crex")
        response = operator.post("/api/scrape", body)
        assert response.status_code == 400
        assert field in response.json()["invalid"]
        assert not ScrapeJob.objects.exists()
        assert not ScrapeTask.objects.exists()

    def test_names_each_invalid_address_with_a_reason(self, operator: Caller) -> None:
        said = operator.post("/api/scrape", {"urls": ["https://evil.example/", url_of(IDS[0]).partition("#")[0]]})
        first, second = said.json()["invalid"]["urls"]
        assert "https://evil.example/: it is at none of our sources (https://sofascore.example)" in first
        assert "with the part after #" in second

    @pytest.mark.requirement("EC-6")
    def test_waits_for_memory_and_is_written_down(self, operator: Caller) -> None:
        now = timezone.now()
        free = {"free_memory_bytes": 100 * 1024 * 1024}
        Worker.objects.create(worker_id="w-1", host="h", pid=1, started_at=now, heartbeat_at=now, **free)
        response = operator.post("/api/scrape", {"urls": [url_of(IDS[0])]})
        assert (response.status_code, response["Retry-After"]) == (503, "60")
        problem = response.json()
        assert problem["type"] == "/problems/insufficient-memory"
        assert "100 MB are free" in problem["detail"]
        assert operator.get(f"/api/scrape/jobs/{problem['job']}").json()["expected"] == 1
        again = operator.post("/api/scrape", {"urls": [url_of(IDS[0])]})
        assert (again.status_code, again.json()["id"]) == (200, problem["job"])


@pytest.mark.requirement("ZT-7")
class TestJob:
    def test_lists_missing_matches_with_reasons(self, operator: Caller) -> None:
        job_id = operator.post("/api/scrape", ROUND).json()["id"]
        run({IDS[0]: LayoutChanged("the page has changed"), IDS[1]: Transient("timeout")}, rounds=3)
        body = operator.get(f"/api/scrape/jobs/{job_id}").json()
        assert (body["state"], body["expected"], body["done"], body["percent"]) == ("running", 10, 8, 80.0)
        assert (body["dead"], body["failed"], body["finished_at"]) == (1, 1, None)
        dead, waiting = body["missing"]
        assert (dead["key"], dead["state"]) == (f"sofascore_{IDS[0]}", "dead")
        assert "the page has changed" in dead["reason"]
        assert (waiting["state"], waiting["reason"], waiting["attempts"]) == ("failed", "timeout", 2)
        assert waiting["next_attempt_at"]

    def test_of_a_complete_round_is_completed(self, operator: Caller) -> None:
        job_id = operator.post("/api/scrape", ROUND).json()["id"]
        run()
        body = operator.get(f"/api/scrape/jobs/{job_id}").json()
        assert (body["state"], body["percent"], body["missing"]) == ("complete", 100.0, [])
        assert body["finished_at"]

    @pytest.mark.parametrize("job_id", ["999", "0", "x", "99999999999999999999", "²"])
    def test_unknown_is_a_404(self, operator: Caller, job_id: str) -> None:
        response = operator.get(f"/api/scrape/jobs/{job_id}")
        assert (response.status_code, response.json()["type"]) == (404, "/problems/not-found")

    def test_of_the_watch_is_hidden(self, operator: Caller, source: Any) -> None:
        watch = ScrapeJob.objects.create(kind=JobKind.WATCH, name="x", source=source, created_at=timezone.now())
        assert operator.get(f"/api/scrape/jobs/{watch.pk}").status_code == 404
        assert operator.get("/api/scrape/jobs").json() == {"jobs": [], "next": None}

    def test_list_pages_and_filters(self, operator: Caller) -> None:
        for number in range(1, 4):
            operator.post("/api/scrape", {"source": "sofascore", "round": {**ASKED, "round": number}})
        operator.post("/api/scrape", {"urls": [url_of(IDS[0])]})
        first = operator.get("/api/scrape/jobs", {"limit": 2, "kind": "round"}).json()
        second = operator.get("/api/scrape/jobs", dict(parse_qsl(urlsplit(first["next"]).query))).json()
        assert [len(first["jobs"]), len(second["jobs"]), second["next"]] == [2, 1, None]
        assert len(operator.get("/api/scrape/jobs", {"open": "true"}).json()["jobs"]) == 4
        assert operator.get("/api/scrape/jobs", {"open": "false", "source": "sofascore"}).json()["jobs"] == []
        assert operator.get("/api/scrape/jobs", {"opn": 1}).json()["type"] == "/problems/bad-parameter"


@pytest.mark.requirement("BX-9", "ZT-6")
class TestRetryFailed:
    @pytest.fixture
    def job_id(self, operator: Caller) -> int:
        """A round with two dead letters of one cause and one of another."""
        job_id = operator.post("/api/scrape", ROUND).json()["id"]
        changed = LayoutChanged("the page has changed")
        run({IDS[0]: changed, IDS[1]: changed, IDS[2]: RuntimeError("a bug")})
        return int(job_id)

    def test_reopens_failed_tasks_and_the_job(self, operator: Caller, job_id: int) -> None:
        answer = operator.post("/api/scrape/retry-failed", {"job": job_id})
        assert (answer.status_code, len(answer.json()["retried"]), answer.json()["refused"]) == (200, 3, [])
        body = operator.get(f"/api/scrape/jobs/{job_id}").json()
        assert (body["state"], body["pending"], body["finished_at"]) == ("running", 3, None)
        run()
        assert operator.get(f"/api/scrape/jobs/{job_id}").json()["state"] == "complete"

    def test_a_second_request_changes_nothing(self, operator: Caller, job_id: int) -> None:
        first, again = (operator.post("/api/scrape/retry-failed", {"job": job_id}).json() for _ in range(2))
        assert (len(first["retried"]), again["retried"]) == (3, [])
        assert ScrapeTask.objects.filter(resource=Resource.FULL).count() == 10

    def test_as_a_dry_run_changes_nothing(self, operator: Caller, job_id: int) -> None:
        answer = operator.post("/api/scrape/retry-failed", {"job": job_id, "dry_run": True}).json()
        assert (answer["dry_run"], len(answer["retried"])) == (True, 3)
        assert ScrapeTask.objects.filter(state=TaskState.DEAD).count() == 3
        assert operator.get(f"/api/scrape/jobs/{job_id}").json()["state"] == "incomplete"

    def test_filters_by_source_error_class_and_group(self, operator: Caller, job_id: int) -> None:
        group = ErrorGroup.objects.get(error_code="layout")
        dry = {"dry_run": True}
        by = {
            "fingerprint": {"fingerprint": group.fingerprint},
            "class": {"error_class": "bug"},
            "source": {"source": "sofascore"},
            "both": {"source": "sofascore", "error_class": "drift", "job": job_id},
            "neither": {"error_class": "blocked"},
        }
        found = {name: operator.post("/api/scrape/retry-failed", {**which, **dry}).json() for name, which in by.items()}
        assert {name: len(one["retried"]) for name, one in found.items()} == {
            "fingerprint": 2, "class": 1, "source": 3, "both": 2, "neither": 0
        }  # fmt: skip

    def test_never_opens_a_second_task_for_the_same_match(self, operator: Caller, job_id: int) -> None:
        """Another job has requested one of them meanwhile."""
        operator.post("/api/scrape", {"urls": [url_of(IDS[0])]})
        answer = operator.post("/api/scrape/retry-failed", {"job": job_id}).json()
        assert len(answer["retried"]) == 2
        (refused,) = answer["refused"]
        assert "another task for the same match is open already" in refused["reason"]
        open_ones = ScrapeTask.objects.filter(ref__source_event_id=IDS[0], state=TaskState.PENDING)
        assert open_ones.count() == 1

    def test_skips_matches_that_a_later_task_has_read(self, operator: Caller, job_id: int) -> None:
        operator.post("/api/scrape", {"urls": [url_of(IDS[0])]})
        run()
        answer = operator.post("/api/scrape/retry-failed", {"source": "sofascore"}).json()
        assert [one["reason"] for one in answer["refused"]] == [
            "a later task for the same has ended since; retry that one if it failed too"
        ]

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "body"),
            ({"dry_run": True}, "body"),
            ({"job": 999}, "job"),
            ({"job": "x"}, "job"),
            ({"source": "nowhere"}, "source"),
            ({"error_class": "bad luck"}, "error_class"),
            ({"fingerprint": "f" * 64}, "fingerprint"),
            ({"fingerprint": "x"}, "fingerprint"),
        ],
        ids=str,
    )
    def test_refuses_a_request_without_a_filter(self, operator: Caller, body: Any, field: str) -> None:
        response = operator.post("/api/scrape/retry-failed", body)
        assert (response.status_code, response.json()["type"]) == (400, "/problems/bad-request")
        assert field in response.json()["invalid"]


@pytest.mark.requirement("FR-026")
@pytest.mark.parametrize(
    "address", ["/api/scrape", "/api/scrape/jobs", "/api/scrape/jobs/1", "/api/scrape/retry-failed"]
)
def test_needs_the_scope_operate(caller: Caller, anonymous: Client, address: str) -> None:
    is_read = "jobs" in address
    refused = caller.get(address) if is_read else caller.post(address, ROUND)
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/forbidden")
    assert "operate" in refused.json()["detail"]
    assert (anonymous.get(address) if is_read else anonymous.post(address)).status_code == 401
    assert not ScrapeJob.objects.exists()
