"""The description of the open pages: their answers conform to it, and it names every field of /health."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from django.test import Client

from tests.monitoring.rows import make_watched
from victoryline.lib.http.openapi import document

pytestmark = pytest.mark.django_db
DESCRIPTION: dict[str, Any] = json.loads(document().text)
PAGES = {
    path: ways["get"] for path, ways in DESCRIPTION["paths"].items() if ways.get("get", {}).get("tags") == ["system"]
}


def test_every_page_for_programs_is_described() -> None:
    assert PAGES.keys() == {"/health", "/health/live", "/health/ready", "/status", "/metrics"}
    for path, page in PAGES.items():
        assert page["security"] == [], path
        assert len(page["description"]) > 10, path


@pytest.mark.requirement("FR-012", "DM-3")
@pytest.mark.parametrize("path", PAGES)
def test_answers_conform_to_the_description(client: Client, path: str) -> None:
    make_watched()
    answer = client.get(path)
    ((kind, promised),) = PAGES[path]["responses"][str(answer.status_code)]["content"].items()
    assert answer["Content-Type"].partition(";")[0] == kind
    if kind == "application/json":
        found = answer.json()
        jsonschema.validate(found, promised["schema"])
        if path == "/status":  # the description names the most important fields
            fields = promised["schema"]["properties"]
            assert fields.keys() - {"scores_are_hidden"} <= found.keys()
            assert all(name in fields["freshness_stats"]["description"] for name in found["freshness_stats"])
        else:
            assert found.keys() <= promised["schema"]["properties"].keys()


def test_refusals_conform_to_the_description(client: Client) -> None:
    answer = client.get("/metrics", REMOTE_ADDR="203.0.113.9")
    ((kind, promised),) = PAGES["/metrics"]["responses"]["401"]["content"].items()
    assert answer["Content-Type"] == kind
    jsonschema.validate(answer.json(), {**promised["schema"], "components": DESCRIPTION["components"]})
