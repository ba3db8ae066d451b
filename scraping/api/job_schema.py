"""Requests and answers about jobs: parameters, bodies, examples and OpenAPI descriptions."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from pydantic import AwareDatetime, Field
from rest_framework import serializers

from scraping import jobs
from scraping.api.bodies import ADDED, Body, Computed
from scraping.documents.queries import MAX_ID
from scraping.errors import ErrorClass
from scraping.jobs import JobState, Standing
from scraping.journal import RetryOutcome
from scraping.models import JobKind
from victoryline.lib.http.problems import problem_responses
from victoryline.lib.http.strict_serializer import StrictSerializer

KEY_LENGTH = 200
PAGE, MAX_PAGE = 20, 100
NEVER: dict[str, Any] = {"not": {}}  # in JSON Schema: no value will do


class ScrapeRequest(StrictSerializer):
    """Either `source` and `round`, or `urls`."""

    ways: ClassVar[dict[str, Any]] = {
        "oneOf": [
            {"required": ["source", "round"], "properties": {"urls": NEVER}},
            {"required": ["urls"], "properties": {"source": NEVER, "round": NEVER, "matches": NEVER}},
        ]
    }

    source = serializers.SlugField(  # type: ignore[assignment]  # the metaclass takes it away before it hides anything
        required=False, max_length=40, help_text="The key of a source, such as sofascore."
    )
    round = serializers.DictField(
        child=serializers.IntegerField(min_value=1),
        required=False,
        help_text='The round as the source names it. Sofascore: {"tournament": 325, "season": 87678, "round": 12}.',
    )
    matches = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=1000,
        help_text="How many matches the round has. A list with another number is not believed.",
    )
    urls = serializers.ListField(
        child=serializers.CharField(max_length=2000, trim_whitespace=True),
        required=False,
        min_length=1,
        max_length=jobs.MAX_URLS,
        help_text="The addresses of matches at our sources.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        of_round = {"source", "round", "matches"} & attrs.keys()
        if "urls" in attrs and of_round:
            raise serializers.ValidationError({"urls": ["Give either a round or addresses, not both."]})
        if "urls" not in attrs:
            missing = [name for name in ("source", "round") if name not in attrs]
            if missing:
                said = "Needed, unless you give `urls`: a round is a source and its numbers."
                raise serializers.ValidationError({name: [said] for name in missing})
        return attrs


class RetryRequest(StrictSerializer):
    """At least one of the four; together they narrow."""

    ways: ClassVar[dict[str, Any]] = {
        "anyOf": [{"required": [name]} for name in ("job", "source", "error_class", "fingerprint")]
    }

    job = serializers.IntegerField(required=False, min_value=1, max_value=MAX_ID, help_text="The number of a job.")
    source = serializers.SlugField(  # type: ignore[assignment]
        required=False, max_length=40, help_text="The key of a source."
    )
    error_class = serializers.ChoiceField(required=False, choices=[word.value for word in ErrorClass])
    fingerprint = serializers.RegexField(
        r"^[0-9a-f]{64}$", required=False, help_text="Of a group of errors; the admin lists them."
    )
    dry_run = serializers.BooleanField(required=False, default=False, help_text="Only say what would be retried.")


class JobListParams(serializers.Serializer[None]):
    kind = serializers.ChoiceField(required=False, choices=[JobKind.ROUND.value, JobKind.URLS.value])
    source = serializers.SlugField(  # type: ignore[assignment]
        required=False, max_length=40, help_text="The key of a source."
    )
    # Not a BooleanField: that takes a query without it for false.
    open = serializers.ChoiceField(
        required=False, choices=["true", "false"], help_text="true: jobs that have not ended; false: those that have."
    )
    cursor = serializers.CharField(required=False, max_length=64, help_text="From `next` of the page before.")
    limit = serializers.IntegerField(required=False, default=PAGE, min_value=1, max_value=MAX_PAGE)


JobKindWord = Literal["round", "urls"]


class MissingMatch(Body):
    """A match that the job expects and does not have yet."""

    key: str = Field(description="The match's name at its source; works as an id everywhere.")
    title: str
    url: str
    state: Standing
    reason: str = Field(description="Why it is not there; empty while it only waits for its turn.")
    attempts: int
    next_attempt_at: AwareDatetime | None
    task_id: int | None


class JobSummary(Body):
    """A round or a list of matches that somebody asked for."""

    id: int
    kind: JobKindWord
    name: str
    source: str | None = Field(description="Empty for a list of matches at several sources.")
    state: JobState
    parameters: dict[str, Any]
    requested_by: str
    started_at: AwareDatetime
    discovered_at: AwareDatetime | None = Field(description="When what it expects was written down; fixed since then.")
    finished_at: AwareDatetime | None
    expected: int
    done: int = Field(description="Read as a whole.")
    skipped: int = Field(description="Were complete before the job began.")
    pending: int
    executing: int
    failed: int = Field(description="The last attempt failed, another one will be made.")
    dead: int = Field(description="Given up after all attempts; POST /api/scrape/retry-failed asks again.")
    given_up: int = Field(description="The source no longer has them.")
    percent: float
    problem: str = Field(description="Why the list of its matches could not be read; usually empty.")


class JobDocument(JobSummary):
    missing: list[MissingMatch]


class JobList(Body):
    jobs: Annotated[list[JobSummary], ADDED]
    next: Annotated[str | None, ADDED] = Field(description="The address of the next page.")


class RefusedTask(Body):
    task_id: Annotated[int, ADDED]
    reason: Annotated[str, ADDED]


def _refused_tasks(outcome: RetryOutcome) -> list[dict[str, Any]]:
    return [RefusedTask.render(task_id=task_id, reason=reason) for task_id, reason in outcome.refused.items()]


class RetryAnswer(Body):
    dry_run: Annotated[bool, ADDED]
    retried: list[int] = Field(description="Tasks that are open again; in a dry run, that would be.")
    refused: Annotated[list[RefusedTask], Computed(_refused_tasks)]
    has_more: bool = Field(description="There were more than are retried at once: ask again.")


ROUND_REQUEST: dict[str, Any] = {
    "source": "sofascore",
    "round": {"tournament": 325, "season": 87678, "round": 12},
    "matches": 10,
}
URLS_REQUEST: dict[str, Any] = {
    "urls": ["https://www.sofascore.com/en/football/match/flamengo-santos/GOsuO#id:15052834"]
}
SUMMARY: dict[str, Any] = {
    "id": 7,
    "kind": "round",
    "name": "Sofascore: tournament 325, season 87678, round 12",
    "source": "sofascore",
    "state": "incomplete",
    "parameters": {"round": {"tournament": 325, "season": 87678, "round": 12}, "matches": 10},
    "requested_by": "api:acme",
    "started_at": "2026-06-14T18:00:00.000Z",
    "discovered_at": "2026-06-14T18:00:01.210Z",
    "finished_at": "2026-06-14T18:00:31.400Z",
    "expected": 10,
    "done": 8,
    "skipped": 1,
    "pending": 0,
    "executing": 0,
    "failed": 0,
    "dead": 1,
    "given_up": 0,
    "percent": 90.0,
    "problem": "",
}
MISSING: dict[str, Any] = {
    "key": "sofascore_15052834",
    "title": "Flamengo v Santos",
    "url": "https://www.sofascore.com/en/football/match/flamengo-santos/GOsuO#id:15052834",
    "state": "dead",
    "reason": "drift after 2 attempts: the event lacks homeScore",
    "attempts": 2,
    "next_attempt_at": None,
    "task_id": 4711,
}
JOB_EXAMPLE: dict[str, Any] = {**SUMMARY, "missing": [MISSING]}
RETRY_REQUEST: dict[str, Any] = {"job": 7, "dry_run": False}
RETRIED: dict[str, Any] = {"dry_run": False, "retried": [4711], "refused": [], "has_more": False}

TAG = "jobs"
JOB_ID = OpenApiParameter("job_id", str, OpenApiParameter.PATH, description="The job's number.")
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "maxLength": KEY_LENGTH},
    OpenApiParameter.HEADER,
    description=f"Up to {KEY_LENGTH} characters of your choice. The same key again gives the same job back, for ever.",
)
LOCATION = OpenApiParameter(
    "Location", str, OpenApiParameter.HEADER, description="The address of the job.", response=[200, 202]
)


def _answered(name: str, example: Any, *codes: str) -> OpenApiExample:
    return OpenApiExample(name, example, response_only=True, status_codes=list(codes))


def _asked(name: str, example: Any) -> OpenApiExample:
    return OpenApiExample(name, example, request_only=True)


SCRAPE: dict[str, Any] = {
    "operation_id": "start_job",
    "summary": "Start a round, or a list of matches",
    "description": "Needs the scope operate. Answers at once (202); workers do the reading. Every match is written "
    "down as expected before the first is read, matches that are complete already are skipped. Asked for again "
    "while the same round or list is open, or with the same Idempotency-Key, it answers 200 with that job.",
    "tags": [TAG],
    "parameters": [IDEMPOTENCY_KEY, LOCATION],
    "request": ScrapeRequest,
    "responses": {
        202: JobDocument,
        200: JobDocument,
        **problem_responses(400, 401, 403, 409, 413, 415, 429, 503),
    },
    "examples": [
        _asked("a round", ROUND_REQUEST),
        _asked("addresses", URLS_REQUEST),
        _answered("start_job", JOB_EXAMPLE, "202"),
    ],
}
JOBS: dict[str, Any] = {
    "operation_id": "list_jobs",
    "summary": "List jobs",
    "description": "Needs the scope operate. Newest first, with how far each is.",
    "tags": [TAG],
    "parameters": [JobListParams],
    "responses": {200: JobList, **problem_responses(400, 401, 403, 429, 503)},
    "examples": [_answered("list_jobs", {"jobs": [SUMMARY], "next": None}, "200")],
}
JOB: dict[str, Any] = {
    "operation_id": "read_job",
    "summary": "See how far a job is",
    "description": "Needs the scope operate. What is expected, what is done, and each missing match with the reason.",
    "tags": [TAG],
    "parameters": [JOB_ID],
    "responses": {200: JobDocument, **problem_responses(401, 403, 404, 429, 503)},
    "examples": [_answered("read_job", JOB_EXAMPLE, "200")],
}
RETRY_FAILED: dict[str, Any] = {
    "operation_id": "retry_failed",
    "summary": "Ask again for what failed",
    "description": "Needs the scope operate. Opens failed and dead tasks again: those of a job, of a source, of a "
    "class of errors, of a group of equal errors, or all of these at once. Twice is once; where another task for the "
    "same match is open, or has done it since, nothing is opened and the answer says so.",
    "tags": [TAG],
    "request": RetryRequest,
    "responses": {200: RetryAnswer, **problem_responses(400, 401, 403, 413, 415, 429, 503)},
    "examples": [
        _asked("of a job", RETRY_REQUEST),
        _answered("retry_failed", RETRIED, "200"),
    ],
}
