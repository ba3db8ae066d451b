"""BX-15 for the metrics that a process counts itself, beside those of the database (test_parity.py).

/metrics of the web and the port of each worker serve both. A process knows only its own share, so the documents have
the figures of the whole system; every metric is matched with its figure, or is a detail that only explains one.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from monitoring.health.evaluation import Evaluation
from monitoring.metrics import exposition
from monitoring.metrics.families import families
from tests.monitoring.test_parity import fits, leaves, scene

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("BX-15")]

OF_WORKERS = {
    "scraper_pids_current": "process_count",
    "scraper_contexts_active": "context_count",
    "scraper_pages_open": "page_count",
    "scraper_browser_uptime_seconds": "browser_uptime_seconds",
    "scraper_browser_launches": "browser_launches",
    "scraper_worker_memory_bytes": "memory_mb",
    "scraper_worker_peak_memory_bytes": "memory_mb",
    "scraper_worker_cpu_percent": "cpu_percent",
    "scraper_worker_uptime_seconds": "uptime_seconds",
    "scraper_worker_tasks": "active_tasks",
}
# Families of the process, and the figure of a document that has the same for the whole system.
FIGURES = {
    "integrity_null_rate": "sources[].integrity_score",
    "integrity_required_missing": "sources[].integrity_score",
    "scraper_read_mode_changes": "sources[].matches_by_read_mode.*",
    "scraper_requests": "sources[].requests",
    "scraper_requests_blocked": "sources[].requests_blocked",
    "victoryline_attached_pages": "workers[].page_count",
    "victoryline_memory_reliefs": "audit_entries[].action_type",
    "victoryline_store_away": "services.database",
    "victoryline_worker_memory_limit_bytes": "config_snapshot.memory_soft_limit_mb",
    "scraper_scrapes": "sources[].attempts",
    "scraper_fail": "sources[].failures[].*",
    "scraper_errors": "scrapers[].total_errors",
    "scraper_updates": "scrapers[].total_updates",
    "scraper_update_latency_seconds": "performance.average_latency_ms",
    "scraper_freshness_seconds": "freshness_stats.p95",
    "scraper_objective_measurements": "objectives.*.measurements",
    "scraper_recoveries": "audit_entries[].outcome",
    "scraper_recycles": "audit_entries[].action_type",
    "victoryline_database_up": "services.database",
    **{name: f"workers[].{figure}" for name, figure in OF_WORKERS.items()},
}
# Why there is no figure of the whole system.
DETAILS = {
    "api_access_log_dropped": "log rows: an alert of the web process, no state of the scrapers",
    "api_rate_limit_fallback": "requests counted while Redis was away: services.redis has the state",
    "db_pool_connections": "connections of one process",
    "db_pool_lost": "connections of one process",
    "db_pool_wait_seconds": "connections of one process",
    "scraper_navigation_failures": "explains sources[].failures before a visit is repeated",
    "scraper_proxies_exhausted": "proxies are known to the worker that uses them",
    "scraper_proxies_quarantined": "proxies are known to the worker that uses them",
    "scraper_scrape_duration_seconds": "readings of one process; the documents have the latency after them",
    "scraper_sessions": "sessions belong to one browser",
    "scraper_sessions_ended": "sessions belong to one browser",
    "victoryline_attached_openings": "explains page_count",
    "victoryline_browser_cleanup_late": "explains process_count",
    "victoryline_browser_cleanup_seconds": "explains process_count",
    "victoryline_egress_cut": "connections of one forward proxy",
    "victoryline_egress_refused": "connections of one forward proxy",
    "victoryline_matches_published": "writes to the shared cache",
    "victoryline_selector_fallbacks": "explains integrity_score before it falls",
    "victoryline_spool_disk_bytes": "the spool is used while no document can be read from the database",
    "victoryline_spool_dropped": "the spool is used while no document can be read from the database",
    "victoryline_spool_memory_bytes": "the spool is used while no document can be read from the database",
    "victoryline_spool_updates": "the spool is used while no document can be read from the database",
    "victoryline_store_outages": "counts what services.database shows",
}
OF_LIBRARIES = ("django_", "python_", "process_")


@pytest.fixture(scope="module", autouse=True)
def _every_metric_is_defined() -> None:
    """Imports every module that defines one, whichever process uses it."""
    root = Path(settings.BASE_DIR)
    for app in ("scraping", "monitoring", "apiauth", "victoryline"):
        for file in sorted((root / app).rglob("*.py")):
            if "prometheus_client" in file.read_text(encoding="utf-8"):
                importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


def own() -> set[str]:
    return {family.name for family in REGISTRY.collect() if not family.name.startswith(OF_LIBRARIES)}


def test_every_metric_of_a_process_has_a_figure_or_a_reason() -> None:
    scene()
    assert own() == FIGURES.keys() | DETAILS.keys()


def test_every_figure_is_in_a_document(client: Client) -> None:
    scene()
    shown = {*leaves(client.get("/health").json()), *leaves(client.get("/status").json())}
    for family, path in FIGURES.items():
        assert any(fits(leaf, (path,)) for leaf in shown), f"{family}: no document has {path}"


def test_no_metric_is_served_twice(client: Client) -> None:
    scene()
    system = {family.name for family in families(Evaluation(timezone.now()))}
    assert not system & own()
    typed = re.findall(r"^# TYPE (\S+)", client.get("/metrics").content.decode(), re.MULTILINE)
    assert len(typed) == len({*typed}) >= len(system) + len(own())


def test_only_the_leader_exports_the_figures_of_the_system(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum over instances counts them once, however many processes there are."""
    scene()
    assert b"active_scrapers_count" in client.get("/metrics").content
    monkeypatch.setattr(exposition.page, "is_leading", lambda: False)
    exposition.published.forget()
    page = client.get("/metrics", {"scope": "process"}).content.decode()
    served = {family.name for family in text_string_to_metric_families(page)}
    assert served.isdisjoint(family.name for family in families(Evaluation(timezone.now())))
    assert own() <= served
