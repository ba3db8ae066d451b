"""The files that Prometheus reads name only metrics that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from django.conf import settings

FOLDER = Path(settings.BASE_DIR) / "deploy" / "prometheus"
NAME = re.compile(
    r"\b(?:scraper_[a-z_]+|victoryline_[a-z_]+|active_scrapers_count|data_staleness_seconds|data_integrity_score)\b"
)


def rules() -> list[dict[str, str]]:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.django_db
@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_names_only_metrics_that_are_served(client, rule):
    served = client.get("/metrics").content.decode()
    for name in NAME.findall(rule["expr"]):
        assert f"# TYPE {name.removesuffix('_total')}" in served or f"# TYPE {name}" in served, name


def test_prometheus_loads_the_rules_and_scrapes_every_process():
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    compose = yaml.safe_load((Path(settings.BASE_DIR) / "docker-compose.yml").read_text(encoding="utf-8"))
    targets = {t.split(":")[0] for job in config["scrape_configs"] for s in job["static_configs"] for t in s["targets"]}
    assert config["rule_files"] == ["alerts.yml"]
    assert targets == {"web", "scheduler", "worker"}
    assert targets <= set(compose["services"])
