"""One poll, from the claim to the commit: READ, PARSE, CHECK, INGEST. Each line is a call into one stage."""

from __future__ import annotations

import logging
from contextlib import suppress

from django.utils import timezone

from scraping import breakers, discover, events, failures, ingest, journal
from scraping.check import check
from scraping.engine import Engine
from scraping.errors import BreakerOpen, StaleFence
from scraping.journal import Claim
from scraping.models import MatchRef, Source, Stage
from scraping.payloads import Payload, Resource
from scraping.reading.reader import Target
from scraping.readings import RefInfo
from scraping.sources import adapter_for
from victoryline.lib.logs import bound

logger = logging.getLogger(__name__)

QUIET_POLLS = 12


def scrape(task_id: int, engine: Engine) -> None:
    """Do one task if it is there to be done. Raises nothing: the outcome, good or bad, is in the journal."""
    claim = journal.claim(
        task_id, worker_id=engine.worker_id, lease_seconds=engine.policies.lease_seconds, now=timezone.now()
    )
    if claim is None:
        return
    with engine.holding(claim), bound(task_id=claim.task_id, job_id=claim.job_id, attempt=claim.attempt):
        try:
            FLOWS[claim.resource](claim, engine)
        except StaleFence as error:
            logger.warning("%s", error, extra={"action": "work_dropped"})
        except BreakerOpen as refusal:
            with suppress(StaleFence):
                journal.put_off(claim, until=refusal.until)
        except Exception as error:  # noqa: BLE001 - every failure has a place in the journal
            failures.record(claim, error, engine=engine)


def scrape_scorecard(claim: Claim, engine: Engine) -> None:
    ref, target = _target(claim)
    engine.progress(claim, Stage.NAVIGATING)
    reading, payload = engine.reader.scorecard(target, is_quiet=ref.unchanged_polls >= QUIET_POLLS)
    engine.progress(claim, Stage.CAPTURED)
    check(payload, expected_id=ref.source_event_id, sport=ref.match.sport)
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with journal.finishing(claim, now=now):
        attempt = ingest.Attempt(claim.worker_id, payload.captured_at, had_failures=claim.attempt > 1, now=now)
        ingested = ingest.apply(payload, ref_id=ref.pk, pace=engine.policies.pace, attempt=attempt)
        breakers.record_success(ref, engine.policies.breaker, now=now)
    logger.debug(
        "Match %s read", ref.key, extra={"action": "match_read", "match_id": ref.key, "mode": reading.mode.value,
        "bytes_in": reading.bytes_in, "duration_ms": reading.duration_ms, "sequence": ingested.sequence}
    )  # fmt: skip


def scrape_commentary(claim: Claim, engine: Engine) -> None:
    """Fill the holes in a match's list of events."""
    ref, target = _target(claim)
    engine.progress(claim, Stage.NAVIGATING)
    pages = engine.reader.older_events(target, is_enough=lambda page: _reaches(page, ref.events_through))
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with journal.finishing(claim, now=now):
        found = ingest.add_events([event for page in pages for event in page.events], ref_id=ref.pk, now=now)
    logger.info(
        "%d missing events of %s found", found.added, ref.key, extra={"action": "gap_filled", "match_id": ref.key}
    )


def scrape_discovery(claim: Claim, engine: Engine) -> None:
    source = Source.objects.get(pk=claim.source_id)
    adapter = adapter_for(source.key)
    engine.progress(claim, Stage.NAVIGATING)
    reading = engine.reader.listing(source.key, adapter, source.base_url)
    found = adapter.parse_list(reading, source.base_url)
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with journal.finishing(claim, now=now):
        new = discover.register(source, found, now=now)
    if new:
        logger.info("%d new matches at %s", new, source.key, extra={"action": "matches_discovered"})


FLOWS = {
    Resource.SCORECARD: scrape_scorecard,
    Resource.COMMENTARY: scrape_commentary,
    Resource.DISCOVERY: scrape_discovery,
}


def _target(claim: Claim) -> tuple[MatchRef, Target]:
    assert claim.ref_id is not None
    ref = MatchRef.objects.select_related("source", "match", "breaker").get(pk=claim.ref_id)
    breakers.guard(ref, now=timezone.now())
    info = RefInfo(ref.source_event_id, ref.url)
    return ref, Target(ref.pk, ref.source.key, info, adapter_for(ref.source.key))


def _reaches(page: Payload, through: int) -> bool:
    """Does this page of events come down to what is known already?"""
    ordinals = [event.ordinal for event in page.events if event.ordinal is not None]
    return not ordinals or events.reaches(ordinals, through)
