"""A live match whose pages hang, in a whole system: the ladder acts, other matches are undisturbed, data returns."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.conftest import Recovered
from tests.faults.system import System, impatient_system

pytestmark = [
    pytest.mark.usefixtures("calm"),
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.alone,
]

THRESHOLD = 40  # frozen after so many seconds, the other rungs proportionally earlier
LADDER = ["silence_hint", "silence_session", "silence_browser", "silence_other_source", "frozen"]


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """A system with long timeouts, so that no breaker takes the match off the ladder."""
    more = {
        "STALENESS_THRESHOLD_SECONDS": str(THRESHOLD),
        "CIRCUIT_BREAKER_THRESHOLD": "50",
        "RETRY_MAX_ATTEMPTS": "50",
    }
    with impatient_system(LOG_FORMAT="json", **more) as running:
        yield running


def audited(system: System, match_id: int) -> list[str]:
    sql = "SELECT action_type FROM monitoring_auditentry WHERE match_id = %s ORDER BY id"
    return [action for (action,) in system.database.rows(sql, match_id) if action in LADDER or action == "silence_over"]


def open_alerts(system: System) -> list[tuple[Any, ...]]:
    return system.database.rows(
        "SELECT detail FROM monitoring_alert WHERE key LIKE %s AND closed_at IS NULL", "stale:%"
    )


@pytest.mark.requirement("BX-18", "US3.2", "FR-001", "NFR-005")
def test_climbs_the_whole_ladder_and_recovers(system: System, recovered: Recovered) -> None:
    system.settle()
    silent, *others = [match for match in system.live() if match.name[0] == "crex"]
    ((match_id,),) = system.database.rows("SELECT match_id FROM match_external_refs WHERE id = %s", silent.ref_id)
    system.stadium.fault(kind="hang", site="crex", match=silent.name[1], seconds=THRESHOLD * 3)
    oldest = 0.0

    def is_frozen() -> bool:
        nonlocal oldest
        now = {match.ref_id: match.captured_at for match in system.live()}
        oldest = max([oldest, *(time.time() - now[one.ref_id] for one in others if one.ref_id in now)])
        return audited(system, match_id)[-1:] == ["frozen"]

    system._wait(is_frozen, THRESHOLD * 2.5, "the last rung")
    assert audited(system, match_id) == LADDER
    assert oldest < THRESHOLD / 2, "the other matches were disturbed"
    (state,) = system.database.rows("SELECT silence_rung, frozen_at FROM matches WHERE id = %s", match_id)
    assert (state[0], state[1] is not None) == (5, True)
    ((alert,),) = open_alerts(system)
    detail = alert if isinstance(alert, dict) else json.loads(alert)
    assert detail["url"]
    done = system.database.rows("SELECT kind, outcome FROM scraping_workercommand WHERE done_at IS NOT NULL")
    assert {kind for kind, _ in done} == {"fresh_session", "recycle_browser"}
    assert any("took its place" in outcome for _, outcome in done)

    system.stadium.clear()
    healed_at = time.time()
    recovered(
        "match that hung is read again",
        system.await_updates([silent.ref_id], since=healed_at, seconds=60),
        bound=60,
    )
    system._wait(lambda: audited(system, match_id)[-1:] == ["silence_over"], 15, "the way back")
    (state,) = system.database.rows("SELECT silence_rung, frozen_at FROM matches WHERE id = %s", match_id)
    assert state == (0, None)
    system._wait(lambda: open_alerts(system) == [], 15, "the end of the alert")
    system.assert_is_true()
    system.assert_is_whole()
