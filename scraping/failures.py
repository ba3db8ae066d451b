"""What a failed attempt leaves behind: error row, breaker, scraper counters, and a retry, a death or a completion.

One transaction, fenced like a success: an attempt that lost its lease writes nothing.
"""

from __future__ import annotations

import logging
import random
import traceback
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections, transaction
from django.utils import timezone

from scraping import breakers, errors_log, ingest, journal, lifecycle, scrapers
from scraping.engine import Engine
from scraping.errors import ErrorClass, ScrapingError, StaleFence, StoreAway
from scraping.journal import Claim, FailureNote
from scraping.models import Match, MatchRef, Source, TaskState
from scraping.payloads import Status
from scraping.resilience.breaker import OPEN
from scraping.resilience.decide import OUR_FAULTS, SOURCE_FAULTS, Complete, Dead, Decision, Failure, Retry, decide
from scraping.resilience.interval import Activity, interval_seconds

logger = logging.getLogger(__name__)
_chance = random.SystemRandom()


def record(claim: Claim, error: Exception, *, engine: Engine) -> None:
    """Write the failure down.

    If even that cannot be written, the lease runs out and the scheduler takes the task back.
    """
    if isinstance(error, OperationalError | InterfaceError):
        error = StoreAway(f"the database did not take it: {error}")
        close_old_connections()
    try:
        _record(claim, error, engine=engine, now=timezone.now())
    except StaleFence as stale:
        logger.warning("%s", stale, extra={"action": "work_dropped"})
    except (DatabaseError, InterfaceError) as away:
        logger.error(  # noqa: TRY400 - the stack of a database that is away tells nobody anything
            "Task %s failed and its failure could not be written; its lease will run out and it will be tried again",
            claim.task_id,
            extra={"action": "failure_not_written", "error_message": str(away)},
        )


def _record(claim: Claim, error: Exception, *, engine: Engine, now: datetime) -> None:
    source = Source.objects.get(pk=claim.source_id)
    ref = MatchRef.objects.select_related("match", "source").get(pk=claim.ref_id) if claim.ref_id else None
    failure = _failure(claim, error)
    decision = decide(failure, engine.policies.retry_for(source), now, _chance)
    note = _note(claim, error, engine, ref)
    with transaction.atomic():
        journal.keep(claim)
        if ref is not None:
            Match.objects.select_for_update().get(pk=ref.match_id)
            decision = _count(ref, failure, decision, engine, now)
        _settle(claim, note, decision, engine=engine, ref=ref, now=now)
        errors_log.record(_report(claim, error, source, ref, now))
    _log(claim, error, decision, ref)


def _failure(claim: Claim, error: Exception) -> Failure:
    retry_after = error.retry_after_seconds if isinstance(error, ScrapingError) else None
    message = errors_log.storable(str(error))
    return Failure(errors_log.class_of(error), message, claim.attempt, claim.charged_attempts, retry_after)


def _count(ref: MatchRef, failure: Failure, decision: Decision, engine: Engine, now: datetime) -> Decision:
    """Breaker and scraper counters, and when the next task is due. A retry waits for a breaker that has opened."""
    scraper = scrapers.active(ref)
    errors_in_a_row = (scraper.error_count if scraper else failure.charged_attempts) + 1
    activity = Activity(Status(ref.match.status), ref.match.start_time, errors_in_a_row=errors_in_a_row)
    interval = max(interval_seconds(activity, engine.policies.pace, now), ref.source.min_interval_seconds)
    next_poll_at = now + timedelta(seconds=interval)
    if failure.error_class not in SOURCE_FAULTS:
        MatchRef.objects.filter(pk=ref.pk).update(next_poll_at=next_poll_at)
        return decision
    view = breakers.record_failure(ref, engine.policies.breaker, now=now)
    if scraper:
        scrapers.record_error(scraper.pk, interval=interval)
    if view.state == OPEN and view.open_until:
        next_poll_at = max(next_poll_at, view.open_until)
        if isinstance(decision, Retry):
            decision = Retry(max(decision.at, view.open_until), decision.is_charged)
    MatchRef.objects.filter(pk=ref.pk).update(next_poll_at=next_poll_at, polling_interval_seconds=interval)
    return decision


def _settle(
    claim: Claim, note: FailureNote, decision: Decision, *, engine: Engine, ref: MatchRef | None, now: datetime
) -> None:
    if isinstance(decision, Retry):
        journal.retry_later(claim, note, at=decision.at, is_charged=decision.is_charged, now=now)
        return
    if isinstance(decision, Complete):
        with journal.finishing(claim, now=now, to_state=TaskState.SKIPPED, reason=decision.reason):
            if ref is not None:
                ingest.close_gone(ref.pk, now=now)
        return
    journal.bury(claim, note, reason=decision.reason, now=now)
    if ref is not None and note.error_class not in OUR_FAULTS:  # a match is not paused for what is our fault
        lifecycle.after_failed_task(
            ref.match_id,
            pause_after=engine.policies.pause_after_failures,
            pause_seconds=engine.policies.pause_seconds,
            now=now,
        )


def _note(claim: Claim, error: Exception, engine: Engine, ref: MatchRef | None) -> FailureNote:
    document: dict[str, Any] = {
        "error_class": errors_log.class_of(error).value,
        "error_type": errors_log.type_of(error),
        "message": errors_log.storable(str(error), 2000),
        "stage": engine.stage_of(claim).value,
        "attempt": claim.attempt,
    }
    if isinstance(error, ScrapingError):
        document |= {"http_status": error.http_status, "url": error.url}
    else:
        document["stack_trace"] = errors_log.storable("".join(traceback.format_exception(error))[-4000:])
    return FailureNote(
        error_class=errors_log.class_of(error),
        error_type=errors_log.type_of(error),
        reason=errors_log.storable(str(error)) or type(error).__name__,
        stage=engine.stage_of(claim),
        error=document,
        match_id=ref.match_id if ref else None,
    )


def _report(
    claim: Claim, error: Exception, source: Source, ref: MatchRef | None, now: datetime
) -> errors_log.ErrorReport:
    scraper = scrapers.active(ref) if ref else None
    return errors_log.ErrorReport(
        source_id=source.pk,
        error=error,
        operation=claim.resource.value,
        attempt=claim.attempt,
        now=now,
        task_id=claim.task_id,
        match_id=ref.match_id if ref else None,
        scraper_id=scraper.pk if scraper else None,
        url=ref.url if ref else source.base_url,
    )


def _log(claim: Claim, error: Exception, decision: Decision, ref: MatchRef | None) -> None:
    where = ref.key if ref else "a source's list of matches"
    match decision:
        case Retry(at=at):
            level, then = logging.WARNING, f"next attempt at {at:%H:%M:%S} UTC"
        case Dead():
            level, then = logging.ERROR, "dead letter: look at it in the admin, retry it there when the cause is gone"
        case Complete():
            level, then = logging.INFO, "the match is taken as completed"
    is_bug = errors_log.class_of(error) is ErrorClass.BUG
    logger.log(
        level,
        "Reading %s failed (%s): %s; %s",
        where,
        errors_log.type_of(error),
        error,
        then,
        exc_info=error if is_bug else None,
        extra={
            "action": "attempt_failed",
            "match_id": where,
            "error_type": errors_log.type_of(error),
            "error_message": str(error)[:500],
        },
    )
