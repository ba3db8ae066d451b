"""Drift is seen before it hurts: fields that fill less often than they used to, sources that leave out too much."""

from __future__ import annotations

import logging
from datetime import datetime

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alerts, open_keys, raise_alert
from monitoring.models import Severity
from scraping.configuration import policies
from scraping.policies.drift import DriftPolicy
from scraping.stats import fill_rates
from scraping.stats.fill_rates import FallenField, SparseSource

logger = logging.getLogger(__name__)


def watch_drift(now: datetime) -> int:
    """How many fields and sources are not what they were."""
    policy = policies.current().drift
    fallen, sparse = fill_rates.fallen_fields(policy, now=now), fill_rates.sparse_sources(policy, now=now)
    for field in fallen:
        _tell_field(field, policy, now)
    for source in sparse:
        _tell_source(source, policy, now)
    standing = {causes.drift(one.source.key, one.payload_schema, one.field) for one in fallen}
    close_alerts(open_keys(causes.DRIFT) - standing, now)
    close_alerts(open_keys(causes.SPARSE) - {causes.sparse(one.source.key) for one in sparse}, now)
    return len(fallen) + len(sparse)


def _tell_field(one: FallenField, policy: DriftPolicy, now: datetime) -> None:
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
    key = causes.drift(one.source.key, one.payload_schema, one.field)
    if raise_alert(key, Severity.WARNING, one.sentence, detail, now):
        logger.warning(one.sentence, extra={"action": "data_integrity_degraded", **detail})


def _tell_source(one: SparseSource, policy: DriftPolicy, now: datetime) -> None:
    detail = {
        "source": one.source.key,
        "null_rate": round(one.null_rate, 3),
        "limit": policy.null_rate,
        "readings": one.integrity.seen,
    }
    summary = (
        f"{one.source.name} left out {100 * one.null_rate:.0f} % of the wanted fields in the last hour; "
        f"{100 * policy.null_rate:.0f} % is the limit"
    )
    if raise_alert(causes.sparse(one.source.key), Severity.WARNING, summary, detail, now):
        logger.warning(summary, extra={"action": "data_integrity_degraded", **detail})
