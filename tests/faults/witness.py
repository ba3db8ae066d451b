"""Waits for the recovery of a system under fault, and compares its stored data with the ground truth."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from scraping.payloads import Resource
from tests.faults import truth
from tests.faults.database import Database, StoredMatch, as_stored, matches
from tests.patience import wait_for
from tests.stadium_process import StadiumProcess

SETTLE_SECONDS = 90.0


class Witness:
    """Observes a system from outside: its database and its stadium."""

    def __init__(self, database: Database, stadium: StadiumProcess) -> None:
        self.database, self.stadium = database, stadium

    def logs(self) -> str:
        """Returns the logs to show when a wait times out."""
        return ""

    def matches(self) -> list[StoredMatch]:
        return matches(self.database)

    def live(self) -> list[StoredMatch]:
        return [match for match in self.matches() if match.status == "live"]

    def tasks_held_by(self, worker_id: str) -> list[tuple[int, int]]:
        """Returns task and ref of the polls that a worker runs. Other tasks, such as line-ups, update no match."""
        sql = "SELECT id, ref_id FROM scrape_tasks WHERE state = %s AND worker_id = %s AND resource = %s"
        return [(task, ref) for task, ref in self.database.rows(sql, "EXECUTING", worker_id, Resource.SCORECARD.value)]

    def count_tasks(self, where: str, *values: Any, since: float = 0.0) -> int:
        sql = f"SELECT COUNT(*) FROM scrape_tasks WHERE created_at >= %s AND ({where})"
        (row,) = self.database.rows(sql, as_stored(self.database, since), *values)
        return int(row[0])

    def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Waits until every listed match was read and has no gap in its events."""

        def is_settled() -> bool:
            stored = {match.name: match for match in self.matches()}
            shown = [stored.get((one["site"], one["key"])) for one in self.stadium.matches()]
            return bool(shown) and all(one and one.payload and not one.has_gap for one in shown)

        self._wait(is_settled, seconds, "every match read, without holes")

    def await_updates(self, refs: list[int], *, since: float, seconds: float) -> float:
        """Waits until each of these was read after `since`; returns the seconds from `since` to the last one."""
        wanted = set(refs)
        assert wanted, "no match to wait for"

        def are_updated() -> bool:
            fresh = {match.ref_id for match in self.matches() if match.captured_at > since}
            return wanted <= fresh

        self._wait(are_updated, seconds, f"updates of {len(wanted)} matches")
        return time.time() - since

    def assert_is_true(self, seconds: float = 45.0) -> None:
        """Stops the clock, waits for the system, compares its data with the truth, and starts the clock."""
        pace = self.stadium.ask("/control/health")["pace"]
        self.stadium.ask("/control/pace", {"pace": 0})
        frozen_at = time.time()
        try:
            live = [match.ref_id for match in self.live()]
            if live:
                self.await_updates(live, since=frozen_at, seconds=seconds)
            found: list[str] = []

            def is_true() -> bool:
                found[:] = truth.differences(self.database, self.stadium)
                return not found

            try:
                self._wait(is_true, seconds, "what is stored is what happened")
            except AssertionError as error:
                raise AssertionError("\n".join([*found, str(error)])) from None
            assert truth.holes_in_history(self.database) == []
            assert truth.steps_back(self.database) == []
        finally:
            self.stadium.ask("/control/pace", {"pace": pace})

    def _wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        try:
            wait_for(condition, seconds=seconds, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None
