"""One poll, from the claim to the commit: READ, PARSE, CHECK, INGEST. Each line is a call into one stage."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.utils import timezone

from scraping import jobs, journal, readings
from scraping.errors import BreakerOpen, Gone, NotStored, PayloadRejected, StaleFence
from scraping.jobs import submissions
from scraping.journal import Claim, error_log
from scraping.matches import discovery, endings, events, ingest, late_updates, pairing, validate
from scraping.matches.reconcile.states import goes_backwards
from scraping.matches.validate import check
from scraping.models import (
    MatchLifecycle,
    MatchRef,
    ScrapeJob,
    ScraperStatus,
    Source,
    Stage,
    SubmissionState,
    TaskState,
)
from scraping.outage.spool import HeldMatch
from scraping.payloads import Payload, Resource
from scraping.reading.reader import Target
from scraping.reading.whole import read_whole
from scraping.readings import Reading, RefInfo, evidence_from
from scraping.recovery import breakers
from scraping.sources import adapter_for
from scraping.worker import failures, fixture_reads, lineup_reads
from scraping.worker.engine import Engine
from victoryline.lib.crash import crash_point
from victoryline.lib.database_errors import DATABASE_AWAY
from victoryline.lib.logs import bind, bound

logger = logging.getLogger(__name__)

QUIET_POLLS = 12
# After a pause, a silence or failed tasks nothing that was remembered of the match is relied on.
UNWELL = (ScraperStatus.STOPPED, ScraperStatus.STALE, ScraperStatus.ERROR)


def scrape(task_id: int, engine: Engine) -> None:
    """Do one task if it is there to be done. Raises nothing: the outcome, good or bad, is in the journal."""
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
    """Do a task that was claimed."""
    names = {"task_id": claim.task_id, "job_id": claim.job_id, "attempt": claim.attempt, "match_id": None}
    with (
        engine.holding(claim),
        bound(**names),
        readings.stages_reported_to(lambda stage: engine.progress(claim, Stage(stage))),
    ):
        try:
            FLOWS[claim.resource](claim, engine)
            engine.outcomes.count(claim.source_id, is_retry=claim.is_retry, now=timezone.now())
        except Exception as error:  # noqa: BLE001 - every failure has a place in the journal
            write_down(claim, error, engine)


def write_down(claim: Claim, error: Exception, engine: Engine) -> None:
    """The attempt did not succeed: what that means is in the journal, or the worker knows that the database is away."""
    if isinstance(error, StaleFence):
        logger.warning("%s", error, extra={"action": "work_dropped"})
    elif isinstance(error, BreakerOpen):
        with suppress(StaleFence):
            journal.put_off(claim, until=error.until)
    elif not failures.record(claim, error, engine=engine):
        engine.lost_store(error)


def scrape_scorecard(claim: Claim, engine: Engine) -> None:
    ref, target = _target(claim, engine)
    crash_point("read.before")
    reading, payload = engine.reader.scorecard(target)
    take_in(claim, ref, reading, payload, engine)


def take_in(claim: Claim, ref: MatchRef, reading: Reading, payload: Payload, engine: Engine) -> None:
    """From the reading to the commit."""
    crash_point("read.after")
    engine.progress(claim, Stage.CAPTURED)
    with evidence_from(reading):
        check(payload, expected_id=ref.source_event_id, sport=ref.match.sport)
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with evidence_from(reading), _kept_if_not_stored(ref, payload, engine), journal.finishing(claim, now=now):
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
        if ingested.is_milestone and not payload.is_partial_state:
            endings.sync_at_milestone(ref, now=now)
    engine.progress(claim, Stage.PERSISTED)
    if ingested.is_taken:
        engine.told.put(ref.pk, payload)
    logger.debug(
        "Match %s read", ref.key, extra={"action": "match_read", "match_id": ref.key, "mode": reading.mode.value,
        "bytes_in": reading.bytes_in, "duration_ms": reading.duration_ms, "sequence": ingested.sequence}
    )  # fmt: skip


def scrape_commentary(claim: Claim, engine: Engine) -> None:
    """Fill the holes in a match's list of events."""
    ref, target = _target(claim, engine)
    pages = engine.reader.older_events(target, is_enough=lambda page: _reaches(page, ref.events_through))
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with journal.finishing(claim, now=now):
        found = late_updates.add_events([event for page in pages for event in page.events], ref_id=ref.pk, now=now)
        breakers.record_success(claim.task_id, ref.source, ref, policies=engine.policies, now=now)
    logger.info(
        "%d missing events of %s found", found.added, ref.key, extra={"action": "gap_filled", "match_id": ref.key}
    )


