"""Valid and invalid requests, single ones and sequences: every response conforms to the OpenAPI document.

schemathesis against a real web process, with all its checks and ours. `make fuzz` does the same for as long as you
like.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzzing import PHASES, Target, fuzz, target
from tests.patience import stretched

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.fault_number(25), pytest.mark.requirement("BX-22")]
SEED = 20251122
QUIET = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with target(tmp_path_factory.mktemp("fuzz")) as found:
        yield found


@pytest.mark.requirement("FR-026")
def test_every_response_conforms_to_the_schema(running: Target, tmp_path: Path) -> None:
    """Without submissions: covering their body takes a minute, which only `make fuzz` spends."""
    outcome = fuzz(running, tmp_path, seed=SEED, examples=4, more=("--exclude-operation-id", "submit_match"))
    assert outcome.is_clean, outcome.said[-20_000:]
    for phase in PHASES:
        assert re.search(rf"✅ +{phase}", outcome.said, re.IGNORECASE), f"{phase} did not run:\n{outcome.said[-3000:]}"
    covered = re.search(r"API Links: +(\d+) covered", outcome.said)
    assert covered, outcome.said[-3000:]
    assert int(covered[1]) >= 2, outcome.said[-3000:]
    assert running.failures() == []


def test_no_header_causes_a_server_error(running: Target) -> None:
    text = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=80)

    @QUIET
    @given(authorization=text, etag=text, request_id=text, forwarded=text, key=text)
    def send(authorization: str, etag: str, request_id: str, forwarded: str, key: str) -> None:
        headers = {"If-None-Match": etag, "X-Request-Id": request_id, "X-Forwarded-For": forwarded, "X-API-Key": key}
        for bearer in (f"Bearer {running.token}", authorization):
            assert _status(running, "GET", "/api/v1/matches", {**headers, "Authorization": bearer}) < 500
        assert _status(running, "POST", "/token/generate-token", headers) < 500

    send()
    assert running.failures() == []


def _status(running: Target, method: str, path: str, headers: dict[str, str]) -> int:
    """Sends headers as raw bytes, as any client can."""
    connection = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=stretched(30))
    try:
        connection.putrequest(method, path)
        for name, value in headers.items():
            connection.putheader(name, value.encode("latin-1"))
        connection.putheader("Content-Length", "0")
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()
