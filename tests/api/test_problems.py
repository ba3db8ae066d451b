"""Errors: problem documents for programs, HTML pages for people."""

import html
import io
import json
import logging
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError, connection
from django.http import UnreadablePostError
from django.test import Client, RequestFactory

from tests.api_fixtures import Caller
from victoryline.lib.http import error_pages
from victoryline.lib.http.problems import KINDS
from victoryline.lib.logs import WithoutDuplicates, formatter

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("BX-22")]


class TestProblems:
    def test_have_all_members_and_are_never_cached(self, caller: Caller) -> None:
        response = caller.get("/api/v1/matches/999")
        problem = response.json()
        assert problem.keys() == {
            "type", "title", "status", "code", "detail", "what_to_do", "instance", "request_id",
        }  # fmt: skip
        assert (problem["code"], problem["type"]) == ("not-found", "/problems/not-found")
        assert problem["instance"] == "/api/v1/matches/999"
        assert response["Cache-Control"] == "no-store"

    @pytest.mark.parametrize(
        "path", ["/api/v2/x", "/api/v1/nothing", "/cricket-data/x", "/token/x", "/api/v1/nothing/", "/health/x/"]
    )
    def test_are_returned_for_unknown_addresses_of_the_api(self, anonymous: Client, path: str) -> None:
        response = anonymous.get(path)
        assert response.status_code == 404
        assert response["Content-Type"] == "application/problem+json"
        assert response.json()["request_id"] == response["X-Request-Id"]

    @pytest.mark.parametrize("path", ["/nothing", "/favicon.png", "/static/nothing.css", "/problems/nothing"])
    def test_are_returned_to_programs_for_other_unknown_addresses(self, anonymous: Client, path: str) -> None:
        response = anonymous.get(path, headers={"Accept": "*/*"})
        assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")
        assert response.json()["code"] == "not-found"

    @pytest.mark.parametrize("path", ["/health", "/health/live", "/status", "/metrics"])
    def test_are_returned_for_wrong_methods_of_open_addresses(self, anonymous: Client, path: str) -> None:
        response = anonymous.post(path)
        assert (response.status_code, response["Content-Type"]) == (405, "application/problem+json")
        assert response.json()["code"] == "method-not-allowed"
        assert response["Allow"] == "GET, HEAD"

    def test_are_returned_for_wrong_methods(self, caller: Caller) -> None:
        response = caller.client.delete("/api/v1/matches", headers={"Authorization": f"Bearer {caller.token}"})
        assert (response.status_code, response.json()["type"]) == (405, "/problems/method-not-allowed")
        assert response["Allow"] == "GET, HEAD, OPTIONS"
        assert "DELETE" in response.json()["detail"]
        assert "Allow" not in caller.get("/api/v1/matches")

    def test_report_a_wrong_method_before_a_missing_scope(self, caller: Caller) -> None:
        response = caller.get("/cricket-data")
        assert (response.status_code, response["Allow"]) == (405, "POST, OPTIONS")

    def test_are_json_for_any_accept_header(self, caller: Caller) -> None:
        assert caller.get("/api/v1/matches", Accept="text/html").status_code == 200
        assert caller.get("/api/v1/matches/999", Accept="image/png").status_code == 404

    @pytest.mark.fault
    @pytest.mark.parametrize("error", [OperationalError, InterfaceError])
    def test_an_unreachable_database_is_a_503_with_retry_after(self, caller: Caller, monkeypatch, error) -> None:
        def away(*args, **kwargs):
            raise error("connection refused")

        for query in ("compared_columns", "accepted_ids"):
            monkeypatch.setattr(f"scraping.documents.queries.{query}", away)
        response = caller.get("/api/v1/matches")
        assert (response.status_code, response.json()["type"]) == (503, "/problems/unavailable")
        assert response["Retry-After"] == "5"
        assert "connection refused" not in response.content.decode()

    def test_a_bug_is_a_500_without_internal_details(self, caller: Caller, monkeypatch) -> None:
        def broken(*args, **kwargs):
            raise RuntimeError("secret insides")

        monkeypatch.setattr("scraping.documents.queries.compared_columns", broken)
        response = caller.get("/api/v1/matches")
        assert (response.status_code, response.json()["type"]) == (500, "/problems/internal-error")
        assert "insides" not in response.content.decode()

    @pytest.mark.parametrize("host", ["evil.example", "a b", "x" * 300])
    def test_a_forged_host_is_a_400_problem(self, anonymous: Client, host: str) -> None:
        response = anonymous.get("/api/v1/matches", headers={"Host": host})
        assert (response.status_code, response.json()["code"]) == (400, "bad-request")
        assert "`Host` is not served here" in response.json()["detail"]
        assert "evil" not in response.content.decode()

    def test_bodies_that_are_not_json_name_the_accepted_type(self, operator: Caller) -> None:
        response = operator.client.post(
            "/api/scrape", "a=1", content_type="text/plain", headers={"Authorization": f"Bearer {operator.token}"}
        )
        assert (response.status_code, response.json()["code"]) == (415, "unsupported-media-type")
        assert response.json()["detail"] == "The body is text/plain; only application/json is accepted."

    @pytest.mark.parametrize(
        "refused",
        [
            (RequestDataTooBig, 413, "payload-too-large"),
            (TooManyFieldsSent, 400, "bad-request"),
            (UnreadablePostError, 400, "bad-request"),
            (BadRequest, 400, "bad-request"),
            (PermissionDenied, 403, "forbidden"),
        ],
    )
    @pytest.mark.parametrize(
        "where", ["scraping.api.match_lists.MatchListView.get", "django.core.handlers.base.BaseHandler._get_response"]
    )
    def test_refusals_by_django_have_the_same_shape(self, caller: Caller, monkeypatch, refused, where: str) -> None:
        """In a view of the API, and before any view."""
        error, status, code = refused
        monkeypatch.setattr(where, raising(error))
        response = caller.get("/api/v1/matches")
        assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json")
        assert (response.json()["code"], response.json()["status"]) == (code, status)
        assert "secret" not in response.content.decode()

    def test_a_form_without_its_token_gets_advice(self) -> None:
        strict = Client(enforce_csrf_checks=True)
        page = strict.post("/admin/login/", {"username": "a", "password": "b"})
        assert (page.status_code, page["Content-Type"]) == (403, "text/html; charset=utf-8")
        assert "reload the page" in page.content.decode()

    @pytest.mark.parametrize("path", ["/api/schema", "/api/docs"])
    def test_are_returned_for_wrong_methods_of_pages_without_forms(self, path: str) -> None:
        response = Client(enforce_csrf_checks=True).post(path)
        assert (response.status_code, response.json()["code"]) == (405, "method-not-allowed")
        assert "GET" in response["Allow"]


