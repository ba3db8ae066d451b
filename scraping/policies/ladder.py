"""The escalating recovery steps for a live match that gets no updates. Pure.

Guards against the failure that raises no error: everything runs, and nothing arrives. Every rung costs more than the
one before, so that the cheapest step that helps is the one taken; an update puts the match back on the ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum


class Rung(IntEnum):
    GROUND = 0
    HINT = 1  # send the hint to the workers again
    SESSION = 2  # a new browser session
    BROWSER = 3  # a new browser in the worker that reads it
    OTHER_SOURCE = 4  # watch the match at its other sources
    FROZEN = 5  # served as stale, an alert is raised, its scraper is replaced


# At which part of the staleness threshold (5 minutes) of being late each rung is due: 15 s, 45 s, 90 s, 150 s, 5 min.
SHARES = {Rung.HINT: 0.05, Rung.SESSION: 0.15, Rung.BROWSER: 0.3, Rung.OTHER_SOURCE: 0.5, Rung.FROZEN: 1.0}
IMPORTANT_SHARE = 0.5  # of the threshold, for matches of high importance


@dataclass(frozen=True)
class Silence:
    """A live match that is watched, at one moment."""

    expected_at: datetime  # when its next update should have come
    rung: Rung = Rung.GROUND  # the rung taken so far
    rung_at: datetime | None = None  # when that rung was taken
    is_important: bool = False
    is_held_back: bool = False  # breakers are open, it waits for a place, or there is no worker


def threshold_seconds(base: float, *, is_important: bool) -> float:
    return base * IMPORTANT_SHARE if is_important else base


def next_rung(silence: Silence, *, staleness_threshold: float, now: datetime) -> Rung:
    """Returns the rung due now: the ground, the present rung, or the next one.

    Each rung gets its time to work, also where the silence is old already: after a start, or a pause.
    """
    threshold = threshold_seconds(staleness_threshold, is_important=silence.is_important)
    late = (now - silence.expected_at).total_seconds()
    if late < SHARES[Rung.HINT] * threshold:
        return Rung.GROUND
    # Open breakers forbid further requests to the same source.
    rungs = (Rung.OTHER_SOURCE, Rung.FROZEN) if silence.is_held_back else tuple(SHARES)
    above = next((rung for rung in rungs if rung > silence.rung), None)
    if above is None or late < SHARES[above] * threshold:
        return silence.rung
    on_rung = (now - silence.rung_at).total_seconds() if silence.rung_at else 0.0
    dwell = SHARES[above] - SHARES[silence.rung] if silence.rung is not Rung.GROUND else 0.0
    return silence.rung if on_rung < dwell * threshold else above
