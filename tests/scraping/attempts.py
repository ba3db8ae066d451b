"""Runs attempts of tasks under a test clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection

from scraping.configuration import policies as configured
from scraping.configuration.policies import Policies
from scraping.journal import Claim
from scraping.journal.error_log import ErrorReport
from scraping.models import MatchRef, ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.worker import failures
from scraping.worker.scrape import scrape
from tests.factories import NOW
from tests.scraping.builders import POLICIES, Outcome, engine_with, open_task


@dataclass
class Clock:
    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@contextmanager
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    monkeypatch.setattr(configured, "current", lambda: POLICIES)
    monkeypatch.setattr(failures, "close_old_connections", lambda: None)  # it would end the test's own transaction
    clock = Clock()
    with patch("django.utils.timezone.now", clock):
        yield clock


def attempt(
    ref: MatchRef,
    clock: Clock,
    *outcomes: Outcome,
    resource: Resource = Resource.SCORECARD,
    policies: Policies = POLICIES,
) -> ScrapeTask:
    """Makes one attempt at the ref's open task, or at a new one, when it is due."""
    task = ScrapeTask.objects.filter(ref=ref, resource=resource, state=TaskState.PENDING).first()
    task_id = task.pk if task else open_task(ref, at=clock.now, resource=resource)
    clock.now = max(clock.now, ScrapeTask.objects.get(pk=task_id).run_at)
    scrape([task_id], engine_with(*outcomes, policies=policies))
    return ScrapeTask.objects.get(pk=task_id)


def fail_for_good(ref: MatchRef, clock: Clock, error: Exception) -> ScrapeTask:
    task = attempt(ref, clock, error)
    while task.state == TaskState.PENDING:
        task = attempt(ref, clock, error)
    return task


def fails(claim: Claim, error: Exception, *, cut_at: int) -> bool:
    """Records a failure and crashes at a statement; returns True if the statement was not reached."""
    seen = 0

    def power_cut(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal seen
        seen += not sql.startswith("BEGIN")
        if seen == cut_at:
            raise KeyboardInterrupt
        return execute(sql, params, many, context)

    try:
        with connection.execute_wrapper(power_cut):
            failures.record(claim, error, engine=engine_with(error))
    except KeyboardInterrupt:
        return False
    return True


def fingerprint(error: Exception, *names: str, source_id: int = 1) -> str:
    return ErrorReport(source_id, error, operation="scorecard", attempt=1, now=NOW, names=names).fingerprint
