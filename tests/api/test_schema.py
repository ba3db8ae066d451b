"""The API's own description: complete, without warnings, and true."""

import json
from datetime import timedelta
from typing import Any

import jsonschema
import pytest
from django.core.management import call_command
from django.utils import timezone
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from scraping.api import conflict_documents, examples, job_examples, lineup_documents
from tests.api_fixtures import Caller
from tests.factories import make_event, make_match, make_ref, make_scraper, make_source, make_unread_match
from tests.scraping.rounds import url_of


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return SchemaGenerator().get_schema(request=None, public=True)


def check(schema: dict[str, Any], name: str, document: Any) -> None:
    """`document` is what the component `name` promises."""
    jsonschema.validate(
        json.loads(json.dumps(document)), {"$ref": f"#/components/schemas/{name}", "components": schema["components"]}
    )


class TestDescription:
    def test_is_valid_and_made_without_warnings(self, tmp_path) -> None:
        GENERATOR_STATS.reset()
        call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "schema.yaml"))

    def test_passes_the_openapi_validator(self, schema: dict[str, Any]) -> None:
        validate_schema(schema)

    def test_every_operation_is_explained(self, schema: dict[str, Any]) -> None:
        operations = [way for path in schema["paths"].values() for way in path.values()]
        assert len(operations) >= 8
        for operation in operations:
            assert operation["summary"]
            assert operation["description"]
            assert "401" in operation["responses"]

    @pytest.mark.parametrize(
        ("name", "example"),
        [
            ("MatchDocument", examples.MATCH),
            ("MatchItem", examples.ITEM),
            ("MatchInfo", examples.MATCH_INFO),
            ("EventRow", examples.EVENT),
            ("LifecycleAnswer", examples.PAUSED),
            ("MatchLineups", lineup_documents.EXAMPLE),
            ("MatchConflicts", conflict_documents.EXAMPLE),
            ("MatchDocument", {**examples.MATCH, "provenance": examples.PROVENANCE}),
            ("JobDocument", job_examples.JOB),
            ("ScrapeRequest", job_examples.ROUND_REQUEST),
            ("ScrapeRequest", job_examples.URLS_REQUEST),
            ("RetryRequest", job_examples.RETRY_REQUEST),
            ("RetryAnswer", job_examples.RETRIED),
        ],
    )
    def test_its_examples_are_what_it_describes(self, schema: dict[str, Any], name: str, example: Any) -> None:
        check(schema, name, example)


@pytest.mark.django_db
class TestPages:
    def test_schema_and_documentation_are_open_to_everybody(self, anonymous) -> None:
        assert anonymous.get("/api/schema").json()["openapi"] == "3.1.0"
        page = anonymous.get("/api/docs")
        assert page.status_code == 200
        assert b"swagger-ui" in page.content
        assert b"cdn.jsdelivr" not in page.content


@pytest.mark.django_db
@pytest.mark.both
class TestTruth:
    """Real answers have the shapes that are promised."""

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

    def test_of_reads(self, caller: Caller, schema: dict[str, Any], match: Any) -> None:
        check(schema, "MatchDocument", caller.get(f"/api/v1/matches/{match.pk}").json())
        check(schema, "MatchList", caller.get("/api/v1/matches").json())
        check(schema, "EventFeed", caller.get(f"/api/v1/matches/{match.pk}/events").json())
        check(schema, "MatchConflicts", caller.get(f"/api/v1/matches/{match.pk}/conflicts").json())
        check(schema, "MatchDocument", caller.get(f"/api/v1/matches/{match.pk}?include=provenance").json())
        check(schema, "LiveMatches", caller.get("/cricket-data/live-matches").json())
        if match.sport == "cricket":
            check(schema, "MatchInfo", caller.get(f"/cricket-data/match-info/{match.pk}").json())

    def test_of_operations_and_problems(self, operator: Caller, schema: dict[str, Any], match: Any) -> None:
        check(schema, "LifecycleAnswer", operator.post(f"/api/v1/matches/{match.pk}/pause").json())
        check(schema, "LifecycleAnswer", operator.post(f"/api/v1/matches/{match.pk}/resume").json())
        check(schema, "Problem", operator.post(f"/api/v1/matches/{match.pk}/resume").json())

    def test_of_jobs(self, operator: Caller, schema: dict[str, Any]) -> None:
        make_source("sofascore")
        for asked in (job_examples.ROUND_REQUEST, {"urls": [url_of("15000001")]}):
            check(schema, "JobDocument", operator.post("/api/scrape", asked).json())
        check(schema, "JobList", operator.get("/api/scrape/jobs").json())
        check(schema, "RetryAnswer", operator.post("/api/scrape/retry-failed", {"source": "sofascore"}).json())
