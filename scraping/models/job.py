"""A batch of work: a round, a list of addresses, or the watch over a source's live matches.

Each expected match is a JobItem, written in the same transaction as the tasks and before the first of them runs. The
state of an item is that of its task; nothing is counted twice.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from django.db import models
from django.db.models import Q

from scraping.models.match import MatchLifecycle
from scraping.models.task import TaskState


class JobKind(models.TextChoices):
    WATCH = "watch"
    ROUND = "round"
    URLS = "urls"


class Standing(StrEnum):  # its name is part of the API schema
    """The state of one match of a job."""

    DONE = "done"  # read as a whole
    SKIPPED = "skipped"  # was complete before the job began
    PENDING = "pending"
    EXECUTING = "executing"
    FAILED = "failed"  # the last attempt failed, another one is planned
    DEAD = "dead"
    GIVEN_UP = "given_up"  # the source no longer has it, or it was cancelled


HAS_ALL = (Standing.DONE, Standing.SKIPPED)
IS_OPEN = (Standing.PENDING, Standing.EXECUTING, Standing.FAILED)
STANDINGS = {
    TaskState.SUCCESS: Standing.DONE,
    TaskState.EXECUTING: Standing.EXECUTING,
    TaskState.FAILED: Standing.FAILED,
    TaskState.DEAD: Standing.DEAD,
    TaskState.SKIPPED: Standing.GIVEN_UP,
    TaskState.CANCELLED: Standing.GIVEN_UP,
    TaskState.DISCARDED: Standing.GIVEN_UP,
}


def standing_of(is_skipped: bool, state: str, *, has_failed: bool) -> Standing:
    """Returns the standing of an item by the state or outcome of its task."""
    if is_skipped:
        return Standing.SKIPPED
    if not state:  # neither a task nor an outcome: unknown whether it was read
        return Standing.GIVEN_UP
    if state == TaskState.PENDING:
        return Standing.FAILED if has_failed else Standing.PENDING
    return STANDINGS[TaskState(state)]


class ScrapeJob(models.Model):
    kind = models.CharField(max_length=10, choices=JobKind)
    name = models.CharField(max_length=200)
    source = models.ForeignKey("scraping.Source", on_delete=models.PROTECT, null=True, blank=True, related_name="jobs")
    requested_by = models.CharField(max_length=150, default="scheduler")
    idempotency_key = models.CharField(max_length=100, null=True, blank=True, unique=True)
    parameters = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    discovered_at = models.DateTimeField(
        null=True, blank=True, help_text="When its expected matches were written; empty while their list is being read."
    )
    finished_at = models.DateTimeField(null=True, blank=True, help_text="When its last item ended; a retry reopens it.")

    class Meta:
        verbose_name = "job"
        db_table = "scrape_jobs"
        constraints = (
            models.UniqueConstraint(
                fields=("source",), condition=Q(kind=JobKind.WATCH), name="job_one_watch_per_source"
            ),
            models.CheckConstraint(condition=Q(kind__in=JobKind.values), name="job_kind_known"),
        )
        indexes = (models.Index(fields=("-created_at",), name="job_newest"),)

    def __str__(self) -> str:
        return self.name


class JobItem(models.Model):
    """One expected match of a job. Two jobs with the same match at the same time share its task."""

    job = models.ForeignKey(ScrapeJob, on_delete=models.CASCADE, related_name="items")
    ref = models.ForeignKey("scraping.MatchRef", on_delete=models.CASCADE, related_name="job_items")
    task = models.ForeignKey(
        "scraping.ScrapeTask", on_delete=models.SET_NULL, null=True, blank=True, related_name="job_items"
    )
    skipped_because = models.CharField(max_length=200, blank=True, help_text="Nothing to do: the match is complete.")
    outcome = models.CharField(
        max_length=10, blank=True, help_text="The final state of the task, kept when retention deletes the task."
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=("job", "ref"), name="item_once_per_job"),)

    def __str__(self) -> str:
        return f"{self.job_id}: {self.ref_id}"

    @property
    def standing(self) -> Standing:
        task = self.task
        has_failed = task is not None and task.attempt > 0 and bool(task.error_class)
        return standing_of(bool(self.skipped_because), task.state if task else self.outcome, has_failed=has_failed)

    @property
    def reason(self) -> str:
        """Returns why the match was skipped or is not done yet; empty where there is no reason to give."""
        standing, match, source = self.standing, self.ref.match, self.ref.source
        if standing in HAS_ALL:
            return self.skipped_because
        if standing in IS_OPEN and match.lifecycle == MatchLifecycle.PAUSED:
            return f"the match is paused until {match.pause_until:%H:%M:%S} UTC: {match.pause_reason}"
        if standing in IS_OPEN and not source.is_enabled:
            return f"{source.name} is switched off; the task waits until it is on again"
        if self.task is None:
            return "its task was removed by retention; start the match again by its address"
        return self.task.reason if standing != Standing.PENDING else ""

    @property
    def next_attempt_at(self) -> datetime | None:
        task = self.task
        return task.run_at if task is not None and task.state == TaskState.PENDING and task.attempt else None
