"""How errors slow a match down, and how long that lasts. Pure.

Guards a source that is in trouble against being asked as often as one that is well, and us against a pace that swings:
one good answer among many bad ones changes nothing. Errors fill a bucket that drains as fast as errors may come; what
stays in it is the excess. It sets the step (5, 10, 20 s), which stands until there was no excess for five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

ERRORS_A_MINUTE = 5.0  # so many may come without any consequence
STEPS = ((20, 20.0), (10, 10.0), (5, 5.0))  # errors, at least so many seconds between two polls


@dataclass(frozen=True)
class Slowing:
    """What a match remembers of its errors at one source."""

    level: float = 0.0
    level_at: datetime | None = None
    seconds: float = 0.0  # the interval that errors force; 0: none
    until: datetime | None = None

    def at(self, now: datetime) -> float:
        """The seconds that errors force at this moment."""
        return self.seconds if self.until is not None and now < self.until else 0.0


NOT_SLOWED = Slowing()


def after_error(before: Slowing, *, errors_in_a_row: int, calm_seconds: float, now: datetime) -> Slowing:
    """`errors_in_a_row`: this one included; they count whatever their rate, for a slow poll fails slowly."""
    level = _drained(before, now) + 1.0
    step = max(_step(level), _step(errors_in_a_row))
    if not step:
        return replace(before, level=level, level_at=now, seconds=before.at(now))
    return Slowing(level, now, max(step, before.at(now)), now + timedelta(seconds=calm_seconds))


def after_success(before: Slowing, *, now: datetime) -> Slowing:
    """Nothing is forgiven at once; a time that has run out is forgotten."""
    return before if before.at(now) else NOT_SLOWED if _drained(before, now) <= 0 else replace(before, seconds=0.0)


def _drained(slowing: Slowing, now: datetime) -> float:
    if slowing.level_at is None:
        return 0.0
    elapsed = max(0.0, (now - slowing.level_at).total_seconds())
    return max(0.0, slowing.level - elapsed * ERRORS_A_MINUTE / 60.0)


def _step(errors: float) -> float:
    return next((seconds for least, seconds in STEPS if errors >= least), 0.0)