def raising(error: type[Exception]) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise error("secret insides")

    return refuse


class TestKinds:
    """The kinds are defined once in the code; docs and pages agree with it."""

    def test_are_all_in_the_docs_and_no_others(self) -> None:
        text = Path("docs/api.md").read_text()
        rows = re.findall(r"^\| `/problems/([a-z-]+)` \| (\d+) \|", text, re.MULTILINE)
        assert sorted((code, int(status)) for code, status in rows) == sorted(
            (code, kind.status) for code, kind in KINDS.items()
        )

    def test_include_every_refusal_in_the_code(self) -> None:
        files = [path for app in ("apiauth", "scraping", "victoryline") for path in Path(app).rglob("*.py")]
        raised = {kind for each in files for kind in re.findall(r'ApiProblem\(\s*"([a-z-]+)"', each.read_text())}
        assert raised >= {"conflict", "too-stale", "too-many-requests"}
        assert raised <= KINDS.keys(), "add these to victoryline/lib/http/problems.py and docs/api.md"

    @pytest.mark.parametrize("code", KINDS)
    def test_have_a_page_at_their_type_address(self, anonymous: Client, code: str) -> None:
        response = anonymous.get(f"/problems/{code}")
        page = response.content.decode()
        assert (response.status_code, response["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert KINDS[code].title in html.unescape(page)
        assert f"status {KINDS[code].status}" in page
        assert f'href="/problems/{code}"' in anonymous.get("/problems").content.decode()

    def test_have_pages_without_the_database(self) -> None:
        with connection.execute_wrapper(raising(OperationalError)):
            assert Client().get("/problems/unavailable").status_code == 200


class TestMethods:
    def test_head_is_a_get_without_a_body(self, caller: Caller) -> None:
        headers = {"Authorization": f"Bearer {caller.token}"}
        full, head = caller.get("/api/v1/matches"), caller.client.head("/api/v1/matches", headers=headers)
        assert (head.status_code, head.content) == (200, b"")
        assert head["ETag"] == full["ETag"]
        missing = caller.client.head("/api/v1/matches/999", headers=headers)
        assert (missing.status_code, missing.content) == (404, b"")

    def test_options_lists_the_allowed_methods(self, caller: Caller) -> None:
        response = caller.client.options("/api/v1/matches", headers={"Authorization": f"Bearer {caller.token}"})
        assert (response.status_code, response.content) == (204, b"")
        assert response["Allow"] == "GET, HEAD, OPTIONS"


class TestRequestId:
    @pytest.mark.parametrize(
        ("path", "status"),
        [("/health/live", 200), ("/static/victoryline/status.css", 200), ("/nothing", 404), ("/api/v1/matches", 401),
         ("/api", 302), ("/problems", 200)],
    )  # fmt: skip
    def test_is_on_every_answer(self, anonymous: Client, path: str, status: int) -> None:
        with closing(anonymous.get(path, headers={"X-Request-Id": "mine-1"})) as response:
            assert (response.status_code, response["X-Request-Id"]) == (status, "mine-1")
        with closing(anonymous.get(path)) as response:
            assert re.fullmatch(r"[0-9a-f]{32}", response["X-Request-Id"])

    def test_is_on_a_304_and_on_server_errors(self, caller: Caller, monkeypatch) -> None:
        etag = caller.get("/api/v1/matches")["ETag"]
        same = caller.get("/api/v1/matches", If_None_Match=etag, X_Request_Id="mine-2")
        assert (same.status_code, same["X-Request-Id"]) == (304, "mine-2")
        monkeypatch.setattr("scraping.api.match_lists.MatchListView.get", raising(RuntimeError))
        failed = caller.get("/api/v1/matches", X_Request_Id="mine-3")
        assert (failed.status_code, failed["X-Request-Id"], failed.json()["request_id"]) == (500, "mine-3", "mine-3")

    @pytest.mark.parametrize("bad", ["x" * 65, "a b", "ä", "a\nb", "<script>", ""])
    def test_of_a_caller_is_accepted_only_if_harmless(self, anonymous: Client, bad: str) -> None:
        assert anonymous.get("/health/live", headers={"X-Request-Id": bad})["X-Request-Id"] != bad

    def test_is_on_every_log_line_of_the_request(self, caller: Caller, monkeypatch) -> None:
        written = io.StringIO()
        handler = logging.StreamHandler(written)
        handler.setFormatter(formatter("json"))
        monkeypatch.setattr(logging.getLogger(), "handlers", [handler])

        def talk(*_: object, **__: object) -> None:
            logging.getLogger("scraping.api").warning("On the way")
            raise RuntimeError

        monkeypatch.setattr("scraping.api.match_lists.MatchListView.get", talk)
        caller.get("/api/v1/matches", X_Request_Id="mine-4")
        lines = [json.loads(line) for line in written.getvalue().splitlines()]
        assert {"On the way", "Internal Server Error: /api/v1/matches"} <= {line["event"] for line in lines}
        assert {line["request_id"] for line in lines} == {"mine-4"}


class TestParameters:
    def test_a_misspelled_one_is_named_with_a_suggestion(self, caller: Caller) -> None:
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

    @pytest.mark.parametrize(
        "path", ["/api/v1/matches?status=live&status=upcoming", "/api/v1/matches/1?max_age=5&max_age=9"]
    )
    def test_a_repeated_one_is_refused(self, caller: Caller, path: str) -> None:
        name = path.partition("?")[2].partition("=")[0]
        response = caller.get(path)
        assert (response.status_code, response.json()["parameter"]) == (400, name)
        assert "2 times" in response.json()["detail"]

    def test_a_time_without_its_plus_sign_gets_a_hint(self, caller: Caller) -> None:
        detail = caller.get("/api/v1/matches?updated_since=2026-11-17T03:04:30+02:00").json()["detail"]
        assert "A plus sign is written %2B" in detail
        assert "%2B" not in caller.get("/api/v1/matches?updated_since=yesterday").json()["detail"]
        assert caller.get("/api/v1/matches?updated_since=2026-11-17T03:04:30%2B02:00").status_code == 200

    def test_an_invalid_choice_lists_the_valid_ones(self, caller: Caller) -> None:
        detail = caller.get("/api/v1/matches", {"status": "running"}).json()["detail"]
        assert "upcoming, live, completed, abandoned" in detail


class TestSlashes:
    @pytest.mark.parametrize(
        "path",
        ["/health/live/", "/api/v1/matches/", "/cricket-data/live-matches/", "/api/docs/", "/problems/conflict/"],
    )
    def test_at_the_end_are_allowed(self, caller: Caller, path: str) -> None:
        assert caller.get(path).status_code == 200

    def test_do_not_bypass_authentication(self, anonymous: Client, operator: Caller) -> None:
        assert anonymous.get("/api/v1/matches/").status_code == 401
        assert operator.post("/api/v1/matches/999/pause/").status_code == 404
        assert anonymous.post("/api/v1/nothing").status_code == 404

    @pytest.mark.parametrize("path", ["/api", "/api/"])
    def test_the_root_of_the_api_redirects_to_its_documentation(self, anonymous: Client, path: str) -> None:
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

    def test_of_a_wrong_host_is_not_an_error(self, anonymous: Client, caplog) -> None:
        assert anonymous.get("/api/v1/matches", headers={"Host": "scan.example"}).status_code == 400
        [line] = [record for record in caplog.records if record.name == "django.security.DisallowedHost"]
        assert (line.levelname, line.exc_info) == ("INFO", None)
        assert "scan.example" in line.getMessage()

    def test_of_server_errors_is_a_warning(self, caller: Caller, caplog, monkeypatch) -> None:
        def away(*args, **kwargs):
            raise OperationalError("gone")

        for query in ("compared_columns", "accepted_ids"):
            monkeypatch.setattr(f"scraping.documents.queries.{query}", away)
        caller.get("/api/v1/matches")
        [line] = [record for record in caplog.records if record.name == "victoryline.requests"]
        assert (line.status, line.levelname) == (503, "WARNING")

    def test_replaces_djangos_line_unless_it_has_a_traceback(self) -> None:
        record = logging.makeLogRecord({"name": "django.request", "status_code": 404})
        assert not WithoutDuplicates().filter(record)
        record.exc_info = (ValueError, ValueError("x"), None)
        assert WithoutDuplicates().filter(record)
        assert any(isinstance(each, WithoutDuplicates) for each in logging.getLogger("django.request").filters)


class TestPages:
    def test_people_get_html(self, anonymous: Client) -> None:
        response = anonymous.get("/no/such/page", headers={"Accept": "text/html,*/*;q=0.8"})
        assert response.status_code == 404
        assert response["Content-Type"].startswith("text/html")
        assert "/api/docs" in response.content.decode()

    @pytest.mark.fault
    @pytest.mark.requirement("EC-2")
    @pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/admin/scraping/match/"])
    def test_the_admin_explains_an_unreachable_database(self, admin_client: Client, path: str) -> None:
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
