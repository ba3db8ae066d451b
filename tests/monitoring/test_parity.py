"""BX-15: every value of /health and /status is a metric and the other way round, with equal values."""

from __future__ import annotations

import fnmatch
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

import scraping.worker.process  # noqa: F401 - defines metrics of workers
from monitoring import audit
from monitoring.alerts.registry import raise_alert
from monitoring.health.evaluation import Evaluation
from monitoring.metrics.families import families
from monitoring.models import HealthLog, Severity
from scraping.models import (
    Breaker,
    BreakerState,
    ErrorGroup,
    FieldFill,
    MatchLifecycle,
    MatchRef,
    Scraper,
    Source,
    SourceDay,
    TaskState,
    Worker,
)
from scraping.stats.fill_rates import INTEGRITY
from scraping.worker.worker_metrics import worker_figures
from tests.factories import make_snapshot
from tests.monitoring.rows import make_error, make_task, make_watched, make_worker

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("BX-15")]

# Path patterns of a document, and the metric families with the same figures. The first match counts.
HEALTH: dict[str, tuple[str, ...]] = {
    "status": ("victoryline_health",),
    "active_scraper_count": ("active_scrapers_count",),
    "total_matches_scraping": ("scraper_matches_scraping",),
    "scrapers[].start_time": ("scraper_uptime_seconds",),
    "scrapers[].uptime_seconds": ("scraper_uptime_seconds",),
    "scrapers[].last_update": ("data_staleness_seconds",),
    "scrapers[].error_count": ("scraper_consecutive_errors",),
    "scrapers[].total_errors": ("scraper_errors", "scraper_scrapes"),
    "scrapers[].total_updates": ("scraper_updates", "scraper_scrapes"),
    "scrapers[].health_status": ("scraper_health",),
    "scrapers[].memory_mb": ("scraper_memory_bytes",),
    "scrapers[].cpu_percent": ("scraper_cpu_percent",),
    "scrapers[].polling_interval": ("scraper_polling_interval_seconds",),
    "resources.total_memory_mb": ("scraper_worker_memory_bytes",),
    "resources.average_memory_mb": ("scraper_worker_memory_bytes", "active_scrapers_count"),
    "resources.peak_memory_mb": ("scraper_worker_peak_memory_bytes",),
    "resources.total_cpu_percent": ("scraper_worker_cpu_percent",),
    "errors.last_minute": ("scraper_errors_last_minute",),
    "errors.last_hour": ("scraper_errors_last_hour",),
    "errors.circuit_breakers[].state": ("scraper_breaker_state", "scraper_breakers"),
    "errors.circuit_breakers[].failure_count": ("scraper_breaker_failure_count",),
    "errors.circuit_breakers[].success_count": ("scraper_breaker_success_count",),
    "errors.circuit_breakers[].total_calls": ("scraper_breaker_calls",),
    "errors.circuit_breakers[].total_successes": ("scraper_breaker_successes",),
    "errors.circuit_breakers[].total_failures": ("scraper_breaker_failures",),
    "errors.circuit_breakers[].total_rejections": ("scraper_breaker_rejections",),
    "errors.circuit_breakers[].last_state_change": ("scraper_breaker_state_age_seconds",),
    "performance.average_latency_ms": ("scraper_recent_latency_seconds", "scraper_update_latency_seconds"),
    "performance.p95_latency_ms": ("scraper_recent_latency_seconds",),
    "performance.updates_per_minute": ("scraper_updates_per_minute",),
    "uptime_seconds": ("victoryline_uptime_seconds",),
    "total_memory_mb": ("scraper_worker_memory_bytes",),
    "per_match_status[].last_update_iso8601": ("data_staleness_seconds",),
    "per_match_status[].error_count": ("scraper_consecutive_errors",),
    "per_match_status[].memory_mb": ("scraper_memory_bytes",),
    "queue.depth": ("scraper_queue_depth",),
    "queue.oldest_age_seconds": ("scraper_queue_oldest_age_seconds",),
}
STATUS: dict[str, tuple[str, ...]] = {
    "grade": ("scraper_grade",),
    "freshness_stats.count": ("scraper_live_matches",),
    "freshness_stats.*": ("scraper_data_staleness_seconds", "scraper_freshness_seconds"),
    "queue_depth.*": ("scraper_queue_depth",),
    "oldest_queued_seconds": ("scraper_queue_oldest_age_seconds",),
    "active_tasks": ("scraper_tasks_executing",),
    "failure_ratio": ("scraper_failure_ratio",),
    "updates_per_minute": ("scraper_updates_per_minute",),
    "last_success_time": ("scraper_last_success_age_seconds",),
    "paused_matches[].id": ("scraper_paused_matches",),
    "silence.frozen": ("scraper_frozen_matches",),
    "silence.by_rung.*": ("scraper_silent_matches",),
    "services.database": ("victoryline_database_up",),
    "services.redis": ("victoryline_redis_up",),
    "objectives.*.ratio": ("scraper_objective_ratio",),
    "objectives.*.is_met": ("scraper_objective_ratio", "scraper_objective_target_ratio"),
    "objectives.*.target": ("scraper_objective_target_ratio",),
    "objectives.*.measurements": ("scraper_objective_looks",),
    "workers[].uptime_seconds": ("scraper_worker_uptime_seconds",),
    "workers[].heartbeat_age_seconds": ("scraper_worker_heartbeat_age_seconds",),
    "workers[].memory_mb": ("scraper_worker_memory_bytes",),
    "workers[].cpu_percent": ("scraper_worker_cpu_percent",),
    "workers[].active_tasks": ("scraper_worker_tasks",),
    "workers[].browser_launches": ("scraper_browser_launches",),
    "workers[].browser_uptime_seconds": ("scraper_browser_uptime_seconds",),
    "workers[].process_count": ("scraper_pids_current",),
    "workers[].context_count": ("scraper_contexts_active",),
    "workers[].page_count": ("scraper_pages_open",),
    "sources[].matches_watched": ("scraper_matches_by_read_mode",),
    "sources[].matches_by_read_mode.*": ("scraper_matches_by_read_mode",),
    "sources[].attempts": ("scraper_attempts",),
    "sources[].successes": ("scraper_success",),
    "sources[].failures[].*": ("scraper_fail",),
    "sources[].bytes_in": ("scraper_bytes_in_est",),
    "sources[].requests": ("scraper_source_requests",),
    "sources[].requests_blocked": ("scraper_source_requests_blocked",),
    "sources[].reads.*": ("scraper_reads",),
    "sources[].request_mode": ("scraper_source_request_mode",),
    "sources[].request_mode_reason": ("scraper_source_request_mode",),
    "sources[].budget_used_ratio": ("scraper_budget_used_ratio",),
    "sources[].integrity_score": ("data_integrity_score",),
    "alerts[].severity": ("scraper_alerts_open",),
    "audit_entries[].action_type": ("scraper_recycles",),
    "matches[].age_seconds": ("data_staleness_seconds",),
}
# Values without a metric: names (labels or ids), texts, and times for which there is an age.
WORDS = (
    "timestamp", "generated_at", "reason", "scrapers[].scraper_id", "scrapers[].match_id", "scrapers[].url",
    "errors.circuit_breakers[].name", "per_match_status[].match_id", "per_match_status[].url",
    "paused_matches[].title", "paused_matches[].until", "workers[].name", "sources[].key", "sources[].name",
    "sources[].sport", "sources[].is_enabled", "sources[].last_discovery_at", "alerts[].*", "audit_entries[].*",
    "config_snapshot.*", "matches[].*",
    "match_counts.*",  # of the cards on the page, of which there is a bounded number
)  # fmt: skip

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path


