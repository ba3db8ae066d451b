"""Fixtures of the fault tests: `recovered` reports how long a recovery took and asserts its bound."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.faults.system import System

CASE_BOUND = 20.0
NOISE = 3.0  # the bounds are meant for a faster and less busy machine


class Recovered(Protocol):
    def __call__(self, what: str, seconds: float, *, bound: float | None = None) -> None:
        """Prints the duration and adds it to the report. Fails above three times the bound."""


@pytest.fixture
def calm(system: System) -> Iterator[None]:
    """Starts a test with an up-to-date system and removes its faults afterwards."""
    system.settle()
    yield
    system.stadium.clear()


@pytest.fixture
def recovered(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None], report: Callable[[str], None]
) -> Recovered:
    number = number_of(request.node)

    def note(what: str, seconds: float, *, bound: float | None = None) -> None:
        record_property("recovery_seconds", round(seconds, 2))
        report(line(number, what, seconds, bound))
        _keep({"fault": number, "what": what, "seconds": round(seconds, 2), "bound": bound})
        assert bound is None or seconds <= bound * NOISE, (
            f"{what}: {seconds:.1f} s, three times the bound of {bound:g} s"
        )

    return note


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Prints past pytest's capturing, so that the figure is also shown for a passed test."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def write(words: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n    {words}", flush=True)  # noqa: T201 - the figure is the point

    return write


def line(number: int, what: str, seconds: float, bound: float | None) -> str:
    limit = "" if bound is None else f" (bound {bound:g} s)"
    return f"fault {number} {what}: recovered in {seconds:.1f} s{limit}"


def number_of(item: pytest.Item) -> int:
    """Returns the row of the fault matrix that a test proves."""
    mark = item.get_closest_marker("fault_number")
    return int(mark.args[0]) if mark else 0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fault", type=int, default=0, help="only the tests of this row of the matrix of faults")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--fault")
    if wanted:
        other = [item for item in items if number_of(item) != wanted]
        items[:] = [item for item in items if number_of(item) == wanted]
        config.hook.pytest_deselected(items=other)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds failed tests to the table."""
    report = yield
    if report.failed:
        _keep(
            {"fault": number_of(item), "what": f"{item.name}: failed in {report.when}", "seconds": None, "bound": None}
        )
    return report


def _keep(figure: dict[str, object]) -> None:
    """Stores a line for the table at the end of `make faults`."""
    if path := os.environ.get("FAULT_REPORT"):
        with Path(path).open("a") as report:
            report.write(json.dumps(figure) + "\n")


@pytest.fixture(scope="module")
def worst(request: pytest.FixtureRequest, report: Callable[[str], None]) -> Iterator[Callable[[str, float], None]]:
    """Reports the slowest of many short cases of one fault, at the end of the module."""
    seen: dict[str, list[float]] = {}
    yield lambda what, seconds: seen.setdefault(what, []).append(seconds)
    number = int(request.node.get_closest_marker("fault_number").args[0])
    for what, seconds in seen.items():
        words, slowest = f"{what}, {len(seconds)} times, the slowest", max(seconds)
        report(line(number, words, slowest, CASE_BOUND))
        _keep({"fault": number, "what": words, "seconds": round(slowest, 2), "bound": CASE_BOUND})
        assert slowest <= CASE_BOUND * NOISE, f"{what}: {slowest:.1f} s, three times the bound of {CASE_BOUND:g} s"
