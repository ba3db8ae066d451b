"""The flow of a task, from the claim to the commit: claim -> READ -> PARSE -> VALIDATE -> INGEST -> done.

A hint names one task or many. Polls of matches run together: claimed by one statement, read concurrently, committed in
batches as they arrive. Most find no change; written one by one, a dozen statements each, the journal would cost ten
times the reading, and written together a fraction of a statement each (unchanged.py). A failure concerns its own task
only (failures.py). The other resources are in match_tasks.py and list_tasks.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import DatabaseError
from django.utils import timezone
from structlog.contextvars import bind_contextvars

from scraping import journal, readings
from scraping.errors import BreakerOpen, NotStored, StaleFence
from scraping.journal import Claim
from scraping.matches import endings, ingest
from scraping.matches.validate import check
from scraping.models import MatchRef, Stage
from scraping.outage.spool import HeldMatch
from scraping.payloads import Payload, Resource
from scraping.reading.reader import Target
from scraping.readings import Reading, evidence_from
from scraping.recovery import breakers
from scraping.stats import attempt_metrics
from scraping.worker import attempt_log, failures, list_tasks, match_tasks, unchanged
from scraping.worker.engine import Engine, target_of
from scraping.worker.left_out import LeftOut
from scraping.worker.unchanged import RowsChangedError, UnchangedReading
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.crash import crash_point
from victoryline.lib.statements import statement_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Poll:
    claim: Claim
    ref: MatchRef
    target: Target
    context: Context


@dataclass(frozen=True)
class ReadPoll(Poll):
    reading: Reading
    payload: Payload


def scrape(task_ids: Sequence[int], engine: Engine) -> None:
    """Claims and runs those of the tasks that are due and free. Raises nothing: the outcomes are in the journal."""
    lease, now = engine.policies.lease_seconds, timezone.now()
    try:
        claims = journal.claim_many(task_ids, worker_id=engine.worker_id, lease_seconds=lease, now=now)
    except DATABASE_AWAY as error:
        engine.lost_store(error)
        return
    run(claims, engine)


def run(claims: Sequence[Claim], engine: Engine) -> None:
    with ExitStack() as stack:
        for claim in claims:
            stack.enter_context(engine.holding(claim))  # until the end at the latest: each is released when it is done
        poll([claim for claim in claims if claim.resource is Resource.SCORECARD], engine)
        for claim in claims:
            if claim.resource is not Resource.SCORECARD:
                task = partial(TASKS[claim.resource], claim, engine)
                _attempt(claim, _context_of(claim, engine), engine, task)


def poll(claims: Sequence[Claim], engine: Engine) -> None:
    """Polls matches: READ and PARSE by the reader, then VALIDATE and INGEST."""
    polls = _prepare(claims, engine) if claims else []
    if not polls:
        return
    crash_point("read.before")
    for results in engine.reader.batches([one.target for one in polls], [one.context for one in polls]):
        read: list[ReadPoll] = []
        for result in results:
            one = polls[result.number]
            if result.reading is not None and result.payload is not None:
                read.append(ReadPoll(one.claim, one.ref, one.target, one.context, result.reading, result.payload))
            else:
                assert result.error is not None
                _fail(one.claim, one.context, engine, result.error)
        _commit(read, engine)


def _context_of(claim: Claim, engine: Engine) -> Context:
    """Returns the context of an attempt: its log lines name the task, and its stages are reported to the engine."""

    def set_stage(stage: str) -> None:
        engine.progress(claim, Stage(stage) if stage else None)

    context = copy_context()
    names = {"task_id": claim.task_id, "job_id": claim.job_id, "attempt": claim.attempt, "match_id": None}
    context.run(bind_contextvars, **names)
    context.run(readings.attempt_facts.set, readings.AttemptFacts())
    context.run(readings.stage_listener.set, set_stage)
    return context


def _attempt(claim: Claim, context: Context, engine: Engine, step: Callable[[], None]) -> None:
    """Runs the last step of an attempt. Every failure goes to the journal."""
    try:
        context.run(step)
    except Exception as error:  # noqa: BLE001 - as the docstring says
        _fail(claim, context, engine, error)
    else:
        engine.outcomes.count(claim.source_id, is_retry=claim.is_retry, now=timezone.now())
        engine.release(claim)
        _count_success(context)
        context.run(attempt_log.succeeded, claim)


def _count_success(context: Context) -> None:
    facts = context[readings.attempt_facts]
    if facts is not None and facts.source:
        attempt_metrics.succeeded(facts.source)


def _fail(claim: Claim, context: Context, engine: Engine, error: Exception) -> None:
    context.run(record_failure, claim, error, engine)
    engine.release(claim)


def record_failure(claim: Claim, error: Exception, engine: Engine) -> None:
    """Writes the failed attempt into the journal, or reports that the database is unreachable."""
    if isinstance(error, StaleFence):
        logger.warning("%s", error, extra={"action": "work_dropped"})
    elif isinstance(error, BreakerOpen):
        with suppress(StaleFence):
            journal.put_off(claim, until=error.until)
    elif not failures.record(claim, error, engine=engine):
        engine.lost_store(error)


def _prepare(claims: Sequence[Claim], engine: Engine) -> list[Poll]:
    """Loads the targets. Tasks whose breakers are open return to the journal."""
    try:
        refs = {ref.pk: ref for ref in unchanged.for_polling([claim.ref_id for claim in claims if claim.ref_id])}
    except DATABASE_AWAY as error:
        engine.lost_store(error)
        return []
    polls = []
    for claim in claims:
        context, ref = _context_of(claim, engine), refs.get(claim.ref_id or 0)
        try:
            if ref is None:
                raise LookupError(f"the match of task {claim.task_id} does not exist any more")
            polls.append(Poll(claim, ref, context.run(target_of, claim, ref, engine), context))
        except Exception as error:  # noqa: BLE001 - every failure goes to the journal
            _fail(claim, context, engine, error)
    return polls


def _commit(read: Sequence[ReadPoll], engine: Engine) -> None:
    """Writes unchanged readings together, the others one by one."""
    now = timezone.now()
    same: list[UnchangedReading] = []
    others: list[ReadPoll] = []
    for one in read:
        last = engine.matches.last_payload(one.ref.pk)
        if unchanged.is_unchanged(one.claim, one.ref, one.payload, last, mode=one.reading.mode.value):
            same.append(unchanged.plan(one.claim, one.ref, one.payload, pace=engine.policies.pace, now=now))
        else:
            others.append(one)
    contexts = {one.claim.task_id: one.context for one in read}
    if same and not _commit_unchanged(same, contexts, engine, now):
        split = {one.claim.task_id for one in same}
        others = [one for one in read if one.claim.task_id in split] + others
    for one in others:
        ingest_this = partial(ingest_reading, one.claim, one.ref, one.reading, one.payload, engine)
        _attempt(one.claim, one.context, engine, ingest_this)


def _commit_unchanged(
    same: Sequence[UnchangedReading], contexts: Mapping[int, Context], engine: Engine, now: datetime
) -> bool:
    """Returns False if they must be written one by one: a row has changed, or a lease was lost."""
    claims = [one.claim for one in same]
    try:
        crash_point("read.after")
        with journal.finishing(*claims, now=now):
            scraper_ids = unchanged.write(same, now=now)
            crash_point("ingest.applied")
    except (RowsChangedError, StaleFence) as reason:
        logger.debug("Written one by one: %s", reason, extra={"action": "group_split"})
        return False
    except DATABASE_AWAY as error:
        for one in same:
            lost = NotStored(f"the database did not accept it: {error}", match=_held(one.ref), payload=one.payload)
            lost.__cause__ = error
            engine.lost_store(lost)
        return True
    except DatabaseError as error:
        logger.warning("Written one by one: %s", error, extra={"action": "group_split", **statement_of(error)})
        return False
    for one in same:
        _set_stored(one.ref, one.payload, one.next_poll.seconds, engine)
        engine.outcomes.count(one.claim.source_id, now=now)
        engine.release(one.claim)
        _count_success(contexts[one.claim.task_id])
        if engine.shows_unchanged(one.ref.unchanged_polls):
            contexts[one.claim.task_id].run(_log_unchanged, one.claim, scraper_ids[one.ref.pk])
    return True


def _log_unchanged(claim: Claim, scraper_id: UUID) -> None:
    readings.note_outcome("unchanged", scraper_id=scraper_id)
    attempt_log.succeeded(claim)


def ingest_reading(claim: Claim, ref: MatchRef, reading: Reading, payload: Payload, engine: Engine) -> None:
    """VALIDATE and INGEST: match, snapshot, events, counters and task state in one transaction."""
    crash_point("read.after")
    engine.progress(claim, Stage.CAPTURED)
    with evidence_from(reading):
        check(payload, expected_id=ref.source_event_id, sport=ref.match.sport)
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    left_out = LeftOut(claim, ref.source, ref)
    left_out.parts_of(reading, payload, known=ref.left_out)
    with (
        evidence_from(reading),
        _spooled_if_not_stored(ref, payload),
        left_out.evidence_stored(now=now),
        journal.finishing(claim, now=now),
    ):
        attempt = ingest.Attempt(
            claim.worker_id,
            payload.captured_at,
            had_failures=claim.attempt > 1,
            now=now,
            mode=reading.mode.value,
            mode_reason=reading.reason,
            clock=timezone.now,
        )
        ingested = ingest.apply(payload, ref_id=ref.pk, pace=engine.policies.pace, attempt=attempt, known=ref)
        crash_point("ingest.applied")
        left_out.report()
        breakers.record_success(claim.task_id, ref.source, ref, policies=engine.policies, now=now)
        if ingested.is_milestone and not payload.is_partial_state:  # a partial source has no more to read
            endings.sync_at_milestone(ref, now=now)
    engine.progress(claim, Stage.PERSISTED)
    _set_stored(ref, payload if ingested.is_taken else None, ref.polling_interval_seconds, engine)
    outcome = "overtaken" if ingested.is_overtaken else "changed" if ingested.is_changed else "unchanged"
    readings.note_outcome(
        outcome,
        scraper_id=ingested.scraper_id,
        is_shown=outcome != "unchanged" or engine.shows_unchanged(ref.unchanged_polls),
    )


@contextmanager
def _spooled_if_not_stored(ref: MatchRef, payload: Payload) -> Iterator[None]:
    """Around a commit: the error of an unreachable database carries the payload, so that it can be spooled."""
    try:
        yield
    except DATABASE_AWAY as error:
        raise NotStored(f"the database did not accept it: {error}", match=_held(ref), payload=payload) from error


def _set_stored(ref: MatchRef, payload: Payload | None, interval_seconds: float, engine: Engine) -> None:
    engine.matches.stored(_held(ref), payload, interval_seconds=interval_seconds, now=time.monotonic())
    if payload is not None:
        attempt_metrics.updated(ref.key, payload.captured_at, timezone.now())


def _held(ref: MatchRef) -> HeldMatch:
    """Returns the facts that reading this match needs while the database is unreachable."""
    return HeldMatch(
        ref_id=ref.pk,
        key=ref.key,
        sport=ref.match.sport,
        site=ref.source.site,
        source_event_id=ref.source_event_id,
        url=ref.url,
        min_interval_seconds=ref.source.min_interval_seconds,
    )


TASKS = {
    Resource.COMMENTARY: match_tasks.scrape_commentary,
    Resource.FULL: match_tasks.scrape_full,
    Resource.LINEUPS: match_tasks.scrape_lineups,
    Resource.FIGURES: match_tasks.scrape_figures,
    Resource.SUBMISSION: match_tasks.write_submissions,
    Resource.DISCOVERY: list_tasks.scrape_discovery,
    Resource.ROUND: list_tasks.scrape_round,
}