def fits(path: str, patterns: Any) -> str | None:
    """Matches a path; fnmatch reads [] as a set of characters."""
    plain = path.replace("[]", "()")
    return next((each for each in patterns if fnmatch.fnmatchcase(plain, each.replace("[]", "()"))), None)


def scene() -> None:
    """A system in which every figure has a value."""
    now = timezone.now()
    worker = make_worker(
        browser_started_at=now - timedelta(minutes=5), browser_launches=2, active_tasks=1, process_count=7
    )
    worker_figures.row = {column.attname: getattr(worker, column.attname) for column in Worker._meta.concrete_fields}
    match, ref, scraper = make_watched(age=3)
    Scraper.objects.filter(pk=scraper.pk).update(error_count=1, total_errors=4, total_updates=9, polling_interval=5.0)
    make_watched(age=200, silence_rung=5, frozen_at=now)
    make_watched(lifecycle=MatchLifecycle.PAUSED, pause_until=now + timedelta(minutes=5))
    MatchRef.objects.filter(pk=ref.pk).update(read_mode="direct")
    for sequence, latency in enumerate((100, 200, 600), start=1):
        make_snapshot(match, now=now, sequence=sequence, update_latency_ms=latency)
    make_error(match)
    make_error(match, age=120)
    make_task(ref, run_at=now - timedelta(seconds=7))
    make_task(ref, state=TaskState.SUCCESS)
    make_task(ref, state=TaskState.DEAD)
    opened = {"state": BreakerState.OPEN, "open_until": now + timedelta(minutes=1), "last_state_change": now}
    Breaker.objects.create(name=f"{ref.key}_scraper", ref=ref, total_calls=9, total_failures=5, **opened)
    Breaker.objects.create(
        name="crex", source=ref.source, total_calls=90, total_successes=80, total_rejections=3, last_state_change=now
    )
    Source.objects.filter(pk=ref.source_id).update(
        daily_megabytes=10, request_mode="in_page", request_mode_reason="blocked: live answered 403"
    )
    SourceDay.objects.create(
        source=ref.source, day=now.date(), bytes_in=5_000_000, requests=70, requests_blocked=6, visits=1, direct_reads=8
    )
    FieldFill.objects.create(source=ref.source, field=INTEGRITY, payload_schema="", starts_at=now, seen=10, filled=9)
    ErrorGroup.objects.create(
        fingerprint="f", source=ref.source, error_class="transient", error_code="timeout", count=6,
        first_seen_at=now, last_seen_at=now,
    )  # fmt: skip
    raise_alert("k", Severity.WARNING, "something", {}, now)
    audit.record(actor="x", action_type="browser_recycle", trigger_condition="y", now=now)
    HealthLog.objects.create(
        scraper_id=uuid.uuid4(), match_id="crex_13KM", timestamp=now - timedelta(seconds=1), health_status="healthy",
        polling_interval_seconds=Decimal("2.5"), last_update_age_seconds=3,
    )  # fmt: skip