def scrape_discovery(claim: Claim, engine: Engine) -> None:
    source = _source(claim, engine)
    adapter = adapter_for(source.adapter_key)
    reading = engine.reader.listing(
        source.site,
        adapter,
        is_suspect=claim.charged_attempts > 0,
        timeout_factor=claim.timeout_factor,
        visits_from=engine.traffic.visits_from(source.pk, timezone.now()),
    )
    with evidence_from(reading):
        found = adapter.parse_list(reading, source.base_url)
    coming = fixture_reads.read(source, adapter, engine, now=timezone.now())
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with journal.finishing(claim, now=now):
        new = discovery.register(source, (*coming.found, *found), now=now, fixtures_at=coming.noted_at)
        breakers.record_success(claim.task_id, source, policies=engine.policies, now=now)
    if new:
        logger.info("%d new matches at %s", new, source.key, extra={"action": "matches_discovered"})
    pairing.sweep_quietly(now=now)


def scrape_full(claim: Claim, engine: Engine) -> None:
    """A whole match: state and every event in one transaction, or nothing.

    For a job, events that are known already are not read again; at a turn or at the end of a match they are.
    """
    ref, target = _target(claim, engine)
    through = ref.events_through if claim.job_id else 0

    def read() -> Payload:
        reading, payload = read_whole(engine.reader, target, is_enough=lambda page: _reaches(page, through))
        engine.progress(claim, Stage.CAPTURED)
        with evidence_from(reading):
            check(payload, expected_id=ref.source_event_id, sport=ref.match.sport)
        return payload

    payloads = [read()]
    while len(payloads) < validate.CONFIRMING_READINGS and _goes_down(ref, payloads[-1]):
        payloads.append(read())
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with journal.finishing(claim, now=now):
        for payload in payloads:
            attempt = ingest.Attempt(claim.worker_id, payload.captured_at, had_failures=claim.attempt > 1, now=now)
            ingest.apply(payload, ref_id=ref.pk, pace=engine.policies.pace, attempt=attempt)
        crash_point("ingest.applied")
        jobs.refuse_half(ref.pk, payloads[-1])
        breakers.record_success(claim.task_id, ref.source, ref, policies=engine.policies, now=now)
        jobs.keep_outcome(claim.task_id, TaskState.SUCCESS)
    status, number = payloads[-1].state.status.value, len(payloads[-1].events)
    logger.info("%s read as a whole: %s, %d events", ref.key, status, number, extra={"action": "match_read_whole"})


def scrape_round(claim: Claim, engine: Engine) -> None:
    """Look up the matches of a round, and write down everything that its job expects before any of it is read."""
    assert claim.job_id is not None
    job, source = ScrapeJob.objects.get(pk=claim.job_id), _source(claim, engine)
    adapter, asked = adapter_for(source.adapter_key), job.parameters["round"]
    try:
        visits_from = engine.traffic.visits_from(source.pk, timezone.now())
        reading = engine.reader.round_list(source.site, adapter, asked, visits_from=visits_from)
    except Gone as gone:  # no match is over because a round was misspelt
        raise PayloadRejected(f"the source knows nothing of {job.name}: {gone}", url=gone.url) from gone
    with evidence_from(reading):
        found = adapter.parse_round(reading, source.base_url, asked)
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with evidence_from(reading), journal.finishing(claim, now=now):
        opened = jobs.expect(job.pk, {source: found}, now=now)
        error_log.resolve_task(claim.task_id, now=now)
        breakers.record_success(claim.task_id, source, policies=engine.policies, now=now)
    logger.info("%s: %d matches, %d to be read", job.name, len(found), opened, extra={"action": "round_discovered"})


def _goes_down(ref: MatchRef, payload: Payload) -> bool:
    """A score that goes down is believed when it is read often enough."""
    return bool(ref.payload) and goes_backwards(ref.payload, payload.normalized())


def scrape_lineups(claim: Claim, engine: Engine) -> None:
    lineup_reads.read_lineups(claim, engine, *_target(claim, engine))


def scrape_figures(claim: Claim, engine: Engine) -> None:
    lineup_reads.read_figures(claim, engine, *_target(claim, engine))


