"""How the API's description (OpenAPI) presents what can be asked about jobs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from scraping.api import job_documents as documents
from scraping.api import job_examples as examples
from scraping.api.job_params import KEY_LENGTH, JobListParams, RetryRequest, ScrapeRequest
from victoryline.lib.http.problems import problem_responses

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
        202: documents.JobDocument,
        200: documents.JobDocument,
        **problem_responses(400, 401, 403, 409, 413, 415, 429, 503),
    },
    "examples": [
        _asked("a round", examples.ROUND_REQUEST),
        _asked("addresses", examples.URLS_REQUEST),
        _answered("start_job", examples.JOB, "202"),
    ],
}
JOBS: dict[str, Any] = {
    "operation_id": "list_jobs",
    "summary": "List jobs",
    "description": "Needs the scope operate. Newest first, with how far each is.",
    "tags": [TAG],
    "parameters": [JobListParams],
    "responses": {200: documents.JobList, **problem_responses(400, 401, 403, 429, 503)},
    "examples": [_answered("list_jobs", {"jobs": [examples.SUMMARY], "next": None}, "200")],
}
JOB: dict[str, Any] = {
    "operation_id": "read_job",
    "summary": "See how far a job is",
    "description": "Needs the scope operate. What is expected, what is done, and each missing match with the reason.",
    "tags": [TAG],
    "parameters": [JOB_ID],
    "responses": {200: documents.JobDocument, **problem_responses(401, 403, 404, 429, 503)},
    "examples": [_answered("read_job", examples.JOB, "200")],
}
RETRY_FAILED: dict[str, Any] = {
    "operation_id": "retry_failed",
    "summary": "Ask again for what failed",
    "description": "Needs the scope operate. Opens failed and dead tasks again: those of a job, of a source, of a "
    "class of errors, of a group of equal errors, or all of these at once. Twice is once; where another task for the "
    "same match is open, or has done it since, nothing is opened and the answer says so.",
    "tags": [TAG],
    "request": RetryRequest,
    "responses": {200: documents.RetryAnswer, **problem_responses(400, 401, 403, 413, 415, 429, 503)},
    "examples": [
        _asked("of a job", examples.RETRY_REQUEST),
        _answered("retry_failed", examples.RETRIED, "200"),
    ],
}
