"""`--marked both,scaled`: opens only test files whose text contains one of these marks. A phase of `make test` needs
the tests of a few files; importing all others takes longer than many tests. `-m` selects as usual. A run that opens all
files checks that every file with a mark names it.
"""

import re
from functools import cache
from pathlib import Path

import pytest

OF_PHASES = ("slow", "alone", "both", "scaled")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--marked", default="", help="open only test files that name one of these marks: both,scaled")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Returns None to leave the decision to other plugins."""
    wanted = set(filter(None, str(config.getoption("--marked")).split(",")))
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if wanted and is_test and not wanted & marks_named_in(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before `-m` leaves some of them out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--marked"):
        return
    for item in items:
        for mark in OF_PHASES:
            if item.get_closest_marker(mark) and mark not in marks_named_in(item.path):
                raise pytest.UsageError(f"{item.nodeid} is marked {mark}, but its file does not say pytest.mark.{mark}")


@cache
def marks_named_in(file: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\bmark\.(\w+)", file.read_text(encoding="utf-8")))
