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

    heard_at: datetime  # when it was last read well; when it was found, if never
    expected_at: datetime  # when it should have been heard of again
    rung: Rung = Rung.GROUND  # how far it has been climbed already
    is_important: bool = False
    is_held_back: bool = False  # its breakers are open, no source may be asked: only time passes


def threshold_seconds(base: float, *, is_important: bool) -> float:
    return base * IMPORTANT_SHARE if is_important else base


def next_rung(silence: Silence, *, staleness_threshold: float, now: datetime) -> Rung:
    """Where it should stand now: at most one rung higher than before, or back on the ground."""
    threshold = threshold_seconds(staleness_threshold, is_important=silence.is_important)
    late = (now - silence.expected_at).total_seconds()
    reached = _reached(late, threshold)
    if (now - silence.heard_at).total_seconds() >= threshold:
        reached = Rung.FROZEN
    if reached is Rung.GROUND:
        return Rung.GROUND
    if silence.is_held_back:  # asking again, or otherwise, is what the breakers forbid
        allowed = [rung for rung in (Rung.OTHER_SOURCE, Rung.FROZEN) if rung <= reached]
        higher = [rung for rung in allowed if rung > silence.rung]
        return higher[0] if higher else silence.rung
    return Rung(min(reached, silence.rung + 1)) if reached > silence.rung else silence.rung


def _reached(late_seconds: float, threshold: float) -> Rung:
    return max((rung for rung, share in SHARES.items() if late_seconds >= share * threshold), default=Rung.GROUND)
