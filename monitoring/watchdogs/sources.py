"""Watchdogs over sources: refusals, falling fill rates, missing tokens, traffic budgets (FS-3, FS-17)."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.db.models import Count, Max, Min, QuerySet

from monitoring.alerts import alert_keys
from monitoring.alerts.alert_keys import BLOCKED, CHALLENGE, ROBOTS, AlertKind
from monitoring.alerts.registry import Report, close_alerts, set_alerts
from monitoring.models import Alert, Severity
from scraping.configuration import policies
from scraping.errors import ErrorClass, RobotsRefused
from scraping.models import ScrapeError, Source
from scraping.policies.drift import DriftPolicy, Fill
from scraping.stats import fill_rates, traffic
from scraping.stats.fill_rates import FallenField
from scraping.stats.traffic import MEGABYTE

logger = logging.getLogger(__name__)

BLOCK_WINDOW = timedelta(minutes=10)
_WITHIN = f"in the last {BLOCK_WINDOW.total_seconds() / 60:.0f} min"
BLOCK_DURATION = timedelta(minutes=3)  # from the first to the last refusal; shorter ones raise no alert
MIN_BLOCKS = 10
TOKEN_REPORT_TIMEOUT = timedelta(minutes=2)  # a worker without a token reports it every 20 s


def watch_blocks(now: datetime) -> int:
    """Scheduler step: returns how many sources refuse, challenge (a fresh session too) or forbid requests."""
    found: dict[AlertKind, dict[str, Report]] = {kind: {} for kind in (BLOCKED, CHALLENGE, ROBOTS)}
    recent = ScrapeError.objects.filter(timestamp__gt=now - BLOCK_WINDOW, group__isnull=False)
    blocked = recent.filter(error_class=ErrorClass.BLOCKED)
    for key, name, number, first, last in _by_source(blocked.exclude(error_code=RobotsRefused.error_code)):
        if number >= MIN_BLOCKS and last - first >= BLOCK_DURATION:
            summary = f"{name} has refused {number} requests {_WITHIN}"
            found[BLOCKED][BLOCKED.of(key)] = Report(Severity.CRITICAL, summary, {"source": key, "refusals": number})
    for key, name, number, _, _ in _by_source(recent.filter(error_class=ErrorClass.CHALLENGE, retry_attempt__gt=1)):
        summary = f"{name} has shown a bot challenge that a fresh session did not pass ({number} {_WITHIN})"
        found[CHALLENGE][CHALLENGE.of(key)] = Report(Severity.CRITICAL, summary, {"source": key, "challenges": number})
    for key, name, number, _, _ in _by_source(blocked.filter(error_code=RobotsRefused.error_code)):
        summary = f"robots.txt of {name} forbids pages that we read"
        found[ROBOTS][ROBOTS.of(key)] = Report(Severity.WARNING, summary, {"source": key, "refusals": number})
    for kind, reports in found.items():
        set_alerts(kind, reports, now)
    return sum(len(reports) for reports in found.values())


def _by_source(errors: QuerySet[ScrapeError]) -> Iterable[tuple[str, str, int, datetime, datetime]]:
    """Returns key and name of each source, the number of its errors, and the times of the first and the last."""
    rows = errors.values_list("group__source__key", "group__source__name").order_by()
    return rows.annotate(number=Count("pk"), first=Min("timestamp"), last=Max("timestamp"))


def watch_drift(now: datetime) -> int:
    """Scheduler step: returns how many fields and sources have fallen below their limits."""
    policy = policies.current().drift
    fallen = {
        alert_keys.DRIFT.of(one.source.key, one.payload_schema, one.field): _fallen_field(one, policy, now)
        for one in fill_rates.fallen_fields(policy, now=now)
    }
    sparse = {
        alert_keys.SPARSE.of(source.key): _sparse_source(source, integrity, policy)
        for source, integrity in fill_rates.sparse_sources(policy, now=now)
    }
    reports = fallen | sparse
    for key in set_alerts(alert_keys.DRIFT, fallen, now) | set_alerts(alert_keys.SPARSE, sparse, now):
        logger.warning(reports[key].summary, extra={"action": "data_integrity_degraded", **reports[key].detail})
    return len(reports)


def _fallen_field(one: FallenField, policy: DriftPolicy, now: datetime) -> Report:
    lacking, read = fill_rates.matches_without(one, policy, now=now)
    detail = {
        "source": one.source.key,
        "field": one.field,
        "payload_schema": one.payload_schema,
        "baseline_percent": round(one.baseline.percent, 1),
        "window_percent": round(one.window.percent, 1),
        "baseline_readings": one.baseline.seen,
        "window_readings": one.window.seen,
        "matches_without": lacking,
        "matches_read": read,
    }
    return Report(Severity.WARNING, one.sentence, detail)


def _sparse_source(source: Source, integrity: Fill, policy: DriftPolicy) -> Report:
    null_rate = 1 - integrity.percent / 100
    detail = {
        "source": source.key,
        "null_rate": round(null_rate, 3),
        "limit": policy.null_rate,
        "readings": integrity.seen,
    }
    summary = (
        f"{source.name} left out {100 * null_rate:.0f} % of the wanted fields in the last hour; "
        f"{100 * policy.null_rate:.0f} % is the limit"
    )
    return Report(Severity.WARNING, summary, detail)


def watch_tokens(now: datetime) -> int:
    """Scheduler step: closes token alerts that no worker has reported lately; returns how many."""
    open_alerts = Alert.objects.filter(key__startswith=alert_keys.TOKEN, closed_at__isnull=True)
    return close_alerts(
        list(open_alerts.filter(last_seen_at__lt=now - TOKEN_REPORT_TIMEOUT).values_list("key", flat=True)), now
    )


def watch_traffic(now: datetime) -> int:
    """Scheduler step: returns how many sources are near or over their daily traffic budget."""
    scarce = {pk: budget for pk, budget in traffic.budgets(now.astimezone(UTC).date()).items() if budget.is_scarce}
    reports = {}
    for pk, key, name in Source.objects.filter(pk__in=scarce).values_list("pk", "key", "name"):
        budget = scarce[pk]
        used, limit = budget.used_bytes / MEGABYTE, budget.limit_bytes // MEGABYTE
        severity, summary = Severity.WARNING, f"{name} has used {budget.percent:.0f} % of its {limit} MB of today"
        if budget.is_spent:
            severity = Severity.CRITICAL
            summary = (
                f"{name} has used up its {limit} MB of today: until midnight UTC only direct reads are made, and "
                "matches that need a visit wait"
            )
        detail = {"source": key, "used_mb": round(used, 1), "limit_mb": limit, "percent": round(budget.percent, 1)}
        reports[alert_keys.TRAFFIC.of(key)] = Report(severity, summary, detail)
    set_alerts(alert_keys.TRAFFIC, reports, now)
    return len(reports)
