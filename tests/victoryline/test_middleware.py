"""API requests skip the middleware of pages and keep the checks and headers that they need."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.test import Client
from prometheus_client import REGISTRY

from tests.api_fixtures import Caller
from tests.factories import make_match, make_ref

pytestmark = pytest.mark.django_db


@pytest.fixture
def caller(settings: LazySettings) -> Caller:
    settings.ACCESS_LOG_IS_SYNCHRONOUS = True
    return Caller()


def count(view: str, status: str) -> float:
    name = "django_http_responses_total_by_status_view_method_total"
    return REGISTRY.get_sample_value(name, {"status": status, "view": view, "method": "GET"}) or 0.0


class TestApiRequests:
    def test_set_no_cookie_and_start_no_session(self, caller: Caller) -> None:
        answer = caller.get("/api/v1/matches")
        assert answer.status_code == 200
        assert not answer.cookies
        assert not hasattr(answer.wsgi_request, "session")

    def test_a_console_session_does_not_authenticate_api_requests(self, admin_client: Client) -> None:
        assert admin_client.get("/api/v1/matches").status_code == 401

    @pytest.mark.parametrize(
        "address", ["/api/v1/matches", "/api/v1/nothing", "/cricket-data/match-info/9", "/token/x"]
    )
    def test_carry_security_headers(self, caller: Caller, address: str) -> None:
        answer = caller.get(address)
        assert answer["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["X-Frame-Options"] == "DENY"
        assert int(answer["Content-Length"]) == len(answer.content)

    def test_refuse_an_unknown_host(self, caller: Caller) -> None:
        answer = caller.get("/api/v1/matches", Host="evil.example")
        assert answer.status_code == 400
        assert answer["Content-Type"] == "application/problem+json"

    def test_are_counted_by_view_and_status(self, caller: Caller) -> None:
        match = make_match()
        make_ref(match)
        before = count("match", "200"), count("match", "404")
        caller.get(f"/api/v1/matches/{match.pk}")
        caller.get("/api/v1/matches/999999")
        assert (count("match", "200") - before[0], count("match", "404") - before[1]) == (1, 1)


class TestPages:
    def test_keep_form_tokens_and_login(self, settings: LazySettings) -> None:
        strict = Client(enforce_csrf_checks=True)
        assert strict.get("/admin/").status_code == 302
        assert strict.post("/admin/login/", {"username": "x", "password": "y"}).status_code == 403
        page = strict.get("/admin/login/")
        assert "csrftoken" in page.cookies
        assert "frame-ancestors 'none'" in page["Content-Security-Policy"]

    @pytest.mark.parametrize("address", ["/health", "/status"])
    def test_of_the_system_keep_security_headers_on_refusals(self, address: str) -> None:
        refused = Client().generic("TRACE", address)
        assert (refused.status_code, refused["Content-Type"]) == (405, "application/problem+json")
        assert (refused["Allow"], refused["X-Content-Type-Options"]) == ("GET, HEAD", "nosniff")
        assert refused["X-Frame-Options"] == "DENY"

    def test_serve_static_files(self) -> None:
        found = Client().get("/static/victoryline/console.css")
        assert (found.status_code, b"".join(found.streaming_content)[:2] != b"") == (200, True)
        found.close()
