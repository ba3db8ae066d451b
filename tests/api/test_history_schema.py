"""Reads of earlier states answer as the OpenAPI document describes them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import jsonschema
import pytest
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from tests.api_fixtures import Caller
from tests.factories import make_ref, make_unread_match
from tests.scraping.builders import balls, chasing, payload_of, read


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return SchemaGenerator().get_schema(request=None, public=True)


def check(schema: dict[str, Any], name: str, document: Any) -> None:
    jsonschema.validate(
        json.loads(json.dumps(document)), {"$ref": f"#/components/schemas/{name}", "components": schema["components"]}
    )


@pytest.mark.django_db
def test_answers_match_the_schema(caller: Caller, schema: dict[str, Any]) -> None:
    ref = make_ref(make_unread_match(), captured_at=None)
    began = timezone.now() - timedelta(minutes=1)
    for number, runs in enumerate((90, 91, 89)):  # the last one is still provisional
        at = began + timedelta(seconds=10 * number)
        read(ref, payload_of(ref, chasing(runs), at=at, events=balls(number + 1)))
    address = f"/api/v1/matches/{ref.match_id}"
    for name, rest in (
        ("MatchDelta", "/delta"),
        ("MatchDelta", "/delta?since=1"),
        ("MatchDelta", "/delta?since=2"),
        ("SnapshotList", "/snapshots"),
        ("SnapshotDocument", "/snapshots/1"),
        ("MatchDocument", "?sequence=1&include=provenance"),
        ("MatchDocument", "?include=provenance,provisional,readings"),
        ("MatchConflicts", "/conflicts"),
        ("Problem", "/snapshots/99"),
        ("Problem", "/delta?since=99"),
        ("Problem", "?as_of=2000-01-01T00:00:00Z"),
    ):
        check(schema, name, caller.get(address + rest).json())


@pytest.mark.parametrize(
    ("path", "operation", "codes"),
    [
        ("/api/v1/matches/{match_id}", "read_match", {"200", "304", "400", "404", "410", "503"}),
        ("/api/v1/matches/{match_id}/delta", "read_delta", {"200", "304", "400", "404", "409", "410", "503"}),
        ("/api/v1/matches/{match_id}/snapshots", "list_snapshots", {"200", "304", "400", "404", "503"}),
        ("/api/v1/matches/{match_id}/snapshots/{sequence}", "read_snapshot", {"200", "304", "404", "410", "503"}),
    ],
)
def test_operations_keep_their_names_and_name_their_answers(
    schema: dict[str, Any], path: str, operation: str, codes: set[str]
) -> None:
    described = schema["paths"][path]["get"]
    assert described["operationId"] == operation
    assert codes <= described["responses"].keys()
