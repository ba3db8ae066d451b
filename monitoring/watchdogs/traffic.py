"""Sources that use up their traffic of a day: somebody should know before nothing may be visited any more (FS-3)."""

from __future__ import annotations

from datetime import UTC, datetime

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alerts, open_keys, raise_alert
from monitoring.models import Severity
from scraping.models import Source
from scraping.stats import traffic
from scraping.stats.traffic import MEGABYTE, Budget


def watch_traffic(now: datetime) -> int:
    """How many sources are near the end of their budget, or past it. A new day begins with none."""
    scarce = {pk: budget for pk, budget in traffic.budgets(now.astimezone(UTC).date()).items() if budget.is_scarce}
    names = {pk: (key, name) for pk, key, name in Source.objects.filter(pk__in=scarce).values_list("pk", "key", "name")}
    for pk, (key, name) in names.items():
        _report(key, name, scarce[pk], now)
    close_alerts(open_keys(causes.TRAFFIC) - {causes.traffic(key) for key, _ in names.values()}, now)
    return len(names)


def _report(key: str, name: str, budget: Budget, now: datetime) -> None:
    used, limit = budget.used_bytes / MEGABYTE, budget.limit_bytes // MEGABYTE
    if budget.is_spent:
        severity = Severity.CRITICAL
        summary = (
            f"{name} has used up its {limit} MB of today: until midnight UTC it is only read directly, and matches "
            "that need a visit wait"
        )
    else:
        severity, summary = Severity.WARNING, f"{name} has used {budget.percent:.0f} % of its {limit} MB of today"
    detail = {"source": key, "used_mb": round(used, 1), "limit_mb": limit, "percent": round(budget.percent, 1)}
    raise_alert(causes.traffic(key), severity, summary, detail, now)
