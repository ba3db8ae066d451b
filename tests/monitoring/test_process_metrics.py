"""BX-15 for the metrics that a process counts itself, beside those of the database (test_parity.py).

/metrics of the web and the port of each worker serve both. A process knows only its own share, so the documents have
the figures of the whole system; every metric is matched with its figure, or is a detail that only explains one.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from prometheus_client import REGISTRY

from monitoring.metrics.exposition import DatabaseCollector, registry
from tests.monitoring.test_parity import fits, leaves, scene

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("BX-15")]

# Families of the process, and the figure of a document that has the same for the whole system.
FIGURES = {
    "integrity_null_rate": "sources[].integrity_score",
    "integrity_required_missing": "sources[].integrity_score",
    "scraper_read_mode_changes": "sources[].matches_by_read_mode.*",
    "scraper_requests": "sources[].requests",
    "scraper_requests_blocked": "sources[].requests_blocked",
    "victoryline_attached_pages": "workers[].page_count",
    "victoryline_browser_launches": "workers[].browser_launches",
    "victoryline_memory_reliefs": "audit_entries[].action_type",
    "victoryline_store_away": "services.database",
    "victoryline_worker_memory_soft_limit_bytes": "config_snapshot.memory_soft_limit_mb",
    "victoryline_worker_tree_memory_bytes": "workers[].memory_mb",
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
    assert own() == FIGURES.keys() | DETAILS.keys()


def test_every_figure_is_in_a_document(client: Client) -> None:
    scene()
    shown = {*leaves(client.get("/health").json()), *leaves(client.get("/status").json())}
    for family, path in FIGURES.items():
        assert any(fits(leaf, (path,)) for leaf in shown), f"{family}: no document has {path}"


@pytest.mark.parametrize("closes_connections", [False, True], ids=["the web's", "a worker's"])
def test_a_registry_serves_both_and_no_metric_twice(closes_connections: bool) -> None:
    scene()
    served = [family.name for family in registry(closes_connections=closes_connections).collect()]
    assert {*own(), *(family.name for family in DatabaseCollector().collect())} <= {*served}
    assert len(served) == len({*served})
