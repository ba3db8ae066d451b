"""The escalating recovery steps for a live match that gets no updates. Pure.

Guards against the failure that raises no error: everything runs, and nothing arrives. Every rung costs more than the
one before, so that the cheapest step that helps is the one taken; an update puts the match back on the ground.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Self


class Rung(IntEnum):
    """One row a rung: number, share, operator text, public text, audit action.

    `share`: the part of the staleness threshold (5 minutes) of being late at which the rung is due: 15 s, 45 s, 90 s,
    150 s, 5 min.
    """

    share: float
    operator_text: str
    public_text: str
    action: str

    GROUND = 0
    # The hint is sent to the workers again.
    HINT = 1, 0.05, "polled again", "Silent: it is polled again", "silence_hint"
    # A new browser session.
    SESSION = 2, 0.15, "fresh session tried", "Silent: a fresh session is tried", "silence_session"
    # A new browser in the worker that reads it.
    BROWSER = 3, 0.3, "fresh browser tried", "Silent: a fresh browser is tried", "silence_browser"
    # The match is watched at its other sources.
    OTHER_SOURCE = 4, 0.5, "other source polled", "Silent: another source is polled", "silence_other_source"
    # Served as stale; an alert is raised, and its scraper is replaced.
    FROZEN = 5, 1.0, "frozen", "Frozen: every recovery step was tried, an alert is open", "frozen"

    def __new__(
        cls, number: int, share: float = 0.0, operator_text: str = "", public_text: str = "", action: str = ""
    ) -> Self:
        rung = int.__new__(cls, number)
        rung._value_ = number
        rung.share, rung.operator_text, rung.public_text, rung.action = share, operator_text, public_text, action
        return rung


RUNGS = tuple(Rung)[1:]  # above the ground
IMPORTANT_SHARE = 0.5  # of the threshold, for matches of high importance


@dataclass(frozen=True)
class Silence:
    expected_at: datetime  # when its next update should have come
    rung: Rung = Rung.GROUND  # the rung taken so far
    rung_at: datetime | None = None  # when that rung was taken
    is_important: bool = False
    is_held_back: bool = False  # breakers are open, it waits for a place, or there is no worker


def threshold_seconds(base: float, *, is_important: bool) -> float:
    return base * IMPORTANT_SHARE if is_important else base


def next_rung(silence: Silence, *, staleness_threshold: float, now: datetime) -> Rung:
    """Returns the rung due now: ground, present or next. Each gets its time to work, however old the silence is."""
    threshold = threshold_seconds(staleness_threshold, is_important=silence.is_important)
    late = (now - silence.expected_at).total_seconds()
    if late < Rung.HINT.share * threshold:
        return Rung.GROUND
    # Open breakers forbid further requests to the same source.
    rungs = (Rung.OTHER_SOURCE, Rung.FROZEN) if silence.is_held_back else RUNGS
    above = next((rung for rung in rungs if rung > silence.rung), None)
    if above is None or late < above.share * threshold:
        return silence.rung
    on_rung = (now - silence.rung_at).total_seconds() if silence.rung_at else 0.0
    dwell = above.share - silence.rung.share if silence.rung is not Rung.GROUND else 0.0
    return silence.rung if on_rung < dwell * threshold else above
