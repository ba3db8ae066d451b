"""Chooses the due matches that are read next when a source has too few places for all. Pure.

Guards against less urgent matches that delay live ones, and against starvation of the rest: the highest priority goes
first, in it the most important, and of those the stalest. A match that has waited far beyond its own interval is
starved, and starved matches get a fixed share of the places. So less important matches are polled more slowly under
load, and none is left out.

Places become free one by one, so the share is counted over all places given and not over those that are free at one
moment: otherwise a starved match would take every single place.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

STARVED_INTERVALS = 4.0  # a match is starved when it is this many of its intervals late
LEAST_TOLERANCE = timedelta(seconds=60)
STARVED_SHARE = 4  # every fourth place goes to a starved match, if there is one


@dataclass(frozen=True)
class DueMatch:
    ref_id: int
    source_id: int
    priority: int  # 0 live, 1 imminent, 2 completed
    importance: int  # 0 high, 1 normal, 2 low
    due_at: datetime
    interval_seconds: float
    last_read_at: datetime | None  # None: never

    def lateness(self, now: datetime) -> float:
        """Returns how late it is as a part of what it tolerates; above 1 it is starved."""
        tolerance = max(LEAST_TOLERANCE, timedelta(seconds=STARVED_INTERVALS * self.interval_seconds))
        return (now - self.due_at) / tolerance


def choose(due: Iterable[DueMatch], room: int, *, now: datetime, given: int = STARVED_SHARE - 1) -> list[DueMatch]:
    """Returns the matches of one source that get a place now, the most urgent first.

    `given`: how many places the source has given while there were too few. A caller that does not count them keeps one
    place for the starved each time.
    """
    ranked = sorted(due, key=_rank)
    if len(ranked) <= room:
        return ranked
    if room <= 0:
        return []
    starved = [one for one in ranked if one.lateness(now) > 1.0]
    starved.sort(key=lambda one: (-one.lateness(now), one.ref_id))
    first = {one.ref_id for one in starved[: places_for_starved(given, room)]}
    others = [one for one in ranked if one.ref_id not in first][: room - len(first)]
    taken = first | {one.ref_id for one in others}
    return [one for one in ranked if one.ref_id in taken]


def places_for_starved(given: int, room: int) -> int:
    """Returns how many of the next `room` places are for starved matches, after `given` places before."""
    return (given + room) // STARVED_SHARE - given // STARVED_SHARE


def _rank(one: DueMatch) -> tuple[int, int, float, int]:
    last_read = one.last_read_at.timestamp() if one.last_read_at else 0.0
    return (one.priority, one.importance, last_read, one.ref_id)
