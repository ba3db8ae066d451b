"""Ten live matches in the embedded system: age, memory and speed. The benchmarks have exact figures."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.patience import wait_for
from tests.system import EmbeddedSystem

pytestmark = [pytest.mark.slow, pytest.mark.alone]
MATCHES = 10
SECONDS = 5.0


def _age(stamp: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()


@pytest.mark.requirement("NFR-001", "NFR-002", "NFR-003", "NFR-004")
def test_ten_live_matches_stay_fresh_and_small(tmp_path: Path) -> None:
    with EmbeddedSystem(tmp_path / "var", STADIUM_PROGRAMME=f"load:{MATCHES}", STADIUM_PACE="1") as system:

        def read_matches() -> list[dict[str, Any]]:
            return [match for match in system.get("/health")[1]["per_match_status"] if match["last_update_iso8601"]]

        wait_for(lambda: len(read_matches()) == MATCHES, seconds=60, what="ten matches that were read")
        ages, reports = [], []
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            reports.append(system.get("/health")[1])
            ages += [_age(match["last_update_iso8601"]) for match in reports[-1]["per_match_status"]]
            time.sleep(0.5)
    assert len(ages) >= MATCHES * 3
    assert max(ages) < 10
    assert max(report["total_memory_mb"] for report in reports) < 10_000
    assert max(match["memory_mb"] for report in reports for match in report["per_match_status"]) < 1_000
    assert 0 < reports[-1]["performance"]["average_latency_ms"] < 500
