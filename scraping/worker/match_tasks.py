"""Tasks of one match other than its poll: gaps in events, the whole match, line-ups, players' figures, submissions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from django.utils import timezone

from scraping import jobs, journal
from scraping.errors import PayloadRejected, Transient
from scraping.jobs import submissions
from scraping.journal import Claim
from scraping.matches import events, ingest, late_updates, lineups, validate
from scraping.matches.reconcile.states import goes_backwards
from scraping.matches.validate import check, check_same_match
from scraping.models import MatchRef, Stage, SubmissionState, TaskState
from scraping.payloads import Figures, Lineups, Payload, Sport, Status
from scraping.reading.reader import Reader, Target
from scraping.readings import Reading, Request, evidence_from, note_content, note_outcome
from scraping.recovery import breakers
from scraping.stats import attempt_metrics
from scraping.worker.attempt_log import SKIPPED
from scraping.worker.engine import Engine, bind_match, load_target
from scraping.worker.left_out import LeftOut
from victoryline.lib.crash import crash_point

logger = logging.getLogger(__name__)

Found = TypeVar("Found", Lineups, Figures)


def scrape_commentary(claim: Claim, engine: Engine) -> None:
    ref, target = load_target(claim, engine)
    pages = engine.reader.older_events(target, is_enough=lambda page: _reaches(page, ref.events_through))
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with journal.finishing(claim, now=now):
        found = late_updates.add_events([event for page in pages for event in page.events], ref_id=ref.pk, now=now)
        breakers.record_success(claim.task_id, ref.source, ref, policies=engine.policies, now=now)
    logger.info(
        "%d missing events of %s found", found.added, ref.key, extra={"action": "gap_filled", "match_id": ref.key}
    )


def scrape_full(claim: Claim, engine: Engine) -> None:
    """Reads a whole match: state and every event in one transaction, or nothing.

    For a job, events that are stored already are not read again; at a turn or at the end of a match they are.
    """
    ref, target = load_target(claim, engine)
    through = ref.events_through if claim.job_id else 0

    def read() -> Payload:
        reading, payload = read_whole(engine.reader, target, is_enough=lambda page: _reaches(page, through))
        engine.progress(claim, Stage.CAPTURED)
        with evidence_from(reading):
            check(payload, expected_id=ref.source_event_id, sport=ref.match.sport)
        return payload

    payloads = [read()]
    # A score that is lower than the stored one is accepted only if it is read repeatedly.
    while (
        len(payloads) < validate.CONFIRMING_READINGS
        and ref.payload
        and not ref.has_overtaken(payloads[-1].captured_at)
        and goes_backwards(ref.payload, payloads[-1].normalized())
    ):
        payloads.append(read())
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with journal.finishing(claim, now=now):
        for payload in payloads:
            attempt = ingest.Attempt(
                claim.worker_id, payload.captured_at, had_failures=claim.attempt > 1, now=now, clock=timezone.now
            )
            ingest.apply(payload, ref_id=ref.pk, pace=engine.policies.pace, attempt=attempt)
        crash_point("ingest.applied")
        jobs.refuse_half(ref.pk, payloads[-1])
        breakers.record_success(claim.task_id, ref.source, ref, policies=engine.policies, now=now)
    status, number = payloads[-1].state.status.value, len(payloads[-1].events)
    logger.info("%s read as a whole: %s, %d events", ref.key, status, number, extra={"action": "match_read_whole"})


def read_whole(reader: Reader, target: Target, *, is_enough: Callable[[Payload], bool]) -> tuple[Reading, Payload]:
    """Returns the match with all its events in one payload, never a part of it.

    `is_enough`: everything before this page is stored already.
    """
    reading, payload = reader.scorecard(replace(target, is_quiet=True))
    if payload.is_partial_state:
        with evidence_from(reading):
            raise PayloadRejected(
                "only a part of the match could be read, and a job takes whole ones", url=target.ref.url
            )
    state, must_have_events = payload.state, bool(payload.events or payload.lacks_events)
    if state.sport is Sport.CRICKET:  # none before the first ball, or where the match was called off before it
        must_have_events |= any(one.runs or one.wickets or one.overs != "0.0" for one in state.innings)
    else:
        must_have_events |= state.status in (Status.LIVE, Status.COMPLETED)  # an empty list that is complete says so
    if payload.events_are_complete or not must_have_events:
        return reading, payload
    pages = reader.older_events(target, is_enough=is_enough)
    for page in pages:
        if page.events_are_complete:  # one page has all events, and the state that they agree with
            return reading, page
    if not any(event.ordinal is not None for page in pages for event in page.events):
        raise Transient("the list of events does not agree with the score yet", url=target.ref.url)
    # Each event once, in the source's order; of two versions of one event that of the later page.
    merged = {event.id: event for one in (payload, *pages) for event in one.events}
    return reading, payload.model_copy(update={"events": tuple(merged.values())})


def _reaches(page: Payload, through: int) -> bool:
    """Returns whether this page of events reaches down to the events that are stored."""
    ordinals = [event.ordinal for event in page.events if event.ordinal is not None]
    return not ordinals or events.reaches(ordinals, through)


def scrape_lineups(claim: Claim, engine: Engine) -> None:
    """Reads the line-ups. A reading at the wrong time is not stored; the task is skipped, not failed."""
    ref, target = load_target(claim, engine)
    adapter = target.adapter
    requests = adapter.lineup_requests(target.ref, target.site.base_url)
    found, left_out = _read_extra(claim, engine, target, requests, adapter.parse_lineups, ref=ref)
    now, refusal = timezone.now(), lineups.refusal_of(found, ref.match)
    state = TaskState.SKIPPED if refusal else TaskState.SUCCESS
    note_outcome(SKIPPED if refusal else "read")
    finishing = journal.finishing(claim, now=now, to_state=state, reason=refusal)
    with left_out.evidence_stored(now=now), finishing:
        stored = lineups.store(found, ref_id=ref.pk, now=now)
        attempt = ingest.Attempt(claim.worker_id, found.captured_at, had_failures=False, now=now, is_replayed=True)
        late_updates.add_toss(found, ref_id=ref.pk, pace=engine.policies.pace, attempt=attempt)
        left_out.report()
        breakers.record_success(claim.task_id, ref.source, ref, policies=engine.policies, now=now)
    if stored.refusal:
        logger.info("Line-ups of %s: %s", ref.key, stored.refusal, extra={"action": "lineups_not_kept"})
    elif stored.changed_sides:
        sides = " and ".join(sorted(stored.changed_sides))
        logger.info("Line-ups of %s changed: %s", ref.key, sides, extra={"action": "lineups_read"})


def scrape_figures(claim: Claim, engine: Engine) -> None:
    ref, target = load_target(claim, engine)
    adapter = target.adapter
    requests = adapter.figure_requests(target.ref, target.site.base_url)
    found, left_out = _read_extra(claim, engine, target, requests, adapter.parse_figures, ref=ref)
    now = timezone.now()
    with left_out.evidence_stored(now=now), journal.finishing(claim, now=now):
        number = lineups.store_figures(found, ref_id=ref.pk)
        left_out.report()
        breakers.record_success(claim.task_id, ref.source, ref, policies=engine.policies, now=now)
    logger.info("%d figures of players of %s are new", number, ref.key, extra={"action": "figures_read"})


def _read_extra(
    claim: Claim,
    engine: Engine,
    target: Target,
    requests: tuple[Request, ...],
    parse: Callable[[Reading], Found],
    *,
    ref: MatchRef,
) -> tuple[Found, LeftOut]:
    """READ, PARSE and VALIDATE of documents other than the score."""
    reading = engine.reader.extra_documents(target, requests)
    engine.progress(claim, Stage.CAPTURED)
    with evidence_from(reading):
        found = parse(reading)
        check_same_match(found, expected_id=target.ref.source_event_id)
    engine.progress(claim, Stage.VALIDATED)
    engine.read_stats.unknown(target.site.key, found)
    attempt_metrics.completeness(target.site.key, found)
    note_content(found.payload_schema)
    left_out = LeftOut(claim, ref.source, ref)
    left_out.parts_of(reading, found)
    return found, left_out


def write_submissions(claim: Claim, engine: Engine) -> None:
    """Validates and ingests the payloads that were submitted for a match, in their order. Reads nothing."""
    assert claim.ref_id is not None
    ref = MatchRef.objects.select_related("source").get(pk=claim.ref_id)
    bind_match(ref)
    engine.progress(claim, Stage.CAPTURED)
    now = timezone.now()
    with journal.finishing(claim, now=now):
        ended = submissions.write_waiting(ref.pk, claim, pace=engine.policies.pace, now=now)
        is_forgotten = not ended and submissions.end_forgotten(ref.pk, now=now)
        crash_point("ingest.applied")
    engine.progress(claim, Stage.PERSISTED)
    if is_forgotten:
        days = submissions.FORGOTTEN.days
        extra = {"action": "submissions_ended", "match_id": ref.key}
        logger.warning("No submission for %s in %d days: its last state is final", ref.key, days, extra=extra)
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
