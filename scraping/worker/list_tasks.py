"""Tasks that read lists of a source: its matches of today, the fixtures of the coming days, the matches of a round."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import date, datetime, timedelta

from django.utils import timezone

from scraping import jobs, journal
from scraping.errors import (
    AuthExpired,
    Blocked,
    BreakerOpen,
    Gone,
    PayloadRejected,
    ResourceLost,
    SchemaBreak,
    ScrapingError,
)
from scraping.journal import Claim, error_log
from scraping.matches import discovery, pairing
from scraping.models import ScrapeJob, Source, Stage
from scraping.payloads import DiscoveredMatch
from scraping.readings import Document, Reading, ReadMode, RefInfo, evidence_from
from scraping.recovery import breakers
from scraping.sources import adapter_for
from scraping.sources.base import Adapter, ListPlan
from scraping.worker.engine import Engine, load_source
from scraping.worker.left_out import LeftOut

logger = logging.getLogger(__name__)

FIXTURES_EVERY = timedelta(minutes=30)
FIXTURES_RETRY = timedelta(minutes=5)  # after days that could not be read
FIXTURE_DAYS = 4  # today and the next three
MAX_FIXTURE_LISTS = 24  # per day, of a source whose first list names others
NOT_FOUND = 404
PlanKey = tuple[str, tuple[tuple[str, bytes | None], ...]]  # page, and address and body of each request
FAILS_EVERY_DAY = (Blocked, AuthExpired, BreakerOpen, ResourceLost)


def scrape_discovery(claim: Claim, engine: Engine) -> None:
    """Registers the matches that a source lists, with the fixtures of the coming days."""
    source = load_source(claim, engine)
    adapter = adapter_for(source.adapter_key)
    reading = engine.reader.match_list(
        source.site,
        adapter,
        is_suspect=claim.charged_attempts > 0,
        timeout_factor=claim.timeout_factor,
        visits_from=engine.traffic.visits_from(source.pk, timezone.now()),
    )
    left_out = LeftOut(claim, source)
    with left_out.rows_of(reading, engine):
        found = adapter.parse_list(reading, source.base_url)
    fixtures, fixtures_at = _read_fixtures(source, adapter, engine, left_out, now=timezone.now())
    engine.progress(claim, Stage.VALIDATED)
    now = timezone.now()
    with left_out.evidence_stored(now=now), journal.finishing(claim, now=now):
        new = discovery.register(source, (*fixtures, *found), now=now, fixtures_at=fixtures_at)
        left_out.report()
        breakers.record_success(claim.task_id, source, policies=engine.policies, now=now)
    if new:
        logger.info("%d new matches at %s", new, source.key, extra={"action": "matches_discovered"})
    try:
        pairing.sweep(now=now)
    except Exception:  # the task is done already; the next list tries again
        logger.exception("Matches could not be compared", extra={"action": "sweep_failed"})


def scrape_round(claim: Claim, engine: Engine) -> None:
    """Reads the matches of a round, and opens a task for each of them in one transaction."""
    assert claim.job_id is not None
    job, source = ScrapeJob.objects.get(pk=claim.job_id), load_source(claim, engine)
    adapter, asked = adapter_for(source.adapter_key), job.parameters["round"]
    try:
        reading = _read_list(source, adapter.round_plan(source.base_url, asked), engine)
    except Gone as gone:  # a misspelt round; no match has ended
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


def _read_list(source: Source, plan: ListPlan, engine: Engine) -> Reading:
    visits_from = engine.traffic.visits_from(source.pk, timezone.now())
    return engine.reader.planned_list(source.site, plan, visits_from=visits_from)


def _read_fixtures(
    source: Source, adapter: Adapter, engine: Engine, left_out: LeftOut, *, now: datetime
) -> tuple[list[DiscoveredMatch], datetime | None]:
    """Reads the fixtures of the coming days if they are due. Returns them with the time for the source's row.

    A day that fails affects neither the other days nor the list that was just read: it is read again soon.
    """
    is_due = source.last_fixtures_at is None or now - source.last_fixtures_at >= FIXTURES_EVERY
    if not is_due or adapter.fixture_plan(source.base_url, now.date()) is None:
        return [], None
    found: list[DiscoveredMatch] = []
    read: dict[PlanKey, list[Reading]] = {}
    failed = 0
    for day in (now.date() + timedelta(days=number) for number in range(FIXTURE_DAYS)):
        try:
            found += _read_day(source, adapter, engine, left_out, day=day, read=read)
        except Gone:  # the source has no list for a day without matches
            continue
        except ScrapingError as error:
            failed += 1
            logger.warning(
                "The fixtures of %s at %s could not be read: %s", day, source.key, error,
                extra={"action": "fixtures_failed", "source": source.key, "day": str(day)},
            )  # fmt: skip
            if isinstance(error, FAILS_EVERY_DAY):
                break
    return found, now - FIXTURES_EVERY + FIXTURES_RETRY if failed else now


def _read_day(
    source: Source,
    adapter: Adapter,
    engine: Engine,
    left_out: LeftOut,
    *,
    day: date,
    read: dict[PlanKey, list[Reading]],
) -> list[DiscoveredMatch]:
    """`read`: the lists of the days before. A source with one list for all days is read once."""
    plan = adapter.fixture_plan(source.base_url, day)
    assert plan is not None
    key = plan.url, tuple((request.url, request.body) for request in plan.requests)
    if key not in read:
        read[key] = _read_lists(source, adapter, plan, engine, day)
    found: list[DiscoveredMatch] = []
    for reading in read[key]:
        with left_out.rows_of(reading, engine):
            found += adapter.parse_fixtures(reading, source.base_url, day)
    return found


def _read_lists(source: Source, adapter: Adapter, plan: ListPlan, engine: Engine, day: date) -> list[Reading]:
    """Reads the list of a day, and the lists that it names."""
    readings = [_read_list(source, plan, engine)]
    while True:
        with evidence_from(readings[-1]):
            requests = adapter.more_fixtures(readings, source.base_url, day)
        if not requests:
            return readings
        if len(readings) == MAX_FIXTURE_LISTS:
            raise SchemaBreak(f"the lists of {day} do not end: {len(readings)} were read", url=plan.url)
        readings.append(_read_named_lists(source, replace(plan, requests=requests), engine))


def _read_named_lists(source: Source, plan: ListPlan, engine: Engine) -> Reading:
    """Reads lists that another one names. A missing list counts as empty and does not fail the others."""
    try:
        return _read_list(source, plan, engine)
    except Gone as error:
        if len(plan.requests) == 1:
            (request,) = plan.requests
            gone = Document(request.name, request.url, error.http_status or NOT_FOUND, "", b"")
            return Reading(RefInfo("", request.url), ReadMode.DIRECT, timezone.now(), {request.name: gone})
    single = [_read_named_lists(source, replace(plan, requests=(request,)), engine) for request in plan.requests]
    documents = {name: document for reading in single for name, document in reading.documents.items()}
    return replace(single[-1], documents=documents)
