"""Additional checks for schemathesis, which loads this file."""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import schemathesis

PROBLEM = "application/problem+json"
MEMBERS = ("type", "title", "status", "detail", "instance", "request_id")
# The only 503 problems of a healthy system.
PROMISED = ("/problems/too-stale", "/problems/insufficient-memory")
ANYTHING: frozenset[str] = frozenset()
# Parameters whose validity depends on data, by operation: existing sources, jobs and keys, cursors, and times
# that belong together.
DATA_DECIDES: dict[str, AbstractSet[str]] = {
    "list_matches": {"cursor", "date"},
    "list_teams": {"cursor"},
    "read_deltas": {"since", "date", "status"},
    "list_jobs": {"cursor"},
    "read_match": {"as_of", "sequence"},
    "start_job": {"source", "round", "urls", "Idempotency-Key"},  # HTTP trims headers: no pattern can describe them
    "retry_failed": {"job", "source", "fingerprint"},
    "generate_token": {"api_key"},
    "submit_match": ANYTHING,  # whether a score is possible, whether a time is recent
}
NEVER_SAID = ("Traceback", "site-packages", str(Path(__file__).parents[1]), "SELECT ")


def _is_open_page(case: Any) -> bool:
    """Health, status and metrics: no problem document for "down", and no token that an answer could depend on."""
    return bool(case.operation.definition.raw.get("tags") == ["system"])


def _header(response: Any, name: str) -> str:
    values = response.headers.get(name.lower(), [])
    return values[0] if values else ""


@schemathesis.check
def refusals_are_problems(ctx: Any, response: Any, case: Any) -> None:
    """Refusals are complete RFC 9457 problems without internal details."""
    if response.status_code < 400 or (response.status_code == 503 and _is_open_page(case)):
        return
    assert _header(response, "Content-Type") == PROBLEM, _header(response, "Content-Type")
    said = json.loads(response.content)
    assert not [name for name in MEMBERS if name not in said], said
    assert said["status"] == response.status_code
    assert said["request_id"] == _header(response, "X-Request-Id")
    assert not [words for words in NEVER_SAID if words in said["detail"]], said["detail"]


@schemathesis.check
def unavailability_is_promised(ctx: Any, response: Any, case: Any) -> None:
    if response.status_code != 503 or _is_open_page(case):
        return
    said = json.loads(response.content)
    assert said["type"] in PROMISED, said
    assert int(_header(response, "Retry-After")) >= 1


@schemathesis.check
def answers_are_guarded(ctx: Any, response: Any, case: Any) -> None:
    """Responses have the headers against content sniffing and shared caching."""
    assert _header(response, "X-Content-Type-Options") == "nosniff"
    assert _header(response, "X-Request-Id")
    is_for_all = response.status_code in (404, 405) or _is_open_page(case)
    assert is_for_all or "Authorization" in _header(response, "Vary")


@schemathesis.check
def refusals_of_valid_requests_are_about_data(ctx: Any, response: Any, case: Any) -> None:
    """A 400 for a schema-valid request must be about one of the data-dependent parameters."""
    operation = case.operation.definition.raw.get("operationId", "")
    is_valid = case.meta is not None and case.meta.generation.mode.is_positive
    if response.status_code != 400 or not is_valid or operation not in DATA_DECIDES:
        return
    said = json.loads(response.content)
    blamed = {*said.get("invalid", ()), *([said["parameter"]] if "parameter" in said else ())}
    allowed = DATA_DECIDES[operation]
    assert blamed, said
    assert allowed is ANYTHING or blamed <= allowed, said
