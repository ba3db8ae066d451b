"""The OpenAPI document: complete, without warnings, correct, and committed as it is served."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import jsonschema
import pytest
from django.core.management import call_command
from django.utils import timezone
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from scripts import schema as script
from tests.api_fixtures import Caller
from tests.factories import make_event, make_match, make_ref, make_scraper, make_source, make_unread_match
from tests.scraping.rounds import url_of
from victoryline.lib.http import openapi
from victoryline.lib.http.openapi import EXAMPLES, LINKS
from victoryline.lib.http.problems import MEDIA_TYPE

Schema = dict[str, Any]


@pytest.fixture(scope="module")
def schema() -> Schema:
    return json.loads(json.dumps(SchemaGenerator().get_schema(request=None, public=True)))


@pytest.fixture(scope="module")
def operations(schema: Schema) -> dict[str, Schema]:
    return {each["operationId"]: each for each in operations_of(schema)}


def operations_of(schema: Schema) -> Iterator[Schema]:
    """Yields the operations of the API; the open pages are in tests/monitoring/test_open_api.py."""
    for ways in schema["paths"].values():
        yield from (each for each in ways.values() if each["tags"] != ["system"])


def check(schema: Schema, name: str, document: Any) -> None:
    """Validates `document` against the component `name`."""
    conforms(schema, {"$ref": f"#/components/schemas/{name}"}, document)


def conforms(schema: Schema, promised: Schema, document: Any) -> None:
    jsonschema.validate(json.loads(json.dumps(document)), {**promised, "components": schema["components"]})


def contents_of(operation: Schema) -> Iterator[tuple[str, Schema]]:
    """Yields every request and response body with its place."""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"body {kind}", content
    for code, answer in operation["responses"].items():
        for kind, content in answer.get("content", {}).items():
            yield f"{code} {kind}", content


class TestDescription:
    def test_is_valid_and_generated_without_warnings(self, tmp_path) -> None:
        GENERATOR_STATS.reset()
        call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "schema.yaml"))

    def test_passes_the_openapi_validator(self, schema: Schema) -> None:
        assert schema["openapi"] == "3.1.0"
        validate_schema(schema)

    def test_explains_every_operation(self, schema: Schema, operations: dict[str, Schema]) -> None:
        assert len(operations) == len(list(operations_of(schema))) >= 16
        described = {tag["name"] for tag in schema["tags"]} - {"system"}
        for name, operation in operations.items():
            assert operation["summary"], name
            assert len(operation["description"]) > 20, name
            assert set(operation["tags"]) <= described, name

    def test_names_the_required_scopes(self, operations: dict[str, Schema]) -> None:
        for name, operation in operations.items():
            if name == "generate_token":
                assert not operation.get("security")
            else:
                (needed,) = (each["bearer"] for each in operation["security"])
                assert needed in ([["read"], ["ingest"], ["operate"]] if name != "usage" else [[]]), name

    def test_lists_every_refusal(self, operations: dict[str, Schema]) -> None:
        for name, operation in operations.items():
            codes = set(operation["responses"])
            assert {"401", "429"} <= codes, name
            assert ("403" in codes) == (name not in {"generate_token", "usage"}), name
            assert "requestBody" not in operation or {"400", "413", "415"} <= codes, name
            for code in codes:
                if int(code) >= 400:
                    assert set(operation["responses"][code]["content"]) == {MEDIA_TYPE}, (name, code)

    def test_has_an_example_for_every_body(self, operations: dict[str, Schema]) -> None:
        bare = [
            f"{name} {where}"
            for name, operation in operations.items()
            for where, content in contents_of(operation)
            if not content.get("examples")
        ]
        assert bare == []

    def test_its_examples_match_its_schemas(self, schema: Schema, operations: dict[str, Schema]) -> None:
        seen = 0
        for name, operation in operations.items():
            for where, content in contents_of(operation):
                for example in content.get("examples", {}).values():
                    try:
                        conforms(schema, content["schema"], example["value"])
                    except jsonschema.ValidationError as error:
                        pytest.fail(f"the example of {name}, {where}: {error.message} at {error.json_path}")
                    seen += 1
        assert seen > 100

    def test_names_the_headers_of_every_answer(self, operations: dict[str, Schema]) -> None:
        for name, operation in operations.items():
            for code, answer in operation["responses"].items():
                assert {"X-Request-Id", "X-RateLimit-Remaining"} <= answer["headers"].keys(), (name, code)
                assert ("Retry-After" in answer["headers"]) == (code in {"429", "503"}), (name, code)
                assert ("WWW-Authenticate" in answer["headers"]) == (code == "401"), (name, code)

    def test_names_the_headers_of_the_age(self, operations: dict[str, Schema]) -> None:
        for name in ("list_matches", "read_match", "list_events", "read_match_info", "list_live_matches"):
            headers = operations[name]["responses"]["200"]["headers"]
            promised = {"X-Data-Freshness", "X-Data-Age-Seconds", "X-Data-State", "X-Next-Update-In", "ETag"}
            assert promised | {"Cache-Control", "Last-Modified"} <= headers.keys(), name

    def test_its_references_resolve(self, schema: Schema) -> None:
        for reference in set(references(schema)):
            node: Any = schema
            for part in reference.removeprefix("#/").split("/"):
                node = node[part]

    @pytest.mark.parametrize("link", LINKS, ids=lambda link: f"{link.of}-{link.to}")
    def test_its_links_resolve(self, operations: dict[str, Schema], link: Any) -> None:
        linked = operations[link.of]["responses"][link.status]["links"]
        described = {"operationId": link.to, "parameters": link.parameters, "description": link.description}
        assert described in linked.values()
        taken = {each["name"] for each in operations[link.to]["parameters"]}
        assert link.parameters.keys() <= taken


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for each in node.values():
            yield from references(each)
    elif isinstance(node, list):
        for each in node:
            yield from references(each)


class TestFile:
    def test_the_committed_document_is_the_served_one(self, schema: Schema) -> None:
        moved = script.difference(script.written(), schema)
        assert not moved, moved

    def test_is_written_in_sorted_order(self) -> None:
        assert script.DOCUMENT.read_text(encoding="utf-8") == script.text(script.written())


@pytest.mark.django_db
class TestPages:
    def test_schema_and_documentation_need_no_token(self, anonymous) -> None:
        assert anonymous.get("/api/schema").json()["openapi"] == "3.1.0"
        page = anonymous.get("/api/docs")
        assert page.status_code == 200
        assert b"swagger-ui" in page.content
        assert b"cdn.jsdelivr" not in page.content

    def test_concurrent_first_requests_get_the_whole_document(self) -> None:
        """Two generators at once disturb each other: the first requests got a 500."""
        openapi._document.cache_clear()
        with ThreadPoolExecutor(4) as crowd:
            made = [each.result() for each in [crowd.submit(openapi.document) for _ in range(4)]]
        assert len(set(made)) == 1


@pytest.mark.django_db
@pytest.mark.both
class TestTruth:
    """Real responses conform to the schema."""

    @pytest.fixture(params=["cricket", "football", "upcoming", "unread"])
    def match(self, request: pytest.FixtureRequest) -> Any:
        now = timezone.now()
        if request.param == "unread":
            return make_unread_match(now=now)
        fields = {"status": "upcoming"} if request.param == "upcoming" else {"sport": request.param}
        ref = make_ref(make_match(now=now - timedelta(seconds=1), **fields), now=now)
        make_scraper(ref, now=now)
        make_event(ref.match, now=now, happened_at=now, detail={"batter": "Smith"})
        return ref.match

    def test_of_reads(self, caller: Caller, schema: Schema, match: Any) -> None:
        check(schema, "MatchDocument", caller.get(f"/api/v1/matches/{match.pk}").json())
        check(schema, "MatchList", caller.get("/api/v1/matches").json())
        check(schema, "EventFeed", caller.get(f"/api/v1/matches/{match.pk}/events").json())
        check(schema, "MatchConflicts", caller.get(f"/api/v1/matches/{match.pk}/conflicts").json())
        check(schema, "MatchDocument", caller.get(f"/api/v1/matches/{match.pk}?include=provenance").json())
        check(schema, "LiveMatches", caller.get("/cricket-data/live-matches").json())
        if match.sport == "cricket":
            check(schema, "MatchInfo", caller.get(f"/cricket-data/match-info/{match.pk}").json())

    def test_of_operations_and_problems(self, operator: Caller, schema: Schema, match: Any) -> None:
        check(schema, "LifecycleAnswer", operator.post(f"/api/v1/matches/{match.pk}/pause").json())
        check(schema, "LifecycleAnswer", operator.post(f"/api/v1/matches/{match.pk}/resume").json())
        check(schema, "Problem", operator.post(f"/api/v1/matches/{match.pk}/resume").json())

    def test_of_jobs(self, operator: Caller, schema: Schema) -> None:
        make_source("sofascore")
        for asked in (EXAMPLES["start_job"]["request"]["a round"], {"urls": [url_of("15000001")]}):
            check(schema, "JobDocument", operator.post("/api/scrape", asked).json())
        check(schema, "JobList", operator.get("/api/scrape/jobs").json())
        check(schema, "RetryAnswer", operator.post("/api/scrape/retry-failed", {"source": "sofascore"}).json())
