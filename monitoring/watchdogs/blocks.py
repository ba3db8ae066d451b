"""Sources that refuse us, or show us challenges, and go on doing so (FS-17: an anti-bot challenge that lasts)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Count, Max, Min

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alerts, open_keys, raise_alert
from monitoring.models import Severity
from scraping.errors import ErrorClass
from scraping.models import ScrapeError

WINDOW = timedelta(minutes=10)
LASTS = timedelta(minutes=3)  # from the first to the last of them: a passing refusal is not news
FEWEST = 10


def watch_blocks(now: datetime) -> int:
    """How many sources refuse us."""
    rows = (
        ScrapeError.objects.filter(timestamp__gt=now - WINDOW, error_class=ErrorClass.BLOCKED, group__isnull=False)
        .values_list("group__source__key", "group__source__name")
        .annotate(number=Count("pk"), first=Min("timestamp"), last=Max("timestamp"))
        .order_by()
    )
    refusing = {
        key: (name, number) for key, name, number, first, last in rows if number >= FEWEST and last - first >= LASTS
    }
    for key, (name, number) in refusing.items():
        summary = f"{name} has refused us {number} times in the last {WINDOW.total_seconds() / 60:.0f} min"
        raise_alert(causes.blocked(key), Severity.CRITICAL, summary, {"source": key, "refusals": number}, now)
    close_alerts(open_keys(causes.BLOCKED) - {causes.blocked(key) for key in refusing}, now)
    return len(refusing)
