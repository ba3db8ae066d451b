"""One poll, from the claim to the commit: claim -> READ -> PARSE -> VALIDATE -> INGEST -> done.

`scrape` claims and runs a task of any resource; `scrape_scorecard` is the poll of a match. Polls of many matches run
together in batch.py; the other resources are in match_tasks.py and list_tasks.py; a failed attempt goes to failures.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.utils import timezone
from structlog.contextvars import bound_contextvars

from scraping import journal, readings
from scraping.errors import BreakerOpen, NotStored, StaleFence
from scraping.journal import Claim
from scraping.matches import endings, ingest
from scraping.matches.validate import check
from scraping.models import MatchRef, Stage
from scraping.outage.spool import HeldMatch
from scraping.payloads import Payload, Resource
from scraping.readings import Reading, evidence_from
from scraping.recovery import breakers
from scraping.worker import failures, list_tasks, match_tasks
from scraping.worker.engine import Engine, load_target
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.crash import crash_point

logger = logging.getLogger(__name__)


def scrape(task_id: int, engine: Engine) -> None:
    """Claims and runs a task if it is due and free. Raises nothing: the outcome is in the journal."""
    try:
        claim = journal.claim(
            task_id, worker_id=engine.worker_id, lease_seconds=engine.policies.lease_seconds, now=timezone.now()
        )
    except DATABASE_AWAY as error:
        engine.lost_store(error)
        return
    if claim is not None:
        run(claim, engine)


def run(claim: Claim, engine: Engine) -> None:
    names = {"task_id": claim.task_id, "job_id": claim.job_id, "attempt": claim.attempt, "match_id": None}
    with (
        engine.holding(claim),
        bound_contextvars(**names),
        readings.stages_reported_to(lambda stage: engine.progress(claim, Stage(stage))),
    ):
        try:
            TASKS[claim.resource](claim, engine)
            engine.outcomes.count(claim.source_id, is_retry=claim.is_retry, now=timezone.now())
        except Exception as error:  # noqa: BLE001 - every failure goes to the journal
            record_failure(claim, error, engine)


def record_failure(claim: Claim, error: Exception, engine: Engine) -> None:
    """Writes the failed attempt into the journal, or reports that the database is unreachable."""
    if isinstance(error, StaleFence):
        logger.warning("%s", error, extra={"action": "work_dropped"})
    elif isinstance(error, BreakerOpen):
        with suppress(StaleFence):
            journal.put_off(claim, until=error.until)
    elif not failures.record(claim, error, engine=engine):
        engine.lost_store(error)


def scrape_scorecard(claim: Claim, engine: Engine) -> None:
    """Polls a match: READ and PARSE by the reader, then VALIDATE and INGEST."""
    ref, target = load_target(claim, engine)
    crash_point("read.before")
    reading, payload = engine.reader.scorecard(target)
    ingest_reading(claim, ref, reading, payload, engine)


def ingest_reading(claim: Claim, ref: MatchRef, reading: Reading, payload: Payload, engine: Engine) -> None:
    """VALIDATE and INGEST: match, snapshot, events, counters and task state in one transaction."""
    crash_point("read.after")
    engine.progress(claim, Stage.CAPTURED)
    with evidence_from(reading):
        check(payload, expected_id=ref.source_event_id, sport=ref.match.sport)
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with evidence_from(reading), _spooled_if_not_stored(ref, payload, engine), journal.finishing(claim, now=now):
        attempt = ingest.Attempt(
            claim.worker_id,
            payload.captured_at,
            had_failures=claim.attempt > 1,
            now=now,
            mode=reading.mode.value,
            mode_reason=reading.reason,
        )
        ingested = ingest.apply(payload, ref_id=ref.pk, pace=engine.policies.pace, attempt=attempt, known=ref)
        crash_point("ingest.applied")
        breakers.record_success(claim.task_id, ref.source, ref, policies=engine.policies, now=now)
        if ingested.is_milestone and not payload.is_partial_state:  # a partial source has no more to read
            endings.sync_at_milestone(ref, now=now)
    engine.progress(claim, Stage.PERSISTED)
    if ingested.is_taken:
        engine.set_last_payload(ref.pk, payload)
    logger.debug(
        "Match %s read", ref.key, extra={"action": "match_read", "match_id": ref.key, "mode": reading.mode.value,
        "bytes_in": reading.bytes_in, "duration_ms": reading.duration_ms, "sequence": ingested.sequence}
    )  # fmt: skip


@contextmanager
def _spooled_if_not_stored(ref: MatchRef, payload: Payload, engine: Engine) -> Iterator[None]:
    """Around a commit: the error of an unreachable database carries the payload, so that it can be spooled."""
    match = held_match(ref)
    try:
        yield
    except DATABASE_AWAY as error:
        raise NotStored(f"the database did not accept it: {error}", match=match, payload=payload) from error
    if engine.keeper is not None:
        engine.keeper.stored(match, payload, interval_seconds=ref.polling_interval_seconds)


def held_match(ref: MatchRef) -> HeldMatch:
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
    Resource.SCORECARD: scrape_scorecard,
    Resource.COMMENTARY: match_tasks.scrape_commentary,
    Resource.FULL: match_tasks.scrape_full,
    Resource.LINEUPS: match_tasks.scrape_lineups,
    Resource.FIGURES: match_tasks.scrape_figures,
    Resource.SUBMISSION: match_tasks.write_submissions,
    Resource.DISCOVERY: list_tasks.scrape_discovery,
    Resource.ROUND: list_tasks.scrape_round,
}
