"""Too many errors a minute for one match (FR-016)."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from datetime import datetime, timedelta

from django.db.models import Count

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alerts, open_keys, raise_alert
from monitoring.models import Severity
from scraping.models import Match, ScrapeError

logger = logging.getLogger(__name__)
MOST_ERRORS_A_MINUTE = 10


def watch_error_rate(now: datetime) -> int:
    """How many matches are over the limit."""
    over = {pk: kinds for pk, kinds in _errors_by_match(now).items() if kinds.total() > MOST_ERRORS_A_MINUTE}
    titles = dict(Match.objects.filter(pk__in=over).values_list("pk", "title"))
    for pk, kinds in over.items():
        _report(pk, titles.get(pk) or f"match {pk}", kinds, now)
    close_alerts(open_keys(causes.ERROR_RATE) - {causes.error_rate(pk) for pk in over}, now)
    return len(over)


def _errors_by_match(now: datetime) -> dict[int, Counter[str]]:
    rows = (
        ScrapeError.objects.filter(timestamp__gt=now - timedelta(minutes=1), match__isnull=False)
        .values_list("match_id", "error_type")
        .annotate(number=Count("pk"))
        .order_by()
    )
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for pk, kind, number in rows:
        if pk is not None:
            found[pk][kind] += number
    return found


def _report(pk: int, title: str, kinds: Counter[str], now: datetime) -> None:
    spread = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
    detail = {"match_id": pk, "errors_last_minute": kinds.total(), "error_types": dict(kinds)}
    summary = f"{title}: {kinds.total()} errors in the last minute ({spread})"
    if raise_alert(causes.error_rate(pk), Severity.CRITICAL, summary, detail, now):
        logger.error(summary, extra={"action": "error_rate", **detail})
