"""The matches of today and the days to come, for sources that list them by day."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from django.utils import timezone

from scraping.errors import AuthExpired, Blocked, BreakerOpen, Gone, ResourceLost, SchemaBreak, ScrapingError
from scraping.models import Source
from scraping.payloads import DiscoveredMatch
from scraping.readings import Document, Reading, ReadMode, RefInfo, Site, evidence_from
from scraping.sources.base import Adapter, HasFixtures, HasMoreFixtures, ListPlan
from scraping.worker.engine import Engine

logger = logging.getLogger(__name__)

EVERY = timedelta(minutes=30)
AGAIN = timedelta(minutes=5)  # after days that could not be read
DAYS = 4  # today and the next three
NOT_FOUND = 404
MOST_LISTS = 24  # readings of one day, of a source whose first list names others
Asked = tuple[str, tuple[tuple[str, bytes | None], ...]]  # the page, and what is asked besides
HOPELESS = (Blocked, AuthExpired, BreakerOpen, ResourceLost)  # what fails one day fails the others as well


@dataclass(frozen=True)
class Fixtures:
    found: tuple[DiscoveredMatch, ...] = ()
    noted_at: datetime | None = None  # what the source's row is to remember; None: nothing was asked


def read(source: Source, adapter: Adapter, engine: Engine, *, now: datetime) -> Fixtures:
    """What a source has for the coming days, if it is time to ask.

    A day that fails costs neither the others nor the list that was just read: it is asked again soon.
    """
    if not isinstance(adapter, HasFixtures) or not _is_due(source, now):
        return Fixtures()
    found: list[DiscoveredMatch] = []
    asked: dict[Asked, list[Reading]] = {}
    failed = 0
    for day in (now.date() + timedelta(days=number) for number in range(DAYS)):
        try:
            found += _read_day(source, adapter, engine, day, asked)
        except Gone:  # the source has no list for a day without matches
            continue
        except ScrapingError as error:
            failed += 1
            logger.warning(
                "The fixtures of %s at %s could not be read: %s", day, source.key, error,
                extra={"action": "fixtures_failed", "source": source.key, "day": str(day)},
            )  # fmt: skip
            if isinstance(error, HOPELESS):
                break
    return Fixtures(tuple(found), noted_at=now - EVERY + AGAIN if failed else now)


def _is_due(source: Source, now: datetime) -> bool:
    return source.last_fixtures_at is None or now - source.last_fixtures_at >= EVERY


def _read_day(
    source: Source, adapter: HasFixtures, engine: Engine, day: date, asked: dict[Asked, list[Reading]]
) -> list[DiscoveredMatch]:
    """`asked`: what was read for the days before. A source with one list for all of them is asked once."""
    plan = adapter.fixture_plan(source.base_url, day)
    key = plan.url, tuple((request.url, request.body) for request in plan.requests)
    if key not in asked:
        asked[key] = _readings(source, adapter, engine, day)
    found: list[DiscoveredMatch] = []
    for reading in asked[key]:
        with evidence_from(reading):
            found += adapter.parse_fixtures(reading, source.base_url, day)
    return found


def _readings(source: Source, adapter: HasFixtures, engine: Engine, day: date) -> list[Reading]:
    """The list of a day, and those that it names."""
    site, plan = source.site, adapter.fixture_plan(source.base_url, day)
    visits_from = engine.traffic.visits_from(source.pk, timezone.now())
    readings = [engine.reader.planned_list(site, plan, visits_from=visits_from)]
    while isinstance(adapter, HasMoreFixtures):
        with evidence_from(readings[-1]):
            requests = adapter.more_fixtures(readings, source.base_url, day)
        if not requests:
            break
        if len(readings) == MOST_LISTS:
            raise SchemaBreak(f"the lists of {day} do not end: {len(readings)} were read", url=plan.url)
        readings.append(_named(site, replace(plan, requests=requests), engine, visits_from))
    return readings


def _named(site: Site, plan: ListPlan, engine: Engine, visits_from: datetime | None) -> Reading:
    """Lists that another one names. One that is not there is an empty one, and costs none of the others."""
    try:
        return engine.reader.planned_list(site, plan, visits_from=visits_from)
    except Gone as error:
        if len(plan.requests) == 1:
            (request,) = plan.requests
            gone = Document(request.name, request.url, error.http_status or NOT_FOUND, "", b"")
            return Reading(RefInfo("", request.url), ReadMode.DIRECT, timezone.now(), {request.name: gone})
    alone = [_named(site, replace(plan, requests=(request,)), engine, visits_from) for request in plan.requests]
    documents = {name: document for reading in alone for name, document in reading.documents.items()}
    return replace(alone[-1], documents=documents)
