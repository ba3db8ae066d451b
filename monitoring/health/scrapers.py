"""The active scrapers with the columns that health needs: health, and memory and CPU of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from scraping.matches.scrapers import resources
from scraping.models import HealthStatus, Scraper, Worker
from scraping.payloads import Status

_SCRAPER_COLUMNS = tuple(column.attname for column in Scraper._meta.concrete_fields)  # noqa: SLF001 - documented under this name
_MATCH_COLUMNS = ("ref__match_id", "ref__match__status", "ref__source__key", "ref__source_event_id", "ref__url")


@dataclass(frozen=True, slots=True)
class WatchedScraper:
    """An active scraper with those columns of its match that health needs. Its share of memory and CPU: `resources`."""

    scraper: Scraper
    match_id: int
    is_live: bool
    key: str  # the match's public key
    url: str
    memory_bytes: float
    cpu_percent: float


def active_scrapers(workers: Sequence[Worker]) -> list[WatchedScraper]:
    """Returns the active scrapers; read every second, so without row objects of reference, match and source."""
    active = Scraper.objects.filter(stopped_at__isnull=True).order_by("ref_id")
    split = len(_SCRAPER_COLUMNS)
    rows = list(active.values_list(*_SCRAPER_COLUMNS, *_MATCH_COLUMNS))
    scrapers = [Scraper.from_db(active.db, _SCRAPER_COLUMNS, row[:split]) for row in rows]
    keys = [f"{source}_{event}" for *_, source, event, _ in rows]
    figures = resources(workers, {key: one.worker_id for key, one in zip(keys, scrapers, strict=True)})
    found = []
    for scraper, row, key in zip(scrapers, rows, keys, strict=True):
        match_id, status, _, _, url = row[split:]
        found.append(WatchedScraper(scraper, match_id, status == Status.LIVE, key, url, *figures[key]))
    return found


def health_of(watched: WatchedScraper, now: datetime) -> HealthStatus:
    """Returns a scraper's health; the age of its data counts only while its match is live."""
    threshold, scraper = settings.CONFIG.staleness_threshold_seconds, watched.scraper
    if watched.is_live:
        return scraper.health_status(now, threshold)
    return scraper.health_status(scraper.last_update_time or scraper.start_time, threshold)
