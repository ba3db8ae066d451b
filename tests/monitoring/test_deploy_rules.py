"""The rules of deploy/prometheus, run by promtool over invented series: each one fires, ends, and is quiet before."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.utils import timezone
from prometheus_client import REGISTRY

from monitoring.health.evaluation import Evaluation
from monitoring.metrics.families import families
from scripts.system_packages import find_program
from tests.monitoring.test_parity import scene
from tests.monitoring.test_process_metrics import _every_metric_is_defined  # noqa: F401 - a fixture

FOLDER = Path(settings.BASE_DIR) / "deploy" / "prometheus"
NAME = re.compile(
    r"\b(?:scraper_[a-z_]+|victoryline_[a-z_]+|integrity_[a-z_]+|db_[a-z_]+|active_scrapers_count|data_[a-z_]+)\b"
)
SUFFIXES = ("_total", "_bucket", "_count", "_sum")
ENGINE = 'instance="worker:9090",job="victoryline-engine"'


@dataclass(frozen=True)
class Case:
    """`quiet`, `firing` and `ended` are times in minutes; series have a sample every `every_seconds`."""

    alert: str
    labels: str  # of the alert that fires, but for its name, state and severity
    quiet: float
    firing: float
    ended: float
    series: dict[str, str] = field(default_factory=dict)
    every_seconds: int = 15


def grows(*phases: tuple[float, int]) -> str:
    """Returns a counter of phases: the step from sample to sample, and the number of samples."""
    value, parts = 0.0, []
    for step, number in phases:
        parts.append(f"{value:g}+{step:g}x{number - 1}")
        value += step * number
    return " ".join(parts)


def objective(missed: str, met: str, name: str = "freshness", target: float = 0.99) -> dict[str, str]:
    counter = "scraper_objective_measurements_total"
    return {
        f'{counter}{{objective="{name}",is_met="no"}}': missed,
        f'{counter}{{objective="{name}",is_met="yes"}}': met,
        f'scraper_objective_target_ratio{{objective="{name}"}}': f"{target}x20000",
    }


LIMITS = {
    f'victoryline_worker_memory_limit_bytes{{{ENGINE},limit="soft"}}': "1500x100",
    f'victoryline_worker_memory_limit_bytes{{{ENGINE},limit="hard"}}': "2000x100",
}
MEMORY = f"scraper_worker_memory_bytes{{{ENGINE}}}"
CASES = (
    Case("DataStale", 'match_id="m"', 1, 3, 5, {'data_staleness_seconds{match_id="m"}': "290x8 310x8 2x20"}),
    Case("ScraperDown", "", 1.75, 2.5, 5, {'victoryline_health{status="down"}': "0x6 1x8 0x20"}),
    Case("TargetDown", ENGINE, 1.5, 2.5, 5, {f"up{{{ENGINE}}}": "1x5 0x8 1x20"}),
    Case("MetricsMissing", "", 0.5, 5, 10, {"active_scrapers_count": "1x8 stale _x20 1x20"}),
    Case(
        "NoScrapers", "", 1, 4, 8,
        {'active_scrapers_count{instance="a"}': "3x8 0x16 3x20", 'scraper_live_matches{instance="a"}': "3x60"},
    ),
    Case("MemoryCritical", ENGINE, 1, 3, 6, {MEMORY: "1900x8 2100x8 900x20", **LIMITS}),
    Case(
        "MemoryCritical", ENGINE, 1, 3, 12,
        {
            f'victoryline_memory_reliefs_total{{{ENGINE},relief="kill_browser"}}': "0x8 1x60",
            f'victoryline_memory_reliefs_total{{{ENGINE},relief="replace_browser"}}': "0x4 1x60",
        },
    ),
    # It probes in between and is never closed; a shorter time before is no alert.
    Case(
        "CircuitBreakerOpen", 'name="crex"', 6, 13, 17,
        {'scraper_breaker_state{name="crex"}': "2x12 0x16 2x8 1x8 2x16 0x20"},
    ),
    Case("DatabaseAway", 'instance="a"', 2, 4, 7, {'victoryline_database_up{instance="a"}': "1x8 0x12 1x20"}),
    Case("MatchesFrozen", "", 1, 3, 6, {"scraper_frozen_matches": "0x8 2x8 0x20"}),
    # Eight a minute for four minutes, then sixteen.
    Case(
        "HighErrorRate", 'match_id="m"', 4, 8, 15,
        {'scraper_errors_total{match_id="m",error_type="network"}': grows((2, 17), (4, 17), (0, 60))},
    ),
    Case("ElevatedMemory", ENGINE, 1, 3, 6, {MEMORY: "1400x8 1600x8 900x20", **LIMITS}),
    Case("MemoryNearLimit", ENGINE, 3, 5, 8, {MEMORY: "1100x8 1300x16 900x20", **LIMITS}),
    Case(
        "SlowRecovery", "", 4, 6, 30,
        {
            'scraper_recoveries_total{by="system",outcome="success"}': "0+1x160",
            'scraper_recoveries_total{by="operator",outcome="failed"}': "0 1x160",
            'scraper_recoveries_total{by="system",outcome="failed"}': "0x18 1x140",
        },
    ),
    Case(
        "DatabaseSlow", 'instance="a"', 4, 14, 30,
        {
            'db_pool_wait_seconds_bucket{instance="a",le="0.5"}': grows((10, 24), (0, 32), (10, 80)),
            'db_pool_wait_seconds_bucket{instance="a",le="1"}': grows((10, 136)),
            'db_pool_wait_seconds_bucket{instance="a",le="+Inf"}': grows((10, 136)),
        },
    ),
    Case(
        "SuccessRateLow", 'source="crex"', 45, 60, 80,
        {
            'scraper_attempts_total{source="crex"}': grows((10, 400)),
            'scraper_success_total{source="crex"}': grows((9, 80), (7, 160), (10, 160)),
        },
    ),
    Case("BreakerOpened", "", 2, 40, 70, {'scraper_breakers{state="open"}': "0x12 1x4 0x400"}),
    Case(
        "NullRateHigh", 'endpoint_family="lineups"', 5, 60, 150,
        {
            'integrity_null_rate{match_id="a",endpoint_family="lineups",league_id="x"}': "0x24 0.5x240 0x500",
            'integrity_null_rate{match_id="b",endpoint_family="lineups",league_id="y"}': "0x24 0.3x240 0x500",
            'integrity_null_rate{match_id="a",endpoint_family="score",league_id="x"}': "0.1x700",
        },
    ),
    Case("TrafficBudget", 'source="crex"', 1, 3, 6, {'scraper_budget_used_ratio{source="crex"}': "0.7x8 0.9x8 0x20"}),
    Case(
        "TrafficUnusual", 'source="crex"', 130, 175, 230,
        {'scraper_bytes_in_est_total{source="crex"}': grows((10, 140), (90, 40), (10, 150))}, 60,
    ),
    Case("QueueLate", "", 3, 5, 8, {"scraper_queue_oldest_age_seconds": "12x8 40x16 1x20"}),
    # Of the freshness objective 20 % are missed, of the uptime 10 %: 14.4 times their budgets are 14.4 and 7.2 %.
    Case(
        "ErrorBudgetBurn", 'objective="freshness"', 30, 90, 130,
        objective(grows((0, 160), (20, 240), (0, 400)), grows((100, 160), (80, 240), (100, 400))),
    ),
    Case(
        "ErrorBudgetBurn", 'objective="uptime"', 30, 95, 130,
        objective(
            grows((0, 160), (10, 240), (0, 400)), grows((100, 160), (90, 240), (100, 400)), "uptime", 0.995
        ),
    ),
    # Eight per cent for hours: six times the budget of one per cent, the slower pair of windows.
    Case(
        "ErrorBudgetBurn", 'objective="freshness"', 30, 420, 480,
        objective(grows((0, 40), (8, 400), (0, 150)), grows((100, 40), (92, 400), (100, 150))), 60,
    ),
    # Two per cent for days: only the drain.
    Case(
        "ErrorBudgetDrain", 'objective="freshness"', 5, 3000, 3840,
        objective(grows((0, 3), (2, 620), (0, 200)), grows((100, 3), (98, 620), (100, 200))), 300,
    ),
    Case("DeadMansSwitch", "", -1, 1, -1),
)  # fmt: skip


def rules(file: str = "alerts.yml") -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / file).read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def promtool(*arguments: str | Path) -> str:
    program = find_program("promtool")
    assert program is not None, "promtool is missing: type make test, which installs it"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(folder: Path, series: dict[str, str], expected: list[dict[str, Any]], every_seconds: int = 15) -> None:
    inputs = [{"series": key, "values": value} for key, value in series.items()]
    test = {"interval": f"{every_seconds}s", "input_series": inputs}
    document = {
        "rule_files": [str(FOLDER / "records.yml"), str(FOLDER / "alerts.yml")],
        "evaluation_interval": f"{every_seconds}s",
        "tests": [test | {"promql_expr_test": expected}],
    }
    file = folder / "test.json"
    file.write_text(json.dumps(document))  # YAML too
    promtool("test", "rules", file)


def severity_of(alert: str) -> str:
    return next(str(rule["labels"]["severity"]) for rule in rules() if rule["alert"] == alert)


@pytest.mark.requirement("FR-016", "FS-17")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}-{case.firing:g}")
def test_an_alert_is_quiet_fires_and_ends(case: Case, tmp_path: Path) -> None:
    shown = f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}'
    labels = ",".join(filter(None, [case.labels, f'severity="{severity_of(case.alert)}"']))
    firing = [{"labels": f"{shown[:-1]},{labels}}}", "value": 1}]
    moments = ((case.quiet, []), (case.firing, firing), (case.ended, []))
    expected = [
        {"expr": shown, "eval_time": f"{int(minutes * 60)}s", "exp_samples": samples}
        for minutes, samples in moments
        if minutes >= 0
    ]
    run(tmp_path, case.series, expected, case.every_seconds)


def test_every_alert_has_a_case() -> None:
    assert {rule["alert"] for rule in rules()} == {case.alert for case in CASES}


def test_recorded_ratios(tmp_path: Path) -> None:
    series = {
        **objective("0+1x400", "0+3x400"),
        'scraper_attempts_total{source="crex"}': "0+10x400",
        'scraper_success_total{source="crex"}': "0+9x400",
        'scraper_errors_total{match_id="m",error_type="network"}': "0+1x400",
        'scraper_errors_total{match_id="m",error_type="parsing"}': "0+2x400",
        'scraper_bytes_in_est_total{source="crex"}': "0+1500x400",
        'scraper_updates_total{match_id="m"}': "0+15x400",
        'scraper_updates_total{match_id="n"}': "0+30x400",
        'scraper_scrape_duration_seconds_bucket{domain="crex",le="1"}': "0+5x400",
        'scraper_scrape_duration_seconds_bucket{domain="crex",le="3"}': "0+10x400",
        'scraper_scrape_duration_seconds_bucket{domain="crex",le="+Inf"}': "0+10x400",
        'scraper_freshness_seconds_bucket{le="5"}': "0+10x400",
        'scraper_freshness_seconds_bucket{le="+Inf"}': "0+10x400",
        'integrity_null_rate{match_id="a",endpoint_family="ratings"}': "0.25x400",
        'integrity_null_rate{match_id="b",endpoint_family="ratings"}': "0.75x400",
    }
    of_objective = 'objective="freshness"'
    wanted = {
        f"victoryline:objective_budget:ratio{{{of_objective}}}": 0.01,
        **{
            f"victoryline:objective_missed:ratio_rate{window}{{{of_objective}}}": 0.25 for window in ("5m", "30m", "1h")
        },
        'victoryline:attempts_succeeded:ratio_rate5m{source="crex"}': 0.9,
        'victoryline:match_errors:per_minute{match_id="m"}': 12,
        "victoryline:updates:rate5m": 3,
        'victoryline:bytes_in:rate5m{source="crex"}': 100,
        'victoryline:scrape_duration_seconds:p95_5m{domain="crex"}': 2.8,
        "victoryline:freshness_seconds:p95_5m": 4.75,
        'victoryline:null_rate:avg_1h{endpoint_family="ratings"}': 0.5,
    }
    expected = [
        {
            "expr": f"round({name}, 1e-6)",
            "eval_time": "90m",
            "exp_samples": [{"labels": labels_of(name), "value": value}],
        }
        for name, value in wanted.items()
    ]
    run(tmp_path, series, expected)
    recorded = {rule["record"] for rule in rules("records.yml")}
    assert {name.partition("{")[0] for name in wanted} >= {name for name in recorded if "missed" not in name}


def labels_of(series: str) -> str:
    return "{" + series.partition("{")[2] if "{" in series else "{}"


def test_prometheus_accepts_its_configuration() -> None:
    assert "2 rule files found" in promtool("check", "config", FOLDER / "prometheus.yml")


@pytest.mark.django_db
def test_rules_name_only_metrics_that_are_served() -> None:
    scene()
    served = {one.name for one in [*families(Evaluation(timezone.now())), *REGISTRY.collect()]}
    for rule in [*rules(), *rules("records.yml")]:
        for name in NAME.findall(re.sub(r"victoryline:[a-z_:0-9]+", "", rule["expr"])):
            plain = next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end)), name)
            assert {name, plain} & served, f"{name} of {rule.get('alert') or rule['record']} is not served"


def test_prometheus_scrapes_every_process() -> None:
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    compose = yaml.safe_load((Path(settings.BASE_DIR) / "docker-compose.yml").read_text(encoding="utf-8"))
    found = {name for job in config["scrape_configs"] for one in job["dns_sd_configs"] for name in one["names"]}
    assert found == {"web", "scheduler", "worker"} <= set(compose["services"])
