"""What we promise beyond what schemathesis checks by itself. It loads this file and counts these among its checks."""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import schemathesis

PROBLEM = "application/problem+json"
MEMBERS = ("type", "title", "status", "detail", "instance", "request_id")
# The only ways of being unavailable that a healthy system has.
PROMISED = ("/problems/too-stale", "/problems/insufficient-memory")
ANYTHING: frozenset[str] = frozenset()
# What only the data can say, by operation: which sources, jobs and keys there are, whose cursor this is, and which
# times go together.
DATA_DECIDES: dict[str, AbstractSet[str]] = {
    "list_matches": {"cursor", "date"},
    "list_jobs": {"cursor"},
    "read_match": {"as_of", "sequence"},
    "start_job": {"source", "round", "urls", "Idempotency-Key"},  # HTTP itself trims headers: no pattern is true
    "retry_failed": {"job", "source", "fingerprint"},
    "generate_token": {"api_key"},
    "submit_match": ANYTHING,  # whether a score can be, whether a time is recent
}
NEVER_SAID = ("Traceback", "site-packages", str(Path(__file__).parents[1]), "SELECT ")


def _header(response: Any, name: str) -> str:
    values = response.headers.get(name.lower(), [])
    return values[0] if values else ""


@schemathesis.check
def refusals_are_problems(ctx: Any, response: Any, case: Any) -> None:
    """RFC 9457, whole, and it says nothing of our insides."""
    if response.status_code < 400:
        return
    assert _header(response, "Content-Type") == PROBLEM, _header(response, "Content-Type")
    said = json.loads(response.content)
    assert not [name for name in MEMBERS if name not in said], said
    assert said["status"] == response.status_code
    assert said["request_id"] == _header(response, "X-Request-Id")
    assert not [words for words in NEVER_SAID if words in said["detail"]], said["detail"]


@schemathesis.check
def unavailability_is_promised(ctx: Any, response: Any, case: Any) -> None:
    if response.status_code != 503:
        return
    said = json.loads(response.content)
    assert said["type"] in PROMISED, said
    assert int(_header(response, "Retry-After")) >= 1


@schemathesis.check
def answers_are_guarded(ctx: Any, response: Any, case: Any) -> None:
    """No browser takes an answer for something else, and no cache gives it to another consumer."""
    assert _header(response, "X-Content-Type-Options") == "nosniff"
    assert _header(response, "X-Request-Id")
    assert "Authorization" in _header(response, "Vary") or response.status_code in (404, 405)


@schemathesis.check
def refusals_of_valid_requests_are_about_data(ctx: Any, response: Any, case: Any) -> None:
    """Where the description can't say everything, a 400 is about one of those few things and nothing else."""
    operation = case.operation.definition.raw.get("operationId", "")
    is_valid = case.meta is not None and case.meta.generation.mode.is_positive
    if response.status_code != 400 or not is_valid or operation not in DATA_DECIDES:
        return
    said = json.loads(response.content)
    blamed = {*said.get("invalid", ()), *([said["parameter"]] if "parameter" in said else ())}
    allowed = DATA_DECIDES[operation]
    assert blamed, said
    assert allowed is ANYTHING or blamed <= allowed, said
