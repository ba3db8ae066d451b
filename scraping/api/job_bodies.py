"""Requests and answers about jobs: parameters and bodies."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, Field
from rest_framework import serializers

from scraping import jobs
from scraping.api.bodies import ADDED, Body
from scraping.api.params import number, source_key
from scraping.documents.queries import MAX_ID
from scraping.errors import ErrorClass
from scraping.jobs import JobState, JobView, Standing
from scraping.journal import RetryOutcome
from victoryline.lib.http.strict_serializer import StrictSerializer

NEVER: dict[str, Any] = {"not": {}}  # in JSON Schema: no value is valid


class ScrapeRequest(StrictSerializer):
    """Either `source` and `round`, or `urls`."""

    ways: ClassVar[dict[str, Any]] = {
        "oneOf": [
            {"required": ["source", "round"], "properties": {"urls": NEVER}},
            {"required": ["urls"], "properties": {"source": NEVER, "round": NEVER, "matches": NEVER}},
        ]
    }

    source = source_key("The key of a source, such as sofascore.")
    round = serializers.DictField(
        child=serializers.IntegerField(min_value=1),
        required=False,
        help_text='The round as the source names it. Sofascore: {"tournament": 325, "season": 87678, "round": 12}.',
    )
    matches = number(1, 1000, "Number of matches in the round. A list with another number is rejected.")
    urls = serializers.ListField(
        child=serializers.CharField(max_length=2000, trim_whitespace=True),
        required=False,
        min_length=1,
        max_length=jobs.MAX_URLS,
        help_text="The addresses of matches at our sources.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "urls" in attrs and {"source", "round", "matches"} & attrs.keys():
            raise serializers.ValidationError({"urls": ["Give either a round or addresses, not both."]})
        missing = [name for name in ("source", "round") if name not in attrs]
        if missing and "urls" not in attrs:
            reason = "Required without `urls`: a round is a source and its numbers."
            raise serializers.ValidationError({name: [reason] for name in missing})
        return attrs


class RetryRequest(StrictSerializer):
    """At least one of the four; a task must match all that are given."""

    ways: ClassVar[dict[str, Any]] = {
        "anyOf": [{"required": [name]} for name in ("job", "source", "error_class", "fingerprint")]
    }

    job = number(1, MAX_ID, "The number of a job.")
    source = source_key("The key of a source.")
    error_class = serializers.ChoiceField(required=False, choices=[word.value for word in ErrorClass])
    fingerprint = serializers.RegexField(
        r"^[0-9a-f]{64}$", required=False, help_text="The fingerprint of an error group; the admin lists them."
    )
    dry_run = serializers.BooleanField(required=False, default=False, help_text="Only return what would be retried.")


class MissingMatch(Body):
    """A match of the job that is not complete yet."""

    key: Annotated[str, attrgetter("ref.key")] = Field(
        description="The match's name at its source; works as an id everywhere."
    )
    title: Annotated[str, lambda item: str(item.ref.match)]
    url: Annotated[str, attrgetter("ref.url")]
    state: Annotated[Standing, attrgetter("standing")]
    reason: str = Field(description="Why it is missing; empty while its task waits in the queue.")
    attempts: Annotated[int, lambda item: item.task.attempt if item.task else 0]
    next_attempt_at: AwareDatetime | None
    task_id: int | None


def _number_of(standing: Standing) -> Callable[[JobView], int]:
    return lambda view: view.counts[standing]


class JobSummary(Body):
    """A requested round or list of matches."""

    id: Annotated[int, attrgetter("job.pk")]
    kind: Annotated[Literal["round", "urls"], attrgetter("job.kind")]
    name: Annotated[str, attrgetter("job.name")]
    source: Annotated[str | None, lambda view: view.job.source.key if view.job.source else None] = Field(
        description="Empty for a list of matches at several sources."
    )
    state: JobState
    parameters: Annotated[dict[str, Any], attrgetter("job.parameters")]
    requested_by: Annotated[str, attrgetter("job.requested_by")]
    started_at: Annotated[AwareDatetime, attrgetter("job.created_at")]
    discovered_at: Annotated[AwareDatetime | None, attrgetter("job.discovered_at")] = Field(
        description="When its expected matches were stored; they do not change afterwards."
    )
    finished_at: Annotated[AwareDatetime | None, attrgetter("job.finished_at")]
    expected: int
    done: Annotated[int, _number_of(Standing.DONE)] = Field(description="Matches that were read completely.")
    skipped: Annotated[int, _number_of(Standing.SKIPPED)] = Field(
        description="Matches that were complete before the job began."
    )
    pending: Annotated[int, _number_of(Standing.PENDING)]
    executing: Annotated[int, _number_of(Standing.EXECUTING)]
    failed: Annotated[int, _number_of(Standing.FAILED)] = Field(
        description="The last attempt failed; the next one is planned."
    )
    dead: Annotated[int, _number_of(Standing.DEAD)] = Field(
        description="Given up after all attempts; POST /api/scrape/retry-failed retries them."
    )
    given_up: Annotated[int, _number_of(Standing.GIVEN_UP)] = Field(description="The source no longer has them.")
    percent: float
    problem: str = Field(description="Why the list of its matches could not be read; usually empty.")


class JobDocument(JobSummary):
    missing: Annotated[list[MissingMatch], lambda view: [MissingMatch.render(item) for item in view.missing]]


class JobList(Body):
    jobs: list[JobSummary]
    next: str | None = Field(description="The address of the next page.")


class RefusedTask(Body):
    task_id: int
    reason: str


def _refused_tasks(outcome: RetryOutcome) -> list[dict[str, Any]]:
    return [{"task_id": task_id, "reason": reason} for task_id, reason in outcome.refused.items()]


class RetryAnswer(Body):
    dry_run: Annotated[bool, ADDED]
    retried: list[int] = Field(description="Reopened tasks; in a dry run, those that would be reopened.")
    refused: Annotated[list[RefusedTask], _refused_tasks]
    has_more: bool = Field(description="There were more than one request retries: repeat it.")
