"""Slows down the polls of a match after errors, for a time. Pure.

Guards against polling a source in trouble as often as a healthy one, and against a pace that swings: one good
reading among many failures changes nothing. Errors that come faster than five a minute are counted; slower ones decay.
The count sets the least interval (5, 10, 20 s), which lasts until five minutes passed without an error that counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scraping.models import MatchRef

DECAY_SECONDS = 12.0  # one error in that time, five a minute, has no consequence
STEPS = ((20, 20.0), (10, 10.0), (5, 5.0))  # errors, least seconds between two polls
MAX_LEVEL = 20.0


@dataclass(frozen=True)
class Slowdown:
    """The errors of a match at one source that still count, and the interval they force."""

    level: float = 0.0  # errors that are counted
    level_at: datetime | None = None  # when the last one came
    seconds: float = 0.0  # the interval that errors force; 0: none
    until: datetime | None = None

    @classmethod
    def of(cls, ref: MatchRef) -> Slowdown:
        return cls(ref.error_level, ref.error_level_at, ref.slowed_seconds, ref.slowed_until)

    def seconds_at(self, now: datetime) -> float:
        return self.seconds if self.until is not None and now < self.until else 0.0

    def level_after_decay(self, now: datetime) -> float:
        """Returns the errors that count at this moment, also if the decay was not written yet."""
        return _decayed(_unless_expired(self, now), now)


NO_SLOWDOWN = Slowdown()


def after_error(before: Slowdown, *, errors_in_a_row: int, calm_seconds: float, now: datetime) -> Slowdown:
    """Returns the slowdown after an error. `errors_in_a_row` (with this one) counts at any rate of polls."""
    before = _unless_expired(before, now)
    level = min(MAX_LEVEL, _decayed(before, now) + 1.0)
    step = max(_step(level), _step(errors_in_a_row))
    if not step:
        return replace(before, level=level, level_at=now)
    return Slowdown(level, now, max(step, before.seconds), now + timedelta(seconds=calm_seconds))


def after_success(before: Slowdown, *, now: datetime) -> Slowdown:
    """A success resets nothing by itself; only errors that have decayed or expired are dropped."""
    before = _unless_expired(before, now)
    return before if before.seconds or _decayed(before, now) > 0 else NO_SLOWDOWN


def _unless_expired(slowdown: Slowdown, now: datetime) -> Slowdown:
    """An interval that has expired takes the errors that led to it with it."""
    return NO_SLOWDOWN if slowdown.until is not None and now >= slowdown.until else slowdown


def _decayed(slowdown: Slowdown, now: datetime) -> float:
    """An error soon after another one takes nothing off the level; a longer gap takes off its share."""
    if slowdown.level_at is None:
        return 0.0
    gap = (now - slowdown.level_at).total_seconds()
    return slowdown.level if gap < DECAY_SECONDS else max(0.0, slowdown.level - gap / DECAY_SECONDS)


def _step(errors: float) -> float:
    return next((seconds for least, seconds in STEPS if errors >= least), 0.0)
