"""Risks of the OWASP API Security Top 10 (2023) that tests can show; docs/security.md has the whole table.

Checks that apply to every operation are parametrised over the OpenAPI document, so that new operations are included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from scraping.models import ScrapeJob, ScrapeTask, Submission
from scraping.models.source import PUSHED
from tests.api_fixtures import Caller
from tests.factories import make_match, make_ref, make_source
from victoryline.lib.http.openapi import document
from victoryline.lib.http.problems import MEDIA_TYPE

pytestmark = pytest.mark.django_db
DESCRIPTION: dict[str, Any] = json.loads(document().text)
OPERATIONS = {
    operation["operationId"]: (method, path, operation)
    for path, ways in DESCRIPTION["paths"].items()
    for method, operation in ways.items()
    if operation["tags"] != ["system"]  # open pages: tests/monitoring/test_open_api.py
}
PROTECTED = sorted(name for name, (_, _, each) in OPERATIONS.items() if each.get("security"))
WITH_BODY = sorted(name for name, (_, _, each) in OPERATIONS.items() if "requestBody" in each)
LISTS = sorted(
    name
    for name, (_, _, each) in OPERATIONS.items()
    if any(parameter["name"] == "limit" for parameter in each.get("parameters", ()))
)
A_LOT = 300_000  # bytes; 256 KB are read
SCOPES = ("read", "ingest", "operate")
IDS = {"{job_id}": "1", "{sequence}": "1", "{team_id}": "1", "{submission_id}": "6f1c2a34-5b0e-4a55-9f0b-6a8f6a1d2c3e"}
# Addresses outside the OpenAPI document: pages, and the document itself.
UNDESCRIBED = ("admin/", "api", "api/schema", "api/docs", "problems", "", "^", "static", "match")


@pytest.fixture
def match_id() -> str:
    now = timezone.now()
    return str(make_ref(make_match(now=now), now=now).match_id)


def scope_of(name: str) -> str:
    """Returns the required scope; empty where any key is accepted."""
    (scopes,) = (each["bearer"] for each in OPERATIONS[name][2]["security"])
    return str(scopes[0]) if scopes else ""


def ask(client: Client, name: str, match_id: str, token: str = "", *, body: Any = None, query: str = "") -> Any:
    """Sends a request as the OpenAPI document describes it, with its example."""
    method, path, _ = OPERATIONS[name]
    for place, value in {**IDS, "{match_id}": match_id}.items():
        path = path.replace(place, value)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if method == "get":
        needed = "?since=0" if name == "read_delta" and not query else query
        return client.get(f"{path}{needed}", headers=headers)
    sent = example_of(name) if body is None else body
    return client.generic(method.upper(), path, json.dumps(sent), content_type="application/json", headers=headers)


def example_of(name: str) -> Any:
    content = OPERATIONS[name][2].get("requestBody", {}).get("content", {}).get("application/json", {})
    shown = list(content.get("examples", {}).values())
    return shown[0]["value"] if shown else {}


class TestObjects:
    """API1: broken object level authorization."""

    def test_a_submission_is_hidden_from_other_consumers(self) -> None:
        make_source(PUSHED)
        mine, theirs = (Caller(name=name, scopes=("ingest",)) for name in ("mine", "theirs"))
        sent = {**example_of("submit_match"), "captured_at": timezone.now().isoformat()}
        answer = mine.post("/cricket-data", sent, Idempotency_Key="one")
        assert answer.status_code == 202, answer.json()
        place = f"/cricket-data/submissions/{answer.json()['submission_id']}"
        assert mine.get(place).status_code == 200
        assert theirs.get(place).status_code == 404
        # The same idempotency key of another consumer is independent.
        assert theirs.post("/cricket-data", sent, Idempotency_Key="one").status_code == 202
        assert Submission.objects.count() == 2


@pytest.mark.parametrize("name", WITH_BODY)
class TestProperties:
    """API3: a field that isn't described is refused, wherever there is a body."""

    def test_unknown_ones_are_named_and_refused(self, name: str, match_id: str) -> None:
        caller = Caller(scopes=SCOPES)
        make_source("sofascore")
        answer = ask(caller.client, name, match_id, caller.token, body={**example_of(name), "is_admin": True})
        assert answer.status_code == 400, answer.content
        assert "is_admin" in json.dumps(answer.json()["invalid"])
        assert not ScrapeJob.objects.exists()

    def test_a_body_beyond_the_limit_is_refused_unread(self, name: str, match_id: str) -> None:
        """API4."""
        caller = Caller(scopes=SCOPES)
        answer = ask(caller.client, name, match_id, caller.token, body={"a": "x" * A_LOT})
        assert (answer.status_code, answer["Content-Type"]) == (413, MEDIA_TYPE)


class TestConsumption:
    """API4: unrestricted resource consumption."""

    @pytest.mark.parametrize("name", LISTS)
    @pytest.mark.parametrize("limit", ["0", "101", "-1", "1e9", "99999999999999999999"])
    def test_the_page_size_is_limited(self, name: str, limit: str, match_id: str) -> None:
        caller = Caller(scopes=SCOPES)
        answer = ask(caller.client, name, match_id, caller.token, query=f"?limit={limit}")
        assert (answer.status_code, answer.json()["parameter"]) == (400, "limit")

    def test_the_schema_has_lists(self) -> None:
        assert {"list_matches", "list_events", "list_jobs"} <= set(LISTS)

    def test_nesting_is_limited(self) -> None:
        operator = Caller(scopes=SCOPES)
        deep = '{"urls":' + "[" * 20_000 + "]" * 20_000 + "}"
        headers = {"Authorization": f"Bearer {operator.token}"}
        answer = operator.client.post("/api/scrape", deep, content_type="application/json", headers=headers)
        assert answer.status_code == 400


