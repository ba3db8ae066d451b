"""Writes a failed attempt: error row, breaker, scraper counters, and the retry, dead letter or completion.

Guards against a failure that is counted twice, or in part: all of it is one transaction, fenced like a success, so
that an attempt that lost its lease writes nothing. What follows is in one table (`errors.ERROR_RULES`) and in pure
policies (`policies.retry`, `breaker`, `drift`); this module applies their decisions.
"""

from __future__ import annotations

import logging
import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, close_old_connections, transaction
from django.utils import timezone

from scraping import journal
from scraping.configuration.policies import Policies
from scraping.errors import (
    ERROR_RULES,
    OUR_FAULTS,
    SOURCE_FAULTS,
    EgressRefused,
    ErrorClass,
    StaleFence,
    StoreAway,
)
from scraping.journal import Claim, FailureNote, error_log, evidence
from scraping.journal.error_log import ErrorReport, storable
from scraping.matches import late_updates, lifecycle, poll_times, scrapers
from scraping.models import Breaker, BreakerState, Match, MatchRef, Source, Stage, TaskState
from scraping.payloads import Resource, Status
from scraping.policies.breaker import OPEN, BreakerView
from scraping.policies.drift import DriftPolicy
from scraping.policies.retry import Complete, Dead, Decision, Failure, Retry, Skip, decide
from scraping.policies.source_breaker import has_drifted
from scraping.readings import evidence_of
from scraping.recovery import breakers
from scraping.signals import layout_lost, source_lost
from scraping.stats import attempt_metrics
from scraping.worker import attempt_log
from scraping.worker.engine import Engine
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.crash import crash_point
from victoryline.lib.statements import statement_of

logger = logging.getLogger(__name__)
_chance = random.SystemRandom()
EXTRA_RESOURCES = (Resource.LINEUPS, Resource.FIGURES)  # a source without these may still have the match


def record(claim: Claim, error: Exception, *, engine: Engine) -> bool:
    """Returns False if the failure could not be written because the database is unreachable."""
    if isinstance(error, DATABASE_AWAY):
        error = _store_away(error)
        close_old_connections()
    try:
        _record(claim, error, engine=engine, now=timezone.now())
    except StaleFence as stale:
        logger.warning("%s", stale, extra={"action": "work_dropped"})
    except DATABASE_AWAY:
        return False
    except DatabaseError as refused:
        logger.error(  # noqa: TRY400 - the stack of a refusing database explains nothing
            "Task %s failed and the failure could not be written; its lease will expire and it will be tried again",
            claim.task_id,
            extra={"action": "failure_not_written", "error_message": str(refused), **statement_of(refused)},
        )
    return True


def _store_away(cause: Exception) -> StoreAway:
    error = StoreAway(f"the database did not accept it: {cause}")
    error.__cause__ = cause
    return error


def _record(claim: Claim, error: Exception, *, engine: Engine, now: datetime) -> None:
    source = Source.objects.get(pk=claim.source_id)
    refs = MatchRef.objects.select_related("match", "source__breaker")
    ref = refs.get(pk=claim.ref_id) if claim.ref_id else None
    report = _report(claim, error, source, ref, now)
    retry_after = report.known.retry_after_seconds if report.known else None
    is_live = ref is not None and ref.match.status == Status.LIVE
    failure = Failure(report.error_class, report.message, claim.attempt, claim.charged_attempts, retry_after, is_live)
    decision = decide(failure, engine.policies.retry_for(source), now, _chance)
    note = _note(claim, report, engine)
    files = evidence.store(report, name=ref.key if ref else source.key, is_final=isinstance(decision, Dead))
    with transaction.atomic():
        journal.keep(claim)
        crash_point("failure.kept")
        if ref is None:
            _update_breakers(claim, failure, None, engine, now)
        else:
            Match.objects.select_for_update().get(pk=ref.match_id)
            ref = refs.get(pk=ref.pk)  # reloaded: another of its tasks may have succeeded meanwhile
            is_source_lost = _is_source_lost(claim, report, ref, engine)
            view = _update_breakers(claim, failure, ref, engine, now)
            decision = _count(ref, failure, decision, view=view, engine=engine, now=now)
            if not is_source_lost:
                decision = _slow_changed_layout(ref, failure, decision, engine.policies.drift, now)
            decision = _pause_after_failures(claim, ref, failure, decision, policies=engine.policies, now=now)
        crash_point("failure.counted")
        _settle(claim, note, decision, ref=ref, now=now)
        crash_point("failure.settled")
        evidence.attach(files, error_log.record(replace(report, stage=note.stage.value)), report)
    crash_point("failure.committed")
    if failure.error_class not in OUR_FAULTS:
        is_bad = failure.error_class in SOURCE_FAULTS
        engine.outcomes.count(claim.source_id, is_bad=is_bad, is_retry=claim.is_retry, now=now)
    attempt_metrics.failed(
        source.key,
        match_key=report.match_key,
        error_type=report.rule.error_type.value,
        is_soft=report.rule.is_soft,
        reason=report.error_code,
    )
    attempt_log.failed(claim, report, decision, note.stage)


