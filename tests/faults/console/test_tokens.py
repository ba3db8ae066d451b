"""The incident of a revoked token, at the console of a system that reads a members' site."""

from __future__ import annotations

import pytest

from tests.faults.conftest import Recovered
from tests.faults.console.incident import Incident
from tests.faults.console.operator import Operator
from tests.faults.system import System
from tests.faults.test_tokens import system

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.fault_number(28),
]
__all__ = ["system"]  # a fixture


class RevokedToken(Incident):
    """The members' area is closed to us until the site's operator answers; public data is read meanwhile."""

    name = "a revoked token"
    seen = "has issued no token for"
    path = (seen, "Mute")
    cause = ("public data is still read", "refuses the credential")
    action = "Mute"
    answers = {"minutes": "60"}
    outcome = ("Muted 1 alert", "muted until")

    def begin(self, system: System) -> None:
        system.stadium.fault(site="crexpro", target="token", kind="status", value=401)
        system.stadium.ask("/control/tokens", {"revoke": True})

    def is_over(self, operator: Operator, system: System) -> None:
        system.stadium.clear()
        super().is_over(operator, system)


@pytest.mark.requirement("BX-11")
def test_three_clicks_lead_to_the_cause_and_the_action(
    operator: Operator,
    system: System,
    recovered: Recovered,
) -> None:
    system.settle()
    RevokedToken().play(operator, system, recovered)