@pytest.mark.parametrize(("path", "figures"), [("/health", HEALTH), ("/status", STATUS)])
def test_every_figure_of_a_document_is_a_metric(client: Client, path: str, figures: dict[str, tuple[str, ...]]) -> None:
    scene()
    document = client.get(path).json()
    served = {family.name for family in [*families(Evaluation(timezone.now())), *REGISTRY.collect()]}
    for leaf in sorted(set(leaves(document))):
        pattern = fits(leaf, figures)
        assert pattern or fits(leaf, WORDS), f"{leaf} of {path} is no metric"
        for family in figures[pattern] if pattern else ():
            assert family in served, f"{leaf} of {path} should be {family}"


def test_every_metric_is_in_a_document(client: Client) -> None:
    scene()
    documents = {"/health": HEALTH, "/status": STATUS}
    found = {path: set(leaves(client.get(path).json())) for path in documents}
    shown = {
        family
        for path, figures in documents.items()
        for leaf in found[path]
        if (pattern := fits(leaf, figures))
        for family in figures[pattern]
    }
    for family in families(Evaluation(timezone.now())):
        assert family.name in shown, f"{family.name} is in neither document"


def test_every_line_of_the_table_is_used(client: Client) -> None:
    scene()
    for path, figures in (("/health", HEALTH), ("/status", STATUS)):
        used = {fits(leaf, figures) for leaf in leaves(client.get(path).json())}
        assert set(figures) - used <= {"services.redis"}


def of_match(name: str) -> Callable[[Samples, dict[str, Any]], float]:
    return lambda samples, row: samples[name, (("match_id", row["match_id"]),)]


def total(samples: Samples, name: str) -> float:
    return sum(value for (each, _), value in samples.items() if each == name)


MEGABYTE = 1024 * 1024
OF_SCRAPER = {
    "uptime_seconds": of_match("scraper_uptime_seconds"),
    "error_count": of_match("scraper_consecutive_errors"),
    "memory_mb": lambda samples, row: of_match("scraper_memory_bytes")(samples, row) / MEGABYTE,
    "cpu_percent": of_match("scraper_cpu_percent"),
    "polling_interval": of_match("scraper_polling_interval_seconds"),
    "health_status": of_match("scraper_health"),
}
OF_BREAKER = {
    "state": "scraper_breaker_state",
    "failure_count": "scraper_breaker_failure_count",
    "success_count": "scraper_breaker_success_count",
    "total_calls": "scraper_breaker_calls_total",
    "total_successes": "scraper_breaker_successes_total",
    "total_failures": "scraper_breaker_failures_total",
    "total_rejections": "scraper_breaker_rejections_total",
}
NUMBERS = {"healthy": 0, "degraded": 1, "failing": 2, "CLOSED": 0, "HALF_OPEN": 1, "OPEN": 2}


