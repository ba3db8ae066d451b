"""Fault 21: wrong responses with status 200. None is stored as a match, and evidence of each is kept."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.faults.conftest import Recovered
from tests.faults.database import as_stored
from tests.faults.progress import Progress
from tests.faults.system import System, impatient_system
from tests.patience import wait_for

pytestmark = [
    pytest.mark.usefixtures("calm"),
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.alone,
    pytest.mark.fault_number(21),
]

FAULT_SECONDS = 12.0
NEXT_POLL_SECONDS = 20.0  # breakers, pauses and retries of this system have ended by then
SILENCE_SECONDS = 60.0  # a source that blocks us is polled later
SKIPPED_SIMULATED_SECONDS = 900
LEAST_EVENTS = 4  # half of fewer is one, which could also be a retraction
# a visit that began before the end of the fault may end so much later: navigation, then selectors
UNDER_WAY_SECONDS = 10.0


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    more = {
        "CIRCUIT_BREAKER_SUCCESS_THRESHOLD": "1",
        "DRIFT_RETRY_SECONDS": "5",
        # Faults follow each other: an open source breaker of 15 minutes would hide the next one.
        "SOURCE_BREAKER_MIN_CALLS": "10000",
    }
    with impatient_system(**more) as running:
        yield running


@pytest.mark.requirement("US1.4", "ZT-5")
@pytest.mark.parametrize(
    ("words", "kind", "shown"),
    [
        ("a bot challenge", "challenge", "Checking your browser"),
        ("a page to sign in", "login", "Sign in to go on"),
        ("another layout", "layout", "v2_"),
        ("another match's data", "wrong_match", "about another match"),
        ("half of every list", "half_list", "known events"),
    ],
)
def test_good_data_is_kept_and_the_next_poll_is_correct(
    system: System, words: str, kind: str, shown: str, recovered: Recovered
) -> None:
    bound = SILENCE_SECONDS if kind == "challenge" else NEXT_POLL_SECONDS
    if kind == "half_list":
        wait_for_events(system)
    live = [match.ref_id for match in system.live()]
    progress = Progress(system)
    began_at = time.time()
    planted = system.stadium.fault(kind=kind, seconds=FAULT_SECONDS)

    def is_over() -> bool:
        progress.look()
        (now,) = [one for one in system.stadium.ask("/control/faults") if one["id"] == planted["id"]]
        assert now["active"] or now["hits"] > 0, "it never struck: this shows nothing"
        return not now["active"]

    wait_for(is_over, seconds=FAULT_SECONDS + 10, what="the end of the fault")
    healed_at = time.time()
    seconds = system.await_updates(live, since=healed_at, seconds=bound * 3)
    progress.look()
    recovered(f"source showing {words} for {FAULT_SECONDS:g} s", seconds, bound=bound)
    assert progress.worse == []
    assert any(shown in text for text in _evidence(system, began_at))
    system.assert_is_true()
    assert _errors(system, healed_at + UNDER_WAY_SECONDS) == []  # the first poll of each was good
    system.assert_is_whole()
    assert system.exits == []


def wait_for_events(system: System) -> None:
    """Waits until every live match has events."""
    sql = "SELECT COUNT(*) FROM scraping_matchevent WHERE match_id = %s AND is_current = %s AND action <> 'retract'"

    def fewest() -> int:
        return min(int(system.database.rows(sql, match.match_id, True)[0][0]) for match in system.live())

    if fewest() < LEAST_EVENTS:
        system.stadium.skip(SKIPPED_SIMULATED_SECONDS)
        system.settle()
    wait_for(lambda: fewest() >= LEAST_EVENTS, seconds=90, what=f"{LEAST_EVENTS} events of every live match")


def _evidence(system: System, since: float) -> list[str]:
    """Returns the refused responses and their evidence. Each row has its file."""
    rows = system.database.rows(
        "SELECT f.path, e.error_message FROM scraping_evidence f JOIN scraper_errors e ON e.id = f.error_id "
        "WHERE f.created_at >= %s",
        as_stored(system.database, since),
    )
    files = ((message, system.folder / "storage" / path) for path, message in rows)
    return [f"{message}\n{file.read_bytes().decode(errors='replace')}" for message, file in files]


def _errors(system: System, since: float) -> list[tuple[object, ...]]:
    return system.database.rows(
        "SELECT match_id, error_type, error_message FROM scraper_errors WHERE timestamp >= %s",
        as_stored(system.database, since),
    )