def _update_breakers(
    claim: Claim, failure: Failure, ref: MatchRef | None, engine: Engine, now: datetime
) -> BreakerView | None:
    """Counts faults of the source; any other failure only releases the breaker's permits."""
    if failure.error_class in SOURCE_FAULTS:
        return breakers.record_failure(
            claim.task_id, claim.source_id, ref, why=failure.message, policies=engine.policies, now=now
        )
    breakers.release_permits(claim.task_id, claim.source_id, ref, now=now)
    return None


def _count(
    ref: MatchRef, failure: Failure, decision: Decision, *, view: BreakerView | None, engine: Engine, now: datetime
) -> Decision:
    """Updates scraper counters and the next poll time. A retry waits for a breaker that has opened."""
    decision = _not_before(now + timedelta(seconds=ref.source.min_interval_seconds), decision)
    pace = engine.policies.pace
    if view is None:
        poll_times.after_failure(ref, errors_in_a_row=None, pace=pace, now=now).write_to(ref)
        ref.save(update_fields=("next_poll_at",))
        return decision
    scraper = scrapers.active(ref)
    errors_in_a_row = (scraper.error_count if scraper else failure.charged_attempts) + 1
    planned = poll_times.after_failure(ref, errors_in_a_row=errors_in_a_row, pace=pace, now=now)
    planned.write_to(ref)
    if scraper:
        scrapers.record_error(scraper.pk, interval=planned.seconds)
    if view.state == OPEN and view.open_until:
        engine.matches.pop(ref.pk, None)  # not read during an outage of the database either
        poll_times.set_next_poll(ref, max(planned.at, view.open_until))
        decision = _not_before(view.open_until, decision)
    ref.save(update_fields=poll_times.COLUMNS)
    return decision


def _not_before(at: datetime, decision: Decision) -> Decision:
    return Retry(max(at, decision.at), decision.is_charged) if isinstance(decision, Retry) else decision


def _is_source_lost(claim: Claim, report: ErrorReport, ref: MatchRef, engine: Engine) -> bool:
    """Opens the source's breaker after too many invalid readings of whichever match, and alerts (EC-1)."""
    if report.error_class is not ErrorClass.DRIFT or isinstance(report.error, EgressRefused):
        return False
    drift, why = engine.policies.drift, report.message
    of_source: Breaker | None = getattr(ref.source, "breaker", None)
    was_closed = of_source is None or of_source.state == BreakerState.CLOSED
    view = breakers.record_invalid_reading(claim.task_id, ref, why=why, policies=engine.policies, now=report.now)
    if view.state != OPEN or not has_drifted(view, drift):
        return False
    failures = view.failure_count
    if was_closed:
        logger.critical(
            "%s has changed: %d readings in a row made no sense, of whichever match; not found in %s: %s. What was "
            "read is kept with its errors in the admin; %s is tried every %g minutes until its adapter, or its "
            "selectors in the configuration, know the new layout",
            ref.source.name,
            failures,
            ref.url,
            why,
            ref.source.key,
            drift.retry_seconds / 60,
            extra={
                "action": "source_lost",
                "match_id": ref.key,
                "source": ref.source.key,
                "failures": failures,
                "url": ref.url,
                "selector": report.known.selector if report.known else "",
            },
        )
    source_lost.send_robust(sender=Source, source_id=ref.source_id, failures=failures, reason=why)
    return True


