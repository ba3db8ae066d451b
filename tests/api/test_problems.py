"""Errors: one honest shape for programs, a plain page for people."""

import pytest
from django.db import OperationalError
from django.test import Client, RequestFactory

from tests.api_fixtures import Caller
from victoryline.lib import error_pages

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("BX-22")]


class TestProblems:
    def test_have_all_members_and_are_never_cached(self, caller: Caller) -> None:
        response = caller.get("/api/v1/matches/999")
        problem = response.json()
        assert problem.keys() == {"type", "title", "status", "detail", "instance", "request_id"}
        assert problem["instance"] == "/api/v1/matches/999"
        assert response["Cache-Control"] == "no-store"

    @pytest.mark.parametrize(
        "path", ["/api/v2/x", "/api/v1/nothing", "/cricket-data/x", "/token/x", "/api/v1/matches/"]
    )
    def test_answer_unknown_addresses_of_the_api(self, anonymous: Client, path: str) -> None:
        response = anonymous.get(path)
        assert response.status_code == 404
        assert response["Content-Type"] == "application/problem+json"
        assert response.json()["request_id"] == response["X-Request-Id"]

    def test_answer_wrong_methods(self, caller: Caller) -> None:
        response = caller.client.delete("/api/v1/matches", headers={"Authorization": f"Bearer {caller.token}"})
        assert (response.status_code, response.json()["type"]) == (405, "/problems/method-not-allowed")
        assert "GET" in response["Allow"]

    def test_are_json_whatever_the_caller_accepts(self, caller: Caller) -> None:
        assert caller.get("/api/v1/matches", Accept="text/html").status_code == 200
        assert caller.get("/api/v1/matches/999", Accept="image/png").status_code == 404

    @pytest.mark.fault
    def test_a_database_that_is_away_is_a_503_with_a_time(self, caller: Caller, monkeypatch) -> None:
        def away(*args, **kwargs):
            raise OperationalError("connection refused")

        monkeypatch.setattr("scraping.queries.page_of_matches", away)
        response = caller.get("/api/v1/matches")
        assert (response.status_code, response.json()["type"]) == (503, "/problems/unavailable")
        assert response["Retry-After"] == "5"
        assert "connection refused" not in response.content.decode()

    def test_a_bug_is_a_500_that_tells_nothing_of_our_insides(self, caller: Caller, monkeypatch) -> None:
        def broken(*args, **kwargs):
            raise RuntimeError("secret insides")

        monkeypatch.setattr("scraping.queries.page_of_matches", broken)
        response = caller.get("/api/v1/matches")
        assert (response.status_code, response.json()["type"]) == (500, "/problems/internal-error")
        assert "insides" not in response.content.decode()

    def test_a_forged_host_is_refused_politely(self, anonymous: Client) -> None:
        assert anonymous.get("/api/v1/matches", headers={"Host": "evil.example"}).status_code == 400


class TestPages:
    def test_people_get_html(self, anonymous: Client) -> None:
        response = anonymous.get("/no/such/page")
        assert response.status_code == 404
        assert response["Content-Type"].startswith("text/html")
        assert "/api/docs" in response.content.decode()

    @pytest.mark.parametrize("path", ["/api/v1/x", "/elsewhere"])
    def test_every_handler_answers(self, path: str) -> None:
        request = RequestFactory().get(path)
        assert error_pages.bad_request(request, Exception()).status_code == 400
        assert error_pages.forbidden(request, Exception()).status_code == 403
        assert error_pages.server_error(request).status_code == 500
