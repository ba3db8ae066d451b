"""`@pytest.mark.requirement("FR-003")`: the tests that prove a requirement, and their last results.

Ids are those of docs/requirements.md; a test that names another one is a collection error. Results are merged into
TEST_RESULTS/requirements.json, because the suite runs in several processes; `make requirements` shows them.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from scripts.requirements import RESULTS, known_ids

ORDER = {"skipped": 0, "passed": 1, "failed": 2}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known = known_ids()
    for item in items:
        for unknown in sorted(set(ids_of(item)) - known):
            raise pytest.UsageError(
                f"{item.nodeid} names requirement {unknown}, which docs/requirements.md doesn't have"
            )


def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]") -> None:
    """Adds the ids to the report's user_properties, which xdist sends to its first process."""
    if call.when == "setup" and (ids := ids_of(item)):
        item.user_properties.append(("requirements", ids))


class Collector:
    """Collects the results in the process that receives all reports."""

    def __init__(self) -> None:
        self.outcomes: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ids = dict(report.user_properties).get("requirements")
        if not ids or (report.when != "call" and report.passed):
            return
        known = self.outcomes.setdefault(report.nodeid, {"ids": ids, "outcome": report.outcome})
        known["outcome"] = max(known["outcome"], report.outcome, key=lambda each: ORDER[each])

    def pytest_sessionfinish(self) -> None:
        if not self.outcomes:
            return
        merged = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        variant = "PostgreSQL" if os.environ.get("DATABASE_URL") else "SQLite"
        merged |= {f"{name} [{variant}]": outcome for name, outcome in self.outcomes.items()}
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        draft = RESULTS.with_suffix(".draft")
        draft.write_text(json.dumps(merged, indent=1, sort_keys=True))
        Path(draft).replace(RESULTS)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Collector(), "requirement-results")


def ids_of(item: pytest.Item) -> list[str]:
    return [str(each) for mark in item.iter_markers("requirement") for each in mark.args]