@pytest.mark.parametrize("name", PROTECTED)
@pytest.mark.requirement("FR-026")
class TestFunctions:
    """API5: every operation, with no token, with tokens of every other scope, and with its own."""

    def test_need_a_token(self, name: str, match_id: str) -> None:
        answer = ask(Client(), name, match_id)
        assert (answer.status_code, answer["Content-Type"]) == (401, MEDIA_TYPE)

    def test_need_the_scope_that_the_description_names(self, name: str, match_id: str) -> None:
        make_source("sofascore")
        make_source(PUSHED)
        for scope in SCOPES:
            caller = Caller(name=scope, scopes=(scope,))
            answer = ask(caller.client, name, match_id, caller.token)
            if scope_of(name) in ("", scope):
                assert answer.status_code not in (401, 403), answer.content
                assert answer.status_code < 500
            else:
                assert (answer.status_code, answer["Content-Type"]) == (403, MEDIA_TYPE)
                assert f'"{scope_of(name)}"' in answer.json()["detail"]


STRANGERS = (
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.1:6379/",
    "http://[::1]:5432/",
    "http://0x7f000001/",
    "file:///etc/passwd",
    "gopher://sofascore.example/1",
    "https://sofascore.example@evil.example/en/football/match/a-b/GOsuO#id:1",
    "https://sofascore.example.evil.example/en/football/match/a-b/GOsuO#id:1",
    "https://evil.example/?u=https://sofascore.example/en/football/match/a-b/GOsuO#id:1",
    "https://sofascore.example:6379/en/football/match/a-b/GOsuO#id:15000001",
    "//evil.example/en/football/match/a-b/GOsuO#id:1",
    "javascript:alert(1)",
    "https://sofascore.example\\@evil.example/en/football/match/a-b/GOsuO#id:1",
    "https://sofascore.example\r\nHost: evil.example/en/football/match/a-b/GOsuO#id:1",
)


class TestAddresses:
    """API7: only the configured sources are requested."""

    @pytest.mark.parametrize("url", STRANGERS)
    def test_of_unknown_hosts_are_refused_before_anything_is_written(self, operator: Caller, url: str) -> None:
        make_source("sofascore")
        answer = operator.post("/api/scrape", {"urls": [url]})
        assert (answer.status_code, list(answer.json()["invalid"])) == (400, ["urls"])
        assert not ScrapeJob.objects.exists()
        assert not ScrapeTask.objects.exists()


GUARDS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class TestConfiguration:
    """API8."""

    def guarded(self, answer: Any) -> None:
        assert {name: answer.headers.get(name) for name in GUARDS} == GUARDS
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
        assert answer["X-Request-Id"]
        for name in ("Server", "X-Powered-By", "Set-Cookie"):
            assert name not in answer.headers

    @pytest.mark.parametrize("name", sorted(OPERATIONS))
    def test_every_response_has_security_headers(self, name: str, match_id: str) -> None:
        caller = Caller(scopes=SCOPES)
        refusal, answer = ask(Client(), name, match_id), ask(caller.client, name, match_id, caller.token)
        for each in (refusal, answer):
            self.guarded(each)
        assert refusal["Cache-Control"] == "no-store"
        assert "public" not in answer.get("Cache-Control", "")
        assert "Authorization" in answer["Vary"] or name == "generate_token"

    @pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/schema", "/api/docs", "/health", "/", "/nothing"])
    def test_every_open_page_has_security_headers(self, path: str) -> None:
        self.guarded(Client().get(path))

    @pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PATCH", "PUT", "DELETE", "PROPFIND", "X" * 50])
    def test_other_methods_are_refused(self, caller: Caller, method: str) -> None:
        headers = {"Authorization": f"Bearer {caller.token}"}
        answer = caller.client.generic(
            method, "/api/v1/matches", "{}", content_type="application/json", headers=headers
        )
        assert (answer.status_code, answer["Content-Type"]) == (405, MEDIA_TYPE)
        assert "GET" in answer["Allow"]

    def test_no_developer_setting_is_enabled(self) -> None:
        assert not settings.DEBUG
        assert not [app for app in settings.INSTALLED_APPS if "debug" in app]
        assert "*" not in settings.CONFIG.allowed_hosts


class TestInventory:
    """API9: the OpenAPI document has exactly the served addresses."""

    def test_every_address_is_described_or_an_exception(self) -> None:
        described = {_plain(path.lstrip("/")) for path in DESCRIPTION["paths"]}
        served = {_plain(path) for path in _served(get_resolver().url_patterns)}
        assert described <= served
        hidden = {path for path in served - described if not path.startswith(UNDESCRIBED[0]) and not _is_known(path)}
        assert hidden == set()

    def test_one_version_is_served(self) -> None:
        versions = {path.split("/")[2] for path in DESCRIPTION["paths"] if path.startswith("/api/v")}
        assert versions == {"v1"}
        assert DESCRIPTION["info"]["version"] == settings.SPECTACULAR_SETTINGS["VERSION"]


def _served(patterns: list[Any], before: str = "") -> Iterator[str]:
    for each in patterns:
        place = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from _served(each.url_patterns, place)
        elif isinstance(each, URLPattern):
            yield place


def _plain(path: str) -> str:
    """`<str:match_id>` and `{match_id}` are one."""
    return "/".join("*" if part.startswith(("<", "{")) else part for part in path.split("/"))


def _is_known(path: str) -> bool:
    return any(path == known or (known and path.startswith((f"{known}/", known + "("))) for known in UNDESCRIBED) or (
        path.startswith("^")
    )
