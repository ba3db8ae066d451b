"""Who is read next when not everybody can be. Pure.

Guards live matches against the crowd, and the crowd against being forgotten: the highest priority goes first, and in it
what matters most, and of that the stalest. Whoever has waited far beyond his own interval is starved, and gets a part
of the places, however many go before him. So the less important is stretched under load, and nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

STARVED_INTERVALS = 4.0  # so many of his own intervals late
SHORTEST_PATIENCE = timedelta(seconds=60)
STARVED_SHARE = 4  # one place in so many is for the starved, at least one


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


def choose(waiting: Iterable[Waiting], room: int, *, now: datetime) -> list[Waiting]:
    """Those of one source that get a place now, the most urgent first."""
    ranked = sorted(waiting, key=_rank)
    if len(ranked) <= room:
        return ranked
    starved = sorted((one for one in ranked if one.hunger(now) > 1.0), key=lambda one: -one.hunger(now))
    kept = _kept_for(starved, ranked, room, now)
    fed = {one.ref_id for one in kept}
    return ([*kept, *(one for one in ranked if one.ref_id not in fed)])[: max(0, room)]


def _rank(one: Waiting) -> tuple[int, int, float, int]:
    heard = one.heard_at.timestamp() if one.heard_at else 0.0
    return (one.priority, one.importance, heard, one.ref_id)


def _kept_for(starved: Sequence[Waiting], ranked: Sequence[Waiting], room: int, now: datetime) -> Sequence[Waiting]:
    """A part of the places; where there is but one, it goes to whoever is hungrier."""
    if not starved or room <= 0:
        return ()
    if room == 1 and ranked[0].hunger(now) >= starved[0].hunger(now):
        return ()
    return starved[: max(1, room // STARVED_SHARE)]
