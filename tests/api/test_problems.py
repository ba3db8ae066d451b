"""Errors: one honest shape for programs, a plain page for people."""

import logging

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client, RequestFactory

from tests.api_fixtures import Caller
from victoryline.lib import error_pages
from victoryline.lib.logs import NotTwice

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("BX-22")]


class TestProblems:
    def test_have_all_members_and_are_never_cached(self, caller: Caller) -> None:
        response = caller.get("/api/v1/matches/999")
        problem = response.json()
        assert problem.keys() == {"type", "title", "status", "detail", "instance", "request_id"}
        assert problem["instance"] == "/api/v1/matches/999"
        assert response["Cache-Control"] == "no-store"

    @pytest.mark.parametrize(
        "path", ["/api/v2/x", "/api/v1/nothing", "/cricket-data/x", "/token/x", "/api/v1/nothing/", "/health/x/"]
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
    @pytest.mark.parametrize("error", [OperationalError, InterfaceError])
    def test_a_database_that_is_away_is_a_503_with_a_time(self, caller: Caller, monkeypatch, error) -> None:
        def away(*args, **kwargs):
            raise error("connection refused")

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


class TestParameters:
    def test_a_misspelled_one_is_named_with_what_was_meant(self, caller: Caller) -> None:
        response = caller.get("/api/v1/matches", {"stauts": "live"})
        problem = response.json()
        assert (response.status_code, problem["type"]) == (400, "/problems/bad-parameter")
        assert problem["parameter"] == "stauts"
        assert "Did you mean `status`?" in problem["detail"]
        assert "updated_since" in problem["detail"]

    @pytest.mark.parametrize(
        "path", ["/api/v1/matches/1", "/api/v1/matches/1/events", "/cricket-data/live-matches?max_age=1"]
    )
    def test_an_unknown_one_is_refused_everywhere(self, caller: Caller, path: str) -> None:
        response = caller.get(path + ("&" if "?" in path else "?") + "zzz=1")
        assert (response.status_code, response.json()["parameter"]) == (400, "zzz")

    def test_a_bad_choice_lists_the_good_ones(self, caller: Caller) -> None:
        detail = caller.get("/api/v1/matches", {"status": "running"}).json()["detail"]
        assert "Use one of: upcoming, live, completed, abandoned." in detail


class TestSlashes:
    @pytest.mark.parametrize("path", ["/health/live/", "/api/v1/matches/", "/cricket-data/live-matches/", "/api/docs/"])
    def test_at_the_end_are_allowed(self, caller: Caller, path: str) -> None:
        assert caller.get(path).status_code == 200

    def test_do_not_open_doors(self, anonymous: Client, operator: Caller) -> None:
        assert anonymous.get("/api/v1/matches/").status_code == 401
        assert operator.post("/api/v1/matches/999/pause/").status_code == 404
        assert anonymous.post("/api/v1/nothing").status_code == 404

    @pytest.mark.parametrize("path", ["/api", "/api/"])
    def test_the_bare_address_leads_to_the_description(self, anonymous: Client, path: str) -> None:
        response = anonymous.get(path)
        assert (response.status_code, response["Location"]) == (302, "/api/docs")


class TestLogLine:
    def test_has_id_method_path_status_and_consumer(self, caller: Caller, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "victoryline.requests")
        caller.get("/api/v1/matches/999", X_Request_Id="find-me")
        caller.get("/api/v1/matches")
        [line] = [record for record in caplog.records if record.name == "victoryline.requests"]
        assert (line.request_id, line.method, line.path) == ("find-me", "GET", "/api/v1/matches/999")
        assert (line.status, line.levelname, line.consumer_id) == (404, "INFO", caller.key.consumer_id)

    def test_of_our_failures_is_a_warning(self, caller: Caller, caplog, monkeypatch) -> None:
        def away(*args, **kwargs):
            raise OperationalError("gone")

        monkeypatch.setattr("scraping.queries.page_of_matches", away)
        caller.get("/api/v1/matches")
        [line] = [record for record in caplog.records if record.name == "victoryline.requests"]
        assert (line.status, line.levelname) == (503, "WARNING")

    def test_replaces_the_one_of_django_unless_that_has_a_traceback(self) -> None:
        record = logging.makeLogRecord({"name": "django.request", "status_code": 404})
        assert not NotTwice().filter(record)
        record.exc_info = (ValueError, ValueError("x"), None)
        assert NotTwice().filter(record)
        assert any(isinstance(each, NotTwice) for each in logging.getLogger("django.request").filters)


class TestPages:
    def test_people_get_html(self, anonymous: Client) -> None:
        response = anonymous.get("/no/such/page")
        assert response.status_code == 404
        assert response["Content-Type"].startswith("text/html")
        assert "/api/docs" in response.content.decode()

    @pytest.mark.fault
    @pytest.mark.requirement("EC-2")
    @pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/admin/scraping/match/"])
    def test_the_console_says_that_the_database_is_away_and_what_is_safe(self, admin_client: Client, path: str) -> None:
        def refuse(*_: object) -> None:
            raise OperationalError("connection refused at 10.0.0.1")

        admin_client.raise_request_exception = False
        with connection.execute_wrapper(refuse):
            response = admin_client.get(path)
        page = response.content.decode()
        assert (response.status_code, response["Retry-After"]) == (503, "5")
        assert "Nothing is lost" in page
        assert "10.0.0.1" not in page

    @pytest.mark.parametrize("path", ["/api/v1/x", "/elsewhere"])
    def test_every_handler_answers(self, path: str) -> None:
        request = RequestFactory().get(path)
        assert error_pages.bad_request(request, Exception()).status_code == 400
        assert error_pages.forbidden(request, Exception()).status_code == 403
        assert error_pages.server_error(request).status_code == 500
