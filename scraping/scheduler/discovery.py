"""Look at each source's list of matches now and then."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef

from scraping import journal
from scraping.configuration import policies
from scraping.models import BreakerState, Priority, ScrapeTask, Source
from scraping.models.source import PUSHED
from scraping.payloads import Resource


def open_discovery_tasks(now: datetime) -> int:
    since = now - timedelta(seconds=policies.current().discovery_interval_seconds)
    recent = ScrapeTask.objects.filter(
        source=OuterRef("pk"), ref__isnull=True, resource=Resource.DISCOVERY, created_at__gt=since
    )
    due = Source.objects.filter(is_enabled=True).exclude(last_discovery_at__gt=since).exclude(Exists(recent))
    due = due.exclude(breaker__state=BreakerState.OPEN).exclude(key=PUSHED)
    return journal.open_tasks(
        [journal.NewTask(source.pk, None, Resource.DISCOVERY, Priority.IMMINENT, run_at=now) for source in due], now=now
    )
