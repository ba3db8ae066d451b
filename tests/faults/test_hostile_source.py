"""An engine with hostile sources: endless responses, decompression bombs, redirects to other hosts."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Self

import psutil
import pytest

from tests.faults.conftest import Recovered
from tests.faults.system import System, impatient_system
from tests.patience import stretched, wait_for

pytestmark = [
    pytest.mark.usefixtures("calm"),
    pytest.mark.fault,
    pytest.mark.faults_only,
    pytest.mark.slow,
    pytest.mark.alone,
]

FAULT_SECONDS = 8.0
MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    more = {
        # Faults follow each other: an open source breaker of 15 minutes would hide the next one.
        "SOURCE_BREAKER_MIN_CALLS": "10000",
    }
    with impatient_system(**more) as running:
        yield running


@pytest.mark.fault_number(22)
class TestOversizedResponses:
    @pytest.mark.parametrize(
        ("words", "fault"),
        [
            ("dripping", {"kind": "drip", "value": 100}),
            ("sending a gigabyte", {"kind": "flood"}),
            ("redirecting without an end", {"kind": "loop"}),
            ("sending a compressed bomb", {"kind": "bomb"}),
        ],
    )
    def test_memory_stays_within_limits_and_polls_recover(
        self, system: System, words: str, fault: dict[str, object], recovered: Recovered
    ) -> None:
        live = [match.ref_id for match in system.live()]
        before = memory_of_engine(system)
        peak, healed_at = endured(system, **fault)
        seconds = system.await_updates(live, since=healed_at, seconds=90)
        recovered(f"source {words} for {FAULT_SECONDS:g} s", seconds, bound=90)
        system.assert_is_true()
        assert peak - before < 900 * MEGABYTE, "what was read went into memory"
        assert system.exits == []


@pytest.mark.fault_number(23)
class TestRedirects:
    @pytest.mark.parametrize(("words", "target"), [("one endpoint", "live"), ("everything, pages too,", "*")])
    def test_no_request_reaches_the_target_and_polls_continue(
        self, system: System, words: str, target: str, recovered: Recovered
    ) -> None:
        live = [match.ref_id for match in system.live()]
        with Listener() as elsewhere:
            _, healed_at = endured(system, kind="lead_away", value=elsewhere.port, target=target)
            seconds = system.await_updates(live, since=healed_at, seconds=90)
            recovered(f"source leading {words} elsewhere for {FAULT_SECONDS:g} s", seconds)
            system.assert_is_true()
            assert elsewhere.connections == 0


class Listener:
    """A server on this machine that belongs to no source and must receive no request."""

    def __init__(self) -> None:
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.2", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(timeout=stretched(5))

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()


def endured(system: System, **fault: object) -> tuple[int, float]:
    """Injects the fault and waits for its end; returns the highest memory of the engine and the end."""
    planted = system.stadium.fault(**fault, seconds=FAULT_SECONDS)
    peak, hits = 0, 0

    def is_over() -> bool:
        nonlocal peak, hits
        peak = max(peak, memory_of_engine(system))
        (now,) = [one for one in system.stadium.ask("/control/faults") if one["id"] == planted["id"]]
        hits = now["hits"]
        return not now["active"]

    wait_for(is_over, seconds=FAULT_SECONDS + 30, what="the end of the fault")
    assert hits > 0, "it never struck: this shows nothing"
    return peak, time.time()


def memory_of_engine(system: System) -> int:
    """Returns the memory of the engine and its descendants with the browser; shared pages count several times."""
    total = 0
    for process in system.processes.values():
        for one in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)):
            try:
                total += one.memory_info().rss
            except psutil.Error:
                continue
    return total
