"""Fault 27: tokens expire during matches, are revoked, and their service is away. No ball is lost."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest

from stadium.access import CREDENTIAL
from tests.faults.conftest import Recovered
from tests.faults.system import System
from tests.patience import wait_for
from tests.stadium_process import StadiumProcess
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.alone,
    pytest.mark.fault_number(27),
]

SWITCH_ON = """
import os, django
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
django.setup()
from scraping.models import Source
Source.objects.update(is_enabled=False)
assert Source.objects.filter(key="crexpro").update(is_enabled=True) == 1
"""
AWAY_SECONDS = 12.0


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    """A system with four matches of the members' site only."""
    patience = {"BREAK_INTERVAL_SECONDS": "3", "TOKEN_DEGRADED_SECONDS": "5", "TASK_LEASE_SECONDS": "5"}
    with StadiumProcess(programme="members:4", pace=20) as stadium:
        system = System(stadium, SOURCE_CREDENTIALS=f"crexpro={CREDENTIAL}", **patience)
        try:
            system._prepare_database()
            subprocess.run(python("-c", SWITCH_ON), cwd=PROJECT_ROOT, env=system.environment(), check=True, timeout=60)
            system.revive()
            yield system
        finally:
            system.stop()


@pytest.fixture(autouse=True)
def calm(system: System) -> Iterator[None]:
    system.settle()
    yield
    system.stadium.clear()


def token_alerts(system: System) -> list[bool]:
    """Returns for each alert about the site's tokens whether it is open."""
    rows = system.database.rows("SELECT closed_at FROM monitoring_alert WHERE key = %s ORDER BY id", "token:crexpro")
    return [closed_at is None for (closed_at,) in rows]


@pytest.mark.requirement("US2.3", "FR-018")
def test_tokens_that_expire_and_are_revoked_during_matches(system: System, recovered: Recovered) -> None:
    live = [match.ref_id for match in system.live()]
    began_at = time.time()
    system.stadium.clear()
    system.stadium.ask("/control/tokens", {"seconds": 2})
    for _ in range(4):
        system.stadium.ask("/control/tokens", {"revoke": True})
        system.await_updates(live, since=time.time(), seconds=20)
    system.stadium.ask("/control/tokens", {"revoke": True})
    revoked_at = time.time()
    recovered("all tokens revoked", system.await_updates(live, since=revoked_at, seconds=20))
    asked = system.stadium.requests()["sites"]["crexpro"]["targets"]
    assert asked["token"] >= 5
    assert system.count_tasks("charged_attempts > 0", since=began_at) == 0  # the source is not charged for it
    system.assert_is_true()


@pytest.mark.requirement("EC-5")
def test_the_token_service_is_away(system: System, recovered: Recovered) -> None:
    live = [match.ref_id for match in system.live()]
    began_at = time.time()
    system.stadium.fault(site="crexpro", target="token", kind="status", value=500, seconds=AWAY_SECONDS)
    system.stadium.ask("/control/tokens", {"revoke": True})
    system.await_updates(live, since=began_at + 2, seconds=10)  # from what is public
    wait_for(lambda: token_alerts(system) == [True], seconds=AWAY_SECONDS, what="the alert")
    wait_for(lambda: time.time() > began_at + AWAY_SECONDS, seconds=AWAY_SECONDS + 1, what="the end of the fault")
    wait_for(lambda: token_alerts(system) == [False], seconds=45, what="the end of the alert")
    recovered(f"token service away for {AWAY_SECONDS:g} s", time.time() - began_at - AWAY_SECONDS)
    assert system.count_tasks("state = %s", "DEAD", since=began_at) == 0
    system.assert_is_true()
    assert CREDENTIAL not in system.logs()
