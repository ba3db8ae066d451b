"""One incident: what breaks, and the operator's way from the overview to the cause, the action and the outcome.

The texts are those of the console. One that hides the cause, a link that is missing or a way that is too long fails.
"""

from __future__ import annotations

import time

from tests.faults.conftest import Recovered
from tests.faults.console.operator import NAME, Operator, Text
from tests.faults.database import as_stored
from tests.faults.system import System
from tests.patience import wait_for


class Incident:
    name: str
    seen: Text  # on the overview
    path: tuple[Text, ...]  # links and actions, from the overview
    cause: tuple[Text, ...]  # on the page of the first click
    action: Text  # the button that carries it out, the last click
    answers: dict[str, str] = {}
    outcome: tuple[Text, ...]  # on the page after the action
    seconds: float = 60  # until the overview shows it

    def begin(self, system: System) -> None:
        """Breaks it."""
        raise NotImplementedError

    def end(self, system: System) -> None:
        """Repairs what is not the system's own, such as a site or a disk."""

    def is_over(self, operator: Operator, system: System) -> None:
        """Waits until the overview, which renews itself, does not show it any more."""
        operator.overview()
        operator.no_longer_sees(self.seen)

    def play(self, operator: Operator, system: System, recovered: Recovered) -> None:
        operator.overview()
        began_at = time.time()
        self.begin(system)
        operator.sees(self.seen, seconds=self.seconds)
        operator.photograph(f"{self.name}-overview".replace(" ", "-"))
        first, *others = self.path
        operator.follow(first)
        for text in self.cause:
            operator.sees(text)
        operator.photograph(f"{self.name}-cause".replace(" ", "-"))
        self.end(system)
        for text in others:
            operator.follow(text)
        operator.confirm(self.action, **self.answers)
        acted_at = time.time()
        for text in self.outcome:
            operator.sees(text)
        operator.photograph(f"{self.name}-outcome".replace(" ", "-"))
        wait_for(
            lambda: _audited(system, since=began_at), seconds=30, what="the action in the audit, with its operator"
        )
        self.is_over(operator, system)
        recovered(f"{self.name}: from the action to a quiet overview", time.time() - acted_at)


def _audited(system: System, *, since: float) -> list[tuple[object, ...]]:
    sql = "SELECT action_type FROM monitoring_auditentry WHERE actor = %s AND timestamp >= %s"
    return system.database.rows(sql, NAME, as_stored(system.database, since))