def nearly(value: Any) -> Any:
    """Compares with a tolerance, because the reads differ in time and documents are rounded."""
    return pytest.approx(NUMBERS.get(value, value), abs=2.0 if isinstance(value, float) else 0.001)


def test_documents_and_metrics_agree(client: Client) -> None:
    scene()
    now = timezone.now()
    with patch("django.utils.timezone.now", lambda: now):
        health, status = client.get("/health").json(), client.get("/status").json()
        text = client.get("/metrics").content.decode()
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    for row in health["scrapers"]:
        for key, read in OF_SCRAPER.items():
            assert read(samples, row) == nearly(row[key]), key
    for row in health["errors"]["circuit_breakers"]:
        for key, name in OF_BREAKER.items():
            assert samples[name, (("name", row["name"]),)] == nearly(row[key]), key
    latency = "scraper_recent_latency_seconds"
    source = next(row for row in status["sources"] if row["key"] == "crex")
    of_source = (("source", "crex"),)
    agree = {
        "status": (samples["victoryline_health", (("status", health["status"]),)], 1),
        "active": (samples["active_scrapers_count", ()], health["active_scraper_count"]),
        "matches": (samples["scraper_matches_scraping", ()], health["total_matches_scraping"]),
        "memory": (total(samples, "scraper_worker_memory_bytes") / MEGABYTE, health["total_memory_mb"]),
        "peak": (total(samples, "scraper_worker_peak_memory_bytes") / MEGABYTE, health["resources"]["peak_memory_mb"]),
        "cpu": (total(samples, "scraper_worker_cpu_percent"), health["resources"]["total_cpu_percent"]),
        "minute": (samples["scraper_errors_last_minute", ()], health["errors"]["last_minute"]),
        "hour": (samples["scraper_errors_last_hour", ()], health["errors"]["last_hour"]),
        "mean": (
            1000 * samples[f"{latency}_sum", ()] / samples[f"{latency}_count", ()],
            health["performance"]["average_latency_ms"],
        ),
        "p95": (1000 * samples[latency, (("quantile", "0.95"),)], health["performance"]["p95_latency_ms"]),
        "updates": (samples["scraper_updates_per_minute", ()], health["performance"]["updates_per_minute"]),
        "uptime": (samples["victoryline_uptime_seconds", ()], health["uptime_seconds"]),
        "depth": (total(samples, "scraper_queue_depth"), health["queue"]["depth"]),
        "queue age": (samples["scraper_queue_oldest_age_seconds", ()], health["queue"]["oldest_age_seconds"]),
        "queue age of status": (samples["scraper_queue_oldest_age_seconds", ()], status["oldest_queued_seconds"]),
        "grade": (samples["scraper_grade", (("grade", status["grade"].lower()),)], 1),
        "live": (samples["scraper_live_matches", ()], status["freshness_stats"]["count"]),
        "failures": (samples["scraper_failure_ratio", ()], status["failure_ratio"]),
        "paused": (samples["scraper_paused_matches", ()], len(status["paused_matches"])),
        "frozen": (samples["scraper_frozen_matches", ()], status["silence"]["frozen"]),
        "silent": (samples["scraper_silent_matches", (("rung", "frozen"),)], status["silence"]["by_rung"]["frozen"]),
        "alerts": (total(samples, "scraper_alerts_open"), len(status["alerts"])),
        "attempts": (samples["scraper_attempts_total", of_source], source["attempts"]),
        "bytes": (samples["scraper_bytes_in_est_total", of_source], source["bytes_in"]),
        "budget": (samples["scraper_budget_used_ratio", of_source], source["budget_used_ratio"]),
        "request mode": (
            samples["scraper_source_request_mode", (("mode", "in_page"), ("reason", "blocked"), *of_source)],
            1 if source["request_mode_reason"] else 0,
        ),
        "integrity": (samples["data_integrity_score", of_source], source["integrity_score"]),
        "objective": (
            samples["scraper_objective_ratio", (("objective", "uptime"), ("window", "1h"))],
            status["objectives"]["1h"]["uptime"]["ratio"],
        ),
    }
    for name, (metric, figures) in agree.items():
        assert metric == nearly(figures), name
    assert health["queue"]["oldest_age_seconds"] >= 7
