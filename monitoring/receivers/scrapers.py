"""Scrapers that are replaced, what they go on from, and what people ask for again."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from monitoring import audit
from monitoring.models import AuditOutcome
from monitoring.receivers.listening import listens_to, plain, record_of_match
from scraping import signals
from scraping.models import ScrapeTask


@listens_to(signals.scraper_restarted)
def note_restart(*, now: datetime, match_id: int, reason: str = "", **more: Any) -> None:
    record_of_match(
        match_id,
        actor="scheduler",
        action_type=audit.SOFT_RESTART,
        trigger_condition=reason,
        metadata=plain(more),
        now=now,
    )


@listens_to(signals.scraper_took_over)
def note_takeover(*, now: datetime, match_id: int, reason: str = "", problems: str = "", **more: Any) -> None:
    record_of_match(
        match_id,
        actor="ingest",
        action_type="takeover",
        trigger_condition=reason,
        outcome=AuditOutcome.PARTIAL if problems else AuditOutcome.SUCCESS,
        metadata={"problems": problems, **plain(more)},
        now=now,
    )


@listens_to(signals.errors_resolved)
def note_resolved_errors(*, now: datetime, count: int, actor: str, **_: Any) -> None:
    audit.record(
        actor=actor,
        action_type="errors_resolved",
        trigger_condition="marked by a person",
        target=f"{count} {'error' if count == 1 else 'errors'}",
        now=now,
    )


@listens_to(signals.task_retried)
def note_retry(*, now: datetime, task_id: int, actor: str, **_: Any) -> None:
    about = ScrapeTask.objects.filter(pk=task_id).values_list("ref__match_id", "attempt").first()
    match_id, attempt = about or (None, 0)
    audit.record(
        actor=actor,
        action_type=audit.RETRY,
        trigger_condition="asked for by a person",
        target=f"task {task_id}",
        match_id=match_id,
        before={"attempt": attempt},
        metadata={"task_id": task_id},
        now=now,
    )
