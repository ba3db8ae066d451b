"""Request tracing: one line with request and answer, by the configured level, without secrets."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apiauth import authentication
from tests.api_fixtures import Caller
from tests.factories import make_match, make_ref
from victoryline.lib.http import request_log

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("NFR-020")]


@pytest.fixture
def traced(caplog: pytest.LogCaptureFixture, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the level and returns the traced lines."""
    caplog.set_level(logging.INFO, "victoryline.requests")

    class Traced:
        def __call__(self) -> list[Any]:
            return [each for each in caplog.records if getattr(each, "action", "") == "request_traced"]

        def level(self, trace: str, slow_ms: int = 500) -> None:
            settings.CONFIG = settings.CONFIG.model_copy(update={"request_trace": trace})
            monkeypatch.setattr(request_log, "SLOW_SECONDS", slow_ms / 1000)

    return Traced()


class TestLevels:
    @pytest.mark.parametrize(
        ("level", "slow_ms", "paths"),
        [
            ("none", 1, []),
            ("refused", 1, ["/api/v1/nothing"]),
            ("slow", 600_000, ["/api/v1/nothing"]),
            ("slow", 0, ["/api/v1/matches", "/api/v1/nothing"]),
            ("all", 600_000, ["/api/v1/matches", "/api/v1/nothing"]),
        ],
    )
    def test_choose_the_requests_that_are_logged(
        self, caller: Caller, traced: Any, level: str, slow_ms: int, paths: list[str]
    ) -> None:
        traced.level(level, slow_ms)
        caller.get("/api/v1/matches")
        caller.get("/api/v1/nothing")
        caller.client.get("/health/live")
        assert [line.path for line in traced()] == paths

    def test_log_one_of_many_throttled_requests(
        self, caller: Caller, traced: Any, monkeypatch: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        traced.level("refused")
        caller.key.consumer.tier, caller.key.consumer.requests_per_minute = "custom", 1
        caller.key.consumer.save()
        authentication.forget()
        assert [caller.get("/api/v1/matches").status_code for _ in range(5)] == [200, 429, 429, 429, 429]
        assert len([each for each in caplog.records if each.name == "victoryline.requests"]) == 1
        monkeypatch.setattr(request_log, "QUIET_SECONDS", 0)
        caller.get("/api/v1/matches")
        assert [vars(line).get("left_out") for line in traced()] == [None, 3]


class TestLine:
    def test_has_request_and_response(self, caller: Caller, traced: Any) -> None:
        traced.level("all")
        ref = make_ref(make_match())
        answer = caller.get(f"/api/v1/matches/{ref.match_id}", {"include": "provenance"}, X_Request_Id="mine")
        (line,) = traced()
        assert (line.request_id, line.method, line.status, line.route) == ("mine", "GET", 200, "match")
        assert (line.consumer_id, line.key_prefix) == (caller.key.consumer_id, caller.key.prefix)
        assert line.query == "include=provenance"
        assert line.response_bytes == len(answer.content)
        assert (line.data_state, str(int(line.data_age_seconds))) == (
            answer["X-Data-State"],
            answer["X-Data-Age-Seconds"],
        )
        assert line.response_headers["ETag"] == answer["ETag"]
        assert line.ms > 0

    def test_names_the_problem(self, anonymous: Client, traced: Any) -> None:
        traced.level("refused")
        anonymous.get("/api/v1/matches")
        anonymous.post("/token/generate-token", {"api_key": "vl_x"}, content_type="application/json")
        lines = traced()
        assert [(line.status, line.problem) for line in lines] == [(401, "unauthorized")] * 2
        assert [line.request_bytes for line in lines] == [0, 19]

    def test_is_the_only_one_of_a_refused_request(
        self, anonymous: Client, traced: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        traced.level("refused")
        anonymous.get("/api/v1/matches")
        assert len([each for each in caplog.records if each.name == "victoryline.requests"]) == 1

    def test_of_a_server_error_is_a_warning(self, caller: Caller, traced: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr("apiauth.api.usage_view._stored", lambda *_: 1 / 0)
        traced.level("refused")
        caller.get("/api/v1/usage")
        (line,) = traced()
        assert (line.status, line.levelname, line.problem) == (500, "WARNING", "internal-error")

    @pytest.mark.parametrize("level", ["refused", "none"])
    def test_of_data_older_than_max_age_is_no_warning(
        self, caller: Caller, traced: Any, caplog: pytest.LogCaptureFixture, monkeypatch: Any, level: str
    ) -> None:
        traced.level(level)
        ref = make_ref(make_match(now=timezone.now() - timedelta(seconds=5)))
        assert caller.get(f"/api/v1/matches/{ref.match_id}", {"max_age": 1})["X-Data-State"] == "fresh"
        (line,) = [each for each in caplog.records if each.name == "victoryline.requests"]
        assert (line.levelname, vars(line)["status"]) == ("INFO", 503)

    def test_has_no_secret_in_it(self, caller: Caller, traced: Any) -> None:
        traced.level("all")
        secret = "s3cr3t-" + "x" * 20
        caller.client.cookies["sessionid"] = secret
        query = {"api_key": caller.issued.text, "access_token": secret, "password": secret}
        caller.get("/api/v1/matches", query, X_API_Key=caller.issued.text, Proxy_Authorization=f"Basic {secret}")
        body = {"api_key": caller.issued.text}
        caller.client.post("/token/generate-token", body, content_type="application/json")
        logged = json.dumps([vars(line) for line in traced()], default=str)
        assert len(traced()) == 2
        for hidden in (secret, caller.token, caller.issued.text[-43:]):
            assert hidden not in logged
        assert caller.key.prefix in logged

    def test_survives_unprintable_input(self, anonymous: Client, traced: Any) -> None:
        traced.level("all")
        anonymous.get("/api/v1/matches?" + "a=%00%ED%A0%80&" * 200, headers={"X-Odd": "\x07" * 3000})
        (line,) = traced()
        assert json.dumps(line.query).isascii()
        assert len(line.request_headers["X-Odd"]) <= request_log.LONGEST_VALUE

    def test_a_failed_log_line_does_not_fail_the_request(
        self, caller: Caller, traced: Any, monkeypatch: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(request_log, "_query", lambda _: 1 / 0)
        traced.level("all")
        assert caller.get("/api/v1/matches").status_code == 200
        assert "trace_failed" in [getattr(each, "action", "") for each in caplog.records]
