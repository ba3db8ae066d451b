"""What is tried, one after the other, for a live match that has gone silent. Pure.

Guards against the failure that raises no error: everything runs, and nothing arrives. Every rung is a little more than
the one before, so that the cheapest thing that helps is the one that is done; and whoever has been heard of again is
back on the ground at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum


class Rung(IntEnum):
    GROUND = 0
    HINT = 1  # tell the workers again, now
    SESSION = 2  # come to the source as a stranger
    BROWSER = 3  # a fresh browser in the worker that reads it
    OTHER_SOURCE = 4  # whoever else has the match is asked
    FROZEN = 5  # said to be old; people are called, and its scraper is replaced


# At which part of the staleness threshold (5 minutes) of being late each rung is due: 15 s, 45 s, 90 s, 150 s, 5 min.
SHARES = {Rung.HINT: 0.05, Rung.SESSION: 0.15, Rung.BROWSER: 0.3, Rung.OTHER_SOURCE: 0.5, Rung.FROZEN: 1.0}
IMPORTANT_SHARE = 0.5  # of the threshold, for matches of high importance


@dataclass(frozen=True)
class Silence:
    """A live match that is watched, at one moment."""

    expected_at: datetime  # when it should have been heard of again
    rung: Rung = Rung.GROUND  # how far it has been climbed already
    rung_at: datetime | None = None  # when that rung was taken
    is_important: bool = False
    is_held_back: bool = False  # breakers are open, it waits for its turn, or nobody is there: only time passes


def threshold_seconds(base: float, *, is_important: bool) -> float:
    return base * IMPORTANT_SHARE if is_important else base


def next_rung(silence: Silence, *, staleness_threshold: float, now: datetime) -> Rung:
    """Where it should stand now: on the ground, where it stands, or one rung higher.

    Each rung has its time to work, also where the silence is old already: after a start, or a pause.
    """
    threshold = threshold_seconds(staleness_threshold, is_important=silence.is_important)
    late = (now - silence.expected_at).total_seconds()
    if late < SHARES[Rung.HINT] * threshold:
        return Rung.GROUND
    above = next((rung for rung in _ladder(silence) if rung > silence.rung), None)
    if above is None or late < SHARES[above] * threshold or _stood(silence, now) < _dwell(silence, above) * threshold:
        return silence.rung
    return above


def _ladder(silence: Silence) -> tuple[Rung, ...]:
    """To ask again, or otherwise, is what open breakers forbid."""
    return (Rung.OTHER_SOURCE, Rung.FROZEN) if silence.is_held_back else tuple(SHARES)


def _dwell(silence: Silence, above: Rung) -> float:
    return SHARES[above] - SHARES[silence.rung] if silence.rung is not Rung.GROUND else 0.0


def _stood(silence: Silence, now: datetime) -> float:
    return (now - silence.rung_at).total_seconds() if silence.rung_at else 0.0
