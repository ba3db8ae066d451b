"""Who is read next when not everybody can be. Pure.

Guards live matches against the crowd, and the crowd against being forgotten: the highest priority goes first, and in it
what matters most, and of that the stalest. Whoever has waited far beyond his own interval is starved, and gets a part
of the places, however many go before him. So the less important is stretched under load, and nothing is left out.

Places come one by one as others are done with theirs, so the part is counted over all of them and not over those that
happen to be free at one moment: else whoever is starved would take each single one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

STARVED_INTERVALS = 4.0  # so many of his own intervals late
SHORTEST_PATIENCE = timedelta(seconds=60)
STARVED_SHARE = 4  # the last of so many places is for the starved, if there are any


@dataclass(frozen=True)
class Waiting:
    """A match at a source that is due."""

    ref_id: int
    source_id: int
    priority: int  # 0 live, 1 imminent, 2 completed
    importance: int  # 0 high, 1 normal, 2 low
    due_at: datetime
    interval_seconds: float
    heard_at: datetime | None  # when it was last read; None: never

    def hunger(self, now: datetime) -> float:
        """How late it is, measured by its own patience; past 1 it is starved."""
        patience = max(SHORTEST_PATIENCE, timedelta(seconds=STARVED_INTERVALS * self.interval_seconds))
        return (now - self.due_at) / patience


def choose(waiting: Iterable[Waiting], room: int, *, now: datetime, given: int = STARVED_SHARE - 1) -> list[Waiting]:
    """Those of one source that get a place now, the most urgent first.

    `given`: how many places the source has given while there were too few. Who does not count them keeps one place for
    the starved each time.
    """
    ranked = sorted(waiting, key=_rank)
    if len(ranked) <= room:
        return ranked
    if room <= 0:
        return []
    starved = sorted((one for one in ranked if one.hunger(now) > 1.0), key=lambda one: (-one.hunger(now), one.ref_id))
    fed = {one.ref_id for one in starved[: places_for_the_starved(given, room)]}
    others = [one for one in ranked if one.ref_id not in fed][: room - len(fed)]
    taken = fed | {one.ref_id for one in others}
    return [one for one in ranked if one.ref_id in taken]


def places_for_the_starved(given: int, room: int) -> int:
    """Of the next places, when so many were given before."""
    return (given + room) // STARVED_SHARE - given // STARVED_SHARE


def _rank(one: Waiting) -> tuple[int, int, float, int]:
    heard = one.heard_at.timestamp() if one.heard_at else 0.0
    return (one.priority, one.importance, heard, one.ref_id)