def take_submissions(claim: Claim, engine: Engine) -> None:
    """Nothing is read: what was sent to us takes the way of a reading from CHECK on, in the order in which it came."""
    assert claim.ref_id is not None
    ref = MatchRef.objects.select_related("source").get(pk=claim.ref_id)
    bind(match_id=ref.key)
    engine.progress(claim, Stage.CAPTURED)
    now = timezone.now()
    writing = submissions.Writing(
        claim.task_id, claim.worker_id, had_failures=claim.attempt > 1, pace=engine.policies.pace, now=now
    )
    with journal.finishing(claim, now=now):
        ended = submissions.write_waiting(ref.pk, writing)
        is_forgotten = not ended and submissions.end_forgotten(ref.pk, now=now)
        crash_point("ingest.applied")
    engine.progress(claim, Stage.PERSISTED)
    if is_forgotten:
        days = submissions.FORGOTTEN.days
        extra = {"action": "submissions_ended", "match_id": ref.key}
        logger.warning("Nothing was sent for %s in %d days: what is known of it is final", ref.key, days, extra=extra)
    refused = [one for one in ended if one.state == SubmissionState.REFUSED]
    logger.log(
        logging.WARNING if refused else logging.DEBUG,
        "%d submissions for %s written, %d refused%s",
        len(ended) - len(refused),
        ref.key,
        len(refused),
        f": {refused[0].reason}" if refused else "",
        extra={"action": "submissions_written", "match_id": ref.key},
    )


FLOWS = {
    Resource.SCORECARD: scrape_scorecard,
    Resource.COMMENTARY: scrape_commentary,
    Resource.DISCOVERY: scrape_discovery,
    Resource.FULL: scrape_full,
    Resource.ROUND: scrape_round,
    Resource.LINEUPS: scrape_lineups,
    Resource.FIGURES: scrape_figures,
    Resource.SUBMISSION: take_submissions,
}


def _source(claim: Claim, engine: Engine) -> Source:
    source = Source.objects.select_related("breaker").get(pk=claim.source_id)
    breakers.guard(claim.task_id, source, policies=engine.policies, now=timezone.now())
    return source


def _target(claim: Claim, engine: Engine) -> tuple[MatchRef, Target]:
    assert claim.ref_id is not None
    ref = MatchRef.objects.select_related("source__breaker", "match", "breaker").get(pk=claim.ref_id)
    return ref, target_of(claim, ref, engine)


def target_of(claim: Claim, ref: MatchRef, engine: Engine) -> Target:
    """What is to be read for this task, if its breakers let it through."""
    bind(match_id=ref.key)
    is_fresh = _begins_anew(ref)
    if is_fresh:
        engine.take_configuration()
    breakers.guard(claim.task_id, ref.source, ref, policies=engine.policies, now=timezone.now())
    return Target(
        ref.pk,
        ref.source.site,
        RefInfo(ref.source_event_id, ref.url),
        adapter_for(ref.source.adapter_key),
        is_suspect=claim.charged_attempts > 0,
        is_fresh=is_fresh,
        is_quiet=ref.unchanged_polls >= QUIET_POLLS,
        timeout_factor=claim.timeout_factor,
        visits_from=engine.traffic.visits_from(ref.source_id, timezone.now()),
    )


def _begins_anew(ref: MatchRef) -> bool:
    """Its scraper was replaced (see scrapers.restart), or has lost its way."""
    is_unwell = ref.match.lifecycle == MatchLifecycle.ACTIVE and ref.match.scraper_status in UNWELL
    return is_unwell or (bool(ref.read_mode_since) and not ref.read_mode)


@contextmanager
def _kept_if_not_stored(ref: MatchRef, payload: Payload, engine: Engine) -> Iterator[None]:
    """Around a commit: the reading is in the database afterwards, or in the error, never nowhere."""
    match = held_match(ref)
    try:
        yield
    except DATABASE_AWAY as error:
        raise NotStored(f"the database did not take it: {error}", match=match, payload=payload) from error
    if engine.keeper is not None:
        engine.keeper.stored(match, payload, interval_seconds=ref.polling_interval_seconds)


def held_match(ref: MatchRef) -> HeldMatch:
    return HeldMatch(
        ref_id=ref.pk,
        key=ref.key,
        sport=ref.match.sport,
        site=ref.source.site,
        source_event_id=ref.source_event_id,
        url=ref.url,
        min_interval_seconds=ref.source.min_interval_seconds,
    )


def _reaches(page: Payload, through: int) -> bool:
    """Does this page of events come down to what is known already?"""
    ordinals = [event.ordinal for event in page.events if event.ordinal is not None]
    return not ordinals or events.reaches(ordinals, through)
