"""Checks the stored data repeatedly during a fault: good data must never be replaced by worse data."""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.database import StoredMatch
from tests.faults.system import System

ORDER = {"upcoming": 0, "live": 1, "completed": 2, "abandoned": 2}


@dataclass(frozen=True)
class _Seen:
    status: str
    runs: int
    balls: int


class Progress:
    """`worse` collects every regression of any match."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._teams = {match.ref_id: match.payload["teams"] for match in system.matches()}
        self._seen: dict[int, _Seen] = {}
        self.worse: list[str] = []
        self.look()

    def look(self) -> None:
        stored = {match.ref_id: match for match in self._system.matches()}
        self.worse += [f"match {ref} is gone" for ref in self._seen.keys() - stored.keys()]
        balls = dict(
            self._system.database.rows(
                "SELECT match_id, COUNT(*) FROM scraping_matchevent WHERE is_current = %s AND action <> 'retract' "
                "GROUP BY match_id",
                True,
            )
        )
        for ref, match in stored.items():
            now = _Seen(match.status, _runs(match), balls.get(match.match_id, 0) if match.site == "crex" else 0)
            self._compare(match, self._seen.get(ref, now), now)
            self._seen[ref] = now

    def _compare(self, match: StoredMatch, before: _Seen, now: _Seen) -> None:
        teams = self._teams.setdefault(match.ref_id, match.payload.get("teams"))
        if match.payload.get("teams") != teams:
            self.worse.append(f"{match.name} is played by {match.payload.get('teams')} instead of {teams}")
        if ORDER.get(now.status, 0) < ORDER.get(before.status, 0) or now.runs < before.runs or now.balls < before.balls:
            self.worse.append(f"{match.name} went back from {before} to {now}")


def _runs(match: StoredMatch) -> int:
    """Returns the runs of a cricket match, which never decrease in the programme; a goal may be cancelled."""
    return sum(int(one["runs"]) for one in match.payload.get("innings") or ()) if match.site == "crex" else 0
