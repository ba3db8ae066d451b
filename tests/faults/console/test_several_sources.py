"""Incidents of matches at two sources, at the console of one embedded system."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.faults.conftest import Recovered
from tests.faults.console.incident import Incident
from tests.faults.console.operator import Operator, Text
from tests.faults.system import IMPATIENCE, System
from tests.patience import wait_for
from tests.stadium_process import StadiumProcess
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.fault_number(28),
    pytest.mark.requirement("BX-11"),
]


PAIR = """
import django
django.setup()
from django.utils import timezone
from scraping.models import Match, PairingReview
first, second = Match.objects.live().order_by("pk")[:2]
PairingReview.objects.create(
    match=first, candidate=second, score=0.7, reasons=["teams of almost the same name"], created_at=timezone.now()
)
"""


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with StadiumProcess(programme="pair:2", pace=20) as stadium, System(stadium, **IMPATIENCE) as running:
        yield running


class Contradiction(Incident):
    """Two sources contradict each other in the score; the operator gives the served one less weight."""

    name = "a match that two sources contradict"
    seen: Text = re.compile(r"Conflicts\s*[1-9]")
    seconds = 120
    path = ("Conflicts", "crex")
    cause = ("innings.1.runs", "espncricinfo")
    action = "Save"
    answers = {"precedence_weight": "10"}
    outcome = ("was changed successfully",)

    def begin(self, system: System) -> None:
        system.stadium.ask("/control/distortions", {"site": "espncricinfo", "mistakes": 0.5})

    def is_over(self, operator: Operator, system: System) -> None:
        """The conflict stays open until the sources agree; the other value is served now."""
        served = "SELECT id FROM scraping_conflict WHERE resolved_at IS NULL AND chosen_source = %s"
        wait_for(lambda: system.database.rows(served, "espncricinfo"), seconds=60, what="the other value")
        wait_for(lambda: self._is_listed(operator), seconds=60, what="the other value in the list of conflicts")

    def _is_listed(self, operator: Operator) -> bool:
        operator.overview()
        operator.follow("Conflicts")
        operator.sees("served")
        return operator.page.locator("#main .field-served", has_text="espncricinfo").count() > 0


class WrongPairing(Incident):
    """Two matches look like one; the operator keeps them apart before their data is mixed."""

    name = "a wrong pairing"
    seen = re.compile(r"Pairs to decide\s*1")
    path = ("Pairs to decide", "Different matches")
    cause = ("teams of almost the same name", "comparison")
    action = "Different matches"
    outcome = ("Kept apart 1 pair", "apart")

    def begin(self, system: System) -> None:
        command = python("-c", PAIR)
        subprocess.run(command, cwd=PROJECT_ROOT, env=system.environment(), check=True, capture_output=True)


@pytest.mark.parametrize("incident", [WrongPairing, Contradiction], ids=lambda each: each.__name__)
def test_three_clicks_lead_to_the_cause_and_the_action(
    operator: Operator, system: System, recovered: Recovered, incident: type[Incident]
) -> None:
    system.settle()
    incident().play(operator, system, recovered)
