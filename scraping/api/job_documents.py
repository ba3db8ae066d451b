"""The bodies of answers about jobs, as the API's description shows them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from scraping.api.documents import Document
from scraping.jobs import JobState, Standing

JobKindWord = Literal["round", "urls"]


class MissingMatch(Document):
    """A match that the job expects and does not have yet."""

    key: str = Field(description="The match's name at its source; works as an id everywhere.")
    title: str
    url: str
    state: Standing
    reason: str = Field(description="Why it is not there; empty while it only waits for its turn.")
    attempts: int
    next_attempt_at: AwareDatetime | None
    task_id: int | None


class JobSummary(Document):
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


class JobList(Document):
    jobs: list[JobSummary]
    next: str | None = Field(description="The address of the next page.")


class RefusedTask(Document):
    task_id: int
    reason: str


class RetryAnswer(Document):
    dry_run: bool
    retried: list[int] = Field(description="Tasks that are open again; in a dry run, that would be.")
    refused: list[RefusedTask]
    has_more: bool = Field(description="There were more than are retried at once: ask again.")
