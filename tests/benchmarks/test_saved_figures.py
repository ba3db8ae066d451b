"""Requirements that are figures, against the saved results of the benches: whole systems, measured alone."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import pytest

from benchmarks import results
from scraping.documents.queries import SERVED_AFTER

HEALTH = pytest.mark.requirement("NFR-006", "FR-012", "US3.1")
RECOVERY = pytest.mark.requirement("NFR-005")
COMMIT = pytest.mark.requirement("NFR-004")
AGE = pytest.mark.requirement("NFR-001", "NFR-011")
AS_OF = pytest.mark.requirement("BX-4")
ONE_MATCH, NO_OTHER = pytest.mark.requirement("SO-12"), pytest.mark.requirement("BX-6")
MEMORY = pytest.mark.requirement("NFR-002", "NFR-003")  # 10 GB in all: less than 1 GB for each of ten or more


def saved(bench: str) -> dict[str, Any]:
    file = results.FOLDER / f"{bench}.json"
    assert file.exists(), f"not measured: make bench BENCH={bench}"
    measured: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert measured["problems"] == []
    return measured


def at(measured: dict[str, Any], path: str) -> float:
    return float(reduce(lambda value, key: value[key], path.split("."), measured))


@pytest.mark.parametrize(
    ("bench", "figure", "limit"),
    [
        pytest.param("health", "p95_ms", 100, marks=HEALTH, id="/health with 300 scrapers"),
        pytest.param("load", "health_p95_ms", 100, marks=HEALTH, id="/health beside 100 API requests a second"),
        pytest.param("load", "lag_max_ms", SERVED_AFTER.total_seconds() * 1000, marks=AS_OF, id="`as_of`"),
        pytest.param("recovery", "browser_p95_s", 60, marks=RECOVERY, id="browser killed, until every match is read"),
        pytest.param("recovery", "worker_p95_s", 60, marks=RECOVERY, id="worker killed, until every match is read"),
        pytest.param("live", "commit_ms", 500, marks=COMMIT, id="from the reading to the commit, 300 matches"),
        pytest.param("attached", "commit_ms", 500, marks=COMMIT, id="from the reading to the commit, 50 open pages"),
        pytest.param("live", "age_p99_s", 10, marks=AGE, id="age of 300 matches"),
        pytest.param("attached", "age_p99_s", 10, marks=AGE, id="age of 50 open pages"),
        pytest.param("live", "memory_mb", 10_000, marks=MEMORY, id="memory of 300 matches"),
        pytest.param("attached", "memory_mb", 10_000, marks=MEMORY, id="memory of 50 open pages"),
    ],
)
def test_is_within_its_limit(bench: str, figure: str, limit: float) -> None:
    assert 0 < at(saved(bench), figure) < limit


@pytest.mark.parametrize(
    ("bench", "path", "least"),
    [
        ("health", "live.matches", 100),
        ("load", "matches", 100),
        ("load", "requests", 10_000),
        ("recovery", "matches", 10),
        ("live", "matches", 10),
        ("live", "seconds", 60),
        ("attached", "matches", 10),
        ("pairing", "pairs", 10_000),
        ("pairing", "traps", 3_000),
    ],
)
def test_was_measured_under_load(bench: str, path: str, least: float) -> None:
    assert at(saved(bench), path) >= least


@ONE_MATCH
def test_finds_the_matches_of_two_sites() -> None:
    found = saved("pairing")
    assert found["found"] >= 0.97
    assert found["apart"] < 0.01


@NO_OTHER
def test_takes_no_match_for_another() -> None:
    found = saved("pairing")
    assert found["false_joins"] == 0
    assert all(peer["false_joins"] for peer in found["peers"].values()), "the traps are none"
