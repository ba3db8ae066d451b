"""Whatever is sent, by the description or against it: never a 5xx but the 503 that we promise."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from apiauth import rate_limit
from scraping.models import Match
from tests.api_fixtures import Caller
from tests.factories import make_event, make_match, make_ref

pytestmark = [pytest.mark.slow, pytest.mark.scaled, pytest.mark.fault, pytest.mark.requirement("BX-22")]
CHECKS = [not_a_server_error, response_schema_conformance, content_type_conformance]
QUIET = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def held_connection() -> Iterator[None]:
    """Requests through WSGI would close the connection that the test's transaction is on."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def world(operator: Caller, held_connection: None, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """A few matches, and nobody in the way of many requests."""
    monkeypatch.setattr(rate_limit, "tier_limit", lambda tier: 1_000_000)
    monkeypatch.setattr("apiauth.drf.tier_limit", lambda tier: 1_000_000)
    monkeypatch.setattr("apiauth.api.views.FAILURES_PER_MINUTE", 1_000_000)
    now = timezone.now()
    for sport, site in (("cricket", "crex"), ("football", "sofascore")):
        match = make_ref(make_match(sport=sport, now=now), source=site, now=now).match
        make_event(match, source=site, now=now)
    return operator


def operations() -> list[Any]:
    loaded = schemathesis.openapi.from_wsgi("/api/schema", get_wsgi_application())
    return [result.ok() for result in loaded.get_all_operations()]


@pytest.mark.django_db
def test_no_request_breaks_the_api(world: Caller) -> None:
    seen: set[int] = set()
    for operation, mode, path in _ways(operations()):

        @QUIET
        @given(case=operation.as_strategy(generation_mode=mode, path_parameters=path))
        def send(case: Any) -> None:
            response = case.call(headers={"Authorization": f"Bearer {world.token}"})
            seen.add(response.status_code)
            if response.status_code == 503:
                assert response.json()["type"] == "/problems/too-stale"
            else:
                case.validate_response(response, checks=CHECKS)

        send()
    assert {200, 400, 401, 404, 409} <= seen


def _ways(found: list[Any]) -> Iterator[tuple[Any, schemathesis.GenerationMode, dict[str, str] | None]]:
    """Every operation, by its description and against it, with ids that are made up and one that exists."""
    assert len(found) >= 8
    for operation in found:
        for mode in schemathesis.GenerationMode:
            yield operation, mode, None
            if "{match_id}" in operation.path:
                yield operation, mode, {"match_id": str(Match.objects.filter(sport="cricket").get().pk)}


@pytest.mark.django_db
def test_no_header_breaks_the_api(world: Caller) -> None:
    text = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=80)

    @QUIET
    @given(authorization=text, etag=text, request_id=text, forwarded=text, key=text)
    def send(authorization: str, etag: str, request_id: str, forwarded: str, key: str) -> None:
        headers = {"If-None-Match": etag, "X-Request-Id": request_id, "X-Forwarded-For": forwarded, "X-API-Key": key}
        for bearer in (f"Bearer {world.token}", authorization):
            response = world.client.get("/api/v1/matches", headers={**headers, "Authorization": bearer})
            assert response.status_code < 500
        assert world.client.post("/token/generate-token", headers=headers).status_code < 500

    send()
