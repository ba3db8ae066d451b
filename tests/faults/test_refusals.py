"""Fault 19: sources refuse, fail or disconnect. They get few requests, and are polled again afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from scraping.configuration.policies import SOURCE_BREAKER
from tests.faults import manners
from tests.faults.conftest import Recovered
from tests.faults.progress import Progress
from tests.faults.system import System, impatient_system
from tests.patience import wait_for

pytestmark = [
    pytest.mark.usefixtures("calm"),
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.alone,
    pytest.mark.fault_number(19),
]

FAULT_SECONDS = 15.0
CALM_SECONDS = 8.0
BOUND = 60.0
PROBES = SOURCE_BREAKER.probes
RETRY_AFTER_SECONDS = 5.0  # the Retry-After of the stadium's 429 and 503


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """A system whose breakers open during the fault and probe soon."""
    more = {
        "LOG_FORMAT": "json",
        "CIRCUIT_BREAKER_THRESHOLD": "3",
        "CIRCUIT_BREAKER_SUCCESS_THRESHOLD": "1",
        "SOURCE_BREAKER_WINDOW_SECONDS": "20",
        "SOURCE_BREAKER_MIN_CALLS": "8",
        "SOURCE_BREAKER_MIN_SECONDS": "10",
        "SOURCE_BREAKER_COOLDOWN_SECONDS": "6",
        "DRIFT_RETRY_SECONDS": "6",
    }
    with impatient_system(**more) as running:
        yield running


@pytest.fixture(scope="module")
def usual_rate(system: System) -> float:
    """Returns the requests per second of a healthy system."""
    system.settle()
    began_at = time.time()
    wait_for(lambda: time.time() > began_at + CALM_SECONDS, seconds=CALM_SECONDS + 1, what="some calm seconds")
    return manners.asked_for_data(system, since=began_at, until=began_at + CALM_SECONDS) / CALM_SECONDS


@pytest.mark.requirement("NFR-005")
@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("answering 503 with Retry-After", {"kind": "status", "value": 503}),
        ("answering 500", {"kind": "status", "value": 500}),
        ("answering 403", {"kind": "status", "value": 403}),
        ("answering 429 with Retry-After", {"kind": "status", "value": 429}),
        ("cutting every connection", {"kind": "reset"}),
        ("answering nothing with status 200", {"kind": "empty"}),
        ("answering half of its JSON", {"kind": "malformed"}),
    ],
)
def test_gets_few_requests_and_is_polled_again(
    system: System, usual_rate: float, words: str, fault: dict[str, object], recovered: Recovered
) -> None:
    live = [match.ref_id for match in system.live()]
    progress, above_limit = Progress(system), list[str]()
    began_at = time.time()
    planted = system.stadium.fault(**fault, seconds=FAULT_SECONDS)

    def is_over() -> bool:
        progress.look()
        above_limit.extend(manners.concurrency_violations(system))
        (now,) = [one for one in system.stadium.ask("/control/faults") if one["id"] == planted["id"]]
        assert now["active"] or now["hits"] > 0, "it never struck: this shows nothing"
        return not now["active"]

    wait_for(is_over, seconds=FAULT_SECONDS + 10, what="the end of the fault")
    healed_at = time.time()
    meanwhile = manners.asked_for_data(system, since=began_at, until=healed_at)
    recovered(f"source {words} for {FAULT_SECONDS:g} s", _back(system, live, healed_at, progress), bound=BOUND)
    ended_at = time.time()
    assert progress.worse == []
    assert above_limit == []
    assert manners.breaker_violations(system, since=began_at, until=ended_at, probes=PROBES) == []
    assert manners.interval_violations(system, since=began_at, until=ended_at) == []
    assert meanwhile <= usual_rate * (healed_at - began_at), "it was asked more often than when all was well"
    if fault.get("value") in (429, 503):
        assert _polls_before_retry_after(system, began_at, int(str(fault["value"]))) == []
    system.assert_is_true()
    system.assert_is_whole()
    assert system.exits == []


def test_the_breaker_of_the_source_opened_too(system: System) -> None:
    """Otherwise the cases above would test only the breakers of matches."""
    seen = {(span.breaker, span.state) for span in manners.spans(system, since=0, until=time.time())}
    assert {("crex_source", "OPEN"), ("crex_source", "HALF_OPEN"), ("crex_source", "CLOSED")} <= seen
    assert any(name.endswith("_scraper") and state == "OPEN" for name, state in seen)


def _back(system: System, live: list[int], healed_at: float, progress: Progress) -> float:
    seconds = system.await_updates(live, since=healed_at, seconds=BOUND * 2)
    progress.look()
    return seconds


def _polls_before_retry_after(system: System, since: float, status: int) -> list[str]:
    """Returns polls of a match that came before the Retry-After of its last refusal."""
    found, refused_at = [], dict[tuple[str, str], float]()
    for one in manners.asked(system, since=since):
        name = one.site, one.match
        if not one.match or one.target != "live":
            continue
        if name in refused_at and one.at < refused_at[name] + RETRY_AFTER_SECONDS:
            found.append(f"{name} was asked again {one.at - refused_at[name]:.2f} s after {status}")
        if one.status == status:
            refused_at[name] = one.at
    return found
