"""SO-14: the metrics of the specification, by name, type and labels, as GET /metrics shows them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from monitoring import audit
from scraping.browser import session
from scraping.models import MatchRef
from scraping.payloads import Integrity
from scraping.readings import Reading, ReadMode, RefInfo
from scraping.signals import browser_replaced, command_done
from scraping.stats.read_stats import ReadStats
from tests.factories import cricket_state
from tests.monitoring.test_parity import scene
from tests.scraping.builders import payload_of

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("SO-14")]

# Series of the specification: name, type, labels without `le` and `quantile`.
SPECIFIED = {
    "scraper_pids_current": ("gauge", {"instance"}),
    "scraper_contexts_active": ("gauge", {"instance"}),
    "scraper_pages_open": ("gauge", {"instance"}),
    "scraper_browser_uptime_seconds": ("gauge", {"instance"}),
    "scraper_queue_depth": ("gauge", {"priority"}),
    "scraper_freshness_seconds": ("histogram", set()),
    "scraper_scrape_duration_seconds": ("histogram", {"domain"}),
    "scraper_scrapes": ("counter", {"domain", "status"}),
    "scraper_navigation_failures": ("counter", {"domain"}),
    "scraper_recycles": ("counter", {"reason"}),
    "scraper_data_staleness_seconds": ("summary", set()),
    "scraper_attempts": ("counter", {"source"}),
    "scraper_success": ("counter", {"source"}),
    "scraper_fail": ("counter", {"source", "type", "reason"}),
    "scraper_bytes_in_est": ("counter", {"source"}),
    "scraper_requests": ("counter", {"type"}),
    "scraper_requests_blocked": ("counter", {"type"}),
    "integrity_null_rate": ("gauge", {"match_id"}),
    "integrity_required_missing": ("counter", {"source", "field"}),
    "scraper_errors": ("counter", {"match_id", "error_type"}),
    "scraper_updates": ("counter", {"match_id"}),
    "scraper_update_latency_seconds": ("summary", {"match_id"}),
    "scraper_memory_bytes": ("gauge", {"match_id"}),
    "active_scrapers_count": ("gauge", set()),
    "data_staleness_seconds": ("gauge", {"match_id"}),
}
VALUES = {
    ("scraper_queue_depth", "priority"): {"live", "imminent", "completed"},
    ("scraper_scrapes", "status"): {"success", "failure"},
    ("scraper_data_staleness_seconds", "quantile"): {"0.5", "0.95", "0.99"},
}


def count_a_visit() -> None:
    """Counts a visit with a missing part as a worker does."""
    stats, now, crex = ReadStats(), timezone.now(), RefInfo("13KM", "https://crex.example/13KM")
    kinds: Any = {"requests_by_type": {"script": 3}, "blocked_by_type": {"image": 2}}
    stats.reading("crex", Reading(crex, ReadMode.VISIT, now, documents={}, duration_ms=1500, **kinds))
    payload = payload_of(MatchRef.objects.latest("pk"), cricket_state(), at=now)
    stats.payload("crex", payload.model_copy(update={"integrity": Integrity(missing_fields=("venue",))}))
    session._navigation_failures.labels("crex")


def test_every_metric_has_its_name_type_and_labels(client: Client) -> None:
    scene()
    count_a_visit()
    families = {one.name: one for one in text_string_to_metric_families(client.get("/metrics").content.decode())}
    found = {
        name: (family.type, {label for sample in family.samples for label in sample.labels} - {"le", "quantile"})
        for name, family in families.items()
        if name in SPECIFIED
    }
    assert found == SPECIFIED
    for (name, label), values in VALUES.items():
        assert {sample.labels[label] for sample in families[name].samples if label in sample.labels} == values
    buckets = {sample.labels.get("le"): sample.value for sample in families["scraper_scrape_duration_seconds"].samples}
    assert (buckets["1.0"], buckets["3.0"]) == (buckets["3.0"] - 1, buckets["+Inf"])


def test_recycles_have_the_reasons_uptime_task_count_and_manual(client: Client) -> None:
    def recycles() -> dict[str, float]:
        families = text_string_to_metric_families(client.get("/metrics").content.decode())
        (found,) = (one for one in families if one.name == "scraper_recycles")
        return {sample.labels["reason"]: sample.value for sample in found.samples}

    assert recycles() == {"uptime": 0, "task_count": 0, "manual": 0}
    now = timezone.now()
    for cause in ("age", "age", "pages", "memory"):
        browser_replaced.send(None, worker_id="w1", reason="worn", seconds=1.0, cause=cause, now=now)
    command = {"worker_id": "w1", "kind": "recycle_browser", "reason": "it hangs", "seconds": 1.0, "now": now}
    command_done.send(None, actor="Ann", **command)
    command_done.send(None, actor="scheduler", **command)
    audit.record(actor="scheduler", action_type="soft_restart", trigger_condition="stale", now=now)
    assert recycles() == {
        "uptime": 2, "task_count": 1, "manual": 1, "memory": 1, "browser_recycle": 1, "soft_restart": 1,
    }  # fmt: skip
