"""Incidents of sources and of the browser, at the console of one embedded system."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from tests.faults.conftest import Recovered
from tests.faults.console.incident import Incident
from tests.faults.console.operator import NAME, REASON, Operator
from tests.faults.system import System, impatient_system
from tests.faults.test_rubbish import wait_for_events

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.fault_number(28),
    pytest.mark.requirement("BX-11"),
]


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    more = {"SOURCE_BREAKER_MIN_CALLS": "10", "SOURCE_BREAKER_MIN_SECONDS": "5", "BROWSER_HUNG_SECONDS": "900"}
    with impatient_system(**more) as running:
        yield running


class Layout(Incident):
    """The breaker of the source opens for a quarter of an hour; the operator probes as soon as the site is readable."""

    name = "a site that changes its layout"
    seen = "Crex is not polled until"
    path = (seen, "Probe now")
    cause = ("readings in a row made no sense", "open")
    action = "Probe now"
    outcome = ("Probing 1 breaker",)

    def begin(self, system: System) -> None:
        system.stadium.fault(kind="layout", site="crex")

    def end(self, system: System) -> None:
        system.stadium.clear()


class Challenge(Incident):
    """Every further request confirms the suspicion: the operator pauses the source until the proxy is changed."""

    name = "a challenge"
    seen = re.compile("Sofascore has shown a bot challenge")
    path = (seen, "Pause")
    cause = ("challenge", "no further sessions or proxies are used up")
    action = "Pause"
    answers = {"minutes": "1"}
    outcome = ("Paused 1 source", "paused until", REASON)

    def begin(self, system: System) -> None:
        system.stadium.fault(kind="challenge", site="sofascore")

    def end(self, system: System) -> None:
        system.stadium.clear()

    def is_over(self, operator: Operator, system: System) -> None:
        """The alert stays for ten minutes; the matches are young again when the pause has ended by itself."""
        refs = [match.ref_id for match in system.live() if match.site == "sofascore"]
        system.await_updates(refs, since=time.time() + 20, seconds=120)
        operator.overview()
        operator.no_longer_sees(re.compile(r"sofascore_\w+: what happened"))


class HalfList(Incident):
    """One match's list of goals and cards lacks known ones. The operator sees which, and has the match read at once."""

    name = "a source that answers half its list"
    path = ("what happened", "Read now")
    cause = ("known events",)
    action = "Read now"
    outcome = ("Due at once: 1 match",)

    def begin(self, system: System) -> None:
        wait_for_events(system)
        one = next(match for match in system.live() if match.site == "sofascore")
        self.seen = re.compile(f"sofascore_{one.key}: what happened")
        self.path = (self.seen, "Read now")
        system.stadium.fault(kind="half_list", site="sofascore", match=one.key)

    def end(self, system: System) -> None:
        system.stadium.clear()


class FrozenBrowser(Incident):
    """Chromium stops. Its replacement is automatic and on the overview; a doubtful operator replaces it once more."""

    name = "a frozen browser"
    seen = "browser replaced"
    cause = ("last command",)
    action = "Replace the browser"
    outcome = ("Replacing 1 worker", f"by {NAME}")

    def begin(self, system: System) -> None:
        system.stadium.ask("/control/browser_only", {"site": "crex", "on": True})
        self.path = (system.worker_id("engine"), "Replace the browser")
        (browser,) = system.browsers()
        browser.suspend()

    def is_over(self, operator: Operator, system: System) -> None:
        """What was done, why and whether it helped is a click away."""
        operator.overview()
        operator.sees("browser replaced by an operator", seconds=60)
        operator.follow(re.compile("^browser replaced$"))
        operator.sees(re.compile("took longer than|does not respond"))
        operator.sees(re.compile("success", re.IGNORECASE), seconds=60)


@pytest.mark.parametrize(
    "incident",
    [FrozenBrowser, HalfList, pytest.param(Layout, marks=pytest.mark.requirement("BX-7")), Challenge],
    ids=lambda each: each.__name__,
)
def test_three_clicks_lead_to_the_cause_and_the_action(
    operator: Operator, system: System, recovered: Recovered, incident: type[Incident]
) -> None:
    system.settle()
    incident().play(operator, system, recovered)
    system.stadium.clear()