def _slow_changed_layout(
    ref: MatchRef, failure: Failure, decision: Decision, drift: DriftPolicy, now: datetime
) -> Decision:
    """Does the same for one match: it is polled rarely until its adapter or selectors are corrected."""
    if failure.error_class is not ErrorClass.DRIFT:
        return decision
    found = error_log.parse_failures_in_a_row(match_id=ref.match_id, source_id=ref.source_id, at_most=drift.failures)
    if found < drift.failures:
        return decision
    logger.critical(
        "%s could not be read more than %s times in a row; not found: %s. What was read is kept with its errors in the "
        "admin; %s is tried every %g minutes until its adapter knows the new layout",
        ref.url,
        drift.failures,
        failure.message,
        ref.key,
        drift.retry_seconds / 60,
        extra={"action": "layout_lost", "match_id": ref.key, "source": ref.source.key},
    )
    layout_lost.send_robust(sender=MatchRef, match_id=ref.match_id, failures=found + 1, reason=failure.message)
    at = now + timedelta(seconds=drift.retry_seconds)
    poll_times.postpone(MatchRef.objects.filter(pk=ref.pk), until=at)
    return _not_before(at, decision)


def _pause_after_failures(
    claim: Claim, ref: MatchRef, failure: Failure, decision: Decision, *, policies: Policies, now: datetime
) -> Decision:
    """Counts the failed poll. If that pauses the match, the retry waits for the end of the pause."""
    # Polls only: without its list of events the score of a match is still read.
    if claim.resource is not Resource.SCORECARD or not ERROR_RULES[failure.error_class].pauses_match:
        return decision
    until = lifecycle.after_failed_attempt(
        ref.match_id,
        reason=failure.message,
        is_dead=isinstance(decision, Dead),
        pause_after=policies.pause_after_failures,
        pause_seconds=policies.pause_seconds,
        now=now,
    )
    return _not_before(until, decision) if until else decision


def _settle(claim: Claim, note: FailureNote, decision: Decision, *, ref: MatchRef | None, now: datetime) -> None:
    if isinstance(decision, Retry):
        journal.retry_later(claim, note, at=decision.at, is_charged=decision.is_charged, now=now)
        return
    if isinstance(decision, Complete | Skip):
        with journal.finishing(claim, now=now, to_state=TaskState.SKIPPED, reason=decision.reason):
            if isinstance(decision, Complete) and ref is not None and claim.resource not in EXTRA_RESOURCES:
                late_updates.close_removed(ref.pk, now=now)
        if isinstance(decision, Skip) and ref is not None:
            later = now + timedelta(seconds=ERROR_RULES[note.error_class].longest_pause_seconds or 0)
            poll_times.postpone(MatchRef.objects.filter(pk=ref.pk), until=later)
        return
    journal.mark_dead(claim, note, reason=decision.reason, now=now)


def _note(claim: Claim, report: ErrorReport, engine: Engine) -> FailureNote:
    stage = engine.stage_of(claim)
    if stage in (Stage.NAVIGATING, Stage.INTERCEPTING) and any(
        one.status < 400 for one in evidence_of(report.error).documents
    ):
        stage = Stage.CAPTURED  # read but not parsed: the reader does both in one step
    document: dict[str, Any] = {
        "error_class": report.error_class.value,
        "error_type": report.rule.error_type.value,
        "error_code": report.error_code,
        "message": report.message[:2000],
        "stage": stage.value,
        "attempt": claim.attempt,
        "is_soft": report.rule.is_soft,
        "stretched": claim.was_stretched or claim.timeout_factor > 1,
    }
    if report.known:
        document |= {"http_status": report.http_status, "url": storable(report.known.url)}
        if report.known.retry_after_seconds:
            document["retry_after_until"] = report.now.timestamp() + report.known.retry_after_seconds
    else:
        document["stack_trace"] = report.stack_trace[-4000:]
    return FailureNote(
        error_class=report.error_class,
        reason=report.message or type(report.error).__name__,
        stage=stage,
        error=document,
        match_id=report.match_id,
    )


def _report(claim: Claim, error: Exception, source: Source, ref: MatchRef | None, now: datetime) -> ErrorReport:
    scraper = scrapers.active(ref) if ref else None
    return ErrorReport(
        source_id=source.pk,
        match_key=ref.key if ref else "",
        where=ref.key if ref else f"{source.key}'s list of matches",
        error=error,
        operation=claim.resource.value,
        attempt=claim.attempt,
        now=now,
        task_id=claim.task_id,
        match_id=ref.match_id if ref else None,
        scraper_id=scraper.pk if scraper else None,
        url=ref.url if ref else source.base_url,
        names=(ref.match.team_a, ref.match.team_b, ref.match.title, ref.source_event_id) if ref else (),
    )
