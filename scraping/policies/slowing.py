"""How errors slow a match down, and how long that lasts. Pure.

Guards a source that is in trouble against being asked as often as one that is well, and us against a pace that swings:
one good answer among many bad ones changes nothing. Errors that come faster than five a minute are counted, whatever
lies between them; slower ones are forgotten as time goes by. The count sets the step (5, 10, 20 s), which stands until
there was nothing to count for five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

FORGOTTEN_AFTER_SECONDS = 12.0  # one error in that time, five a minute, has no consequence
STEPS = ((20, 20.0), (10, 10.0), (5, 5.0))  # errors, at least so many seconds between two polls
MOST_COUNTED = 20.0


class Remembered(Protocol):
    """The columns in which it is kept."""

    @property
    def error_level(self) -> float: ...
    @property
    def error_level_at(self) -> datetime | None: ...
    @property
    def slowed_seconds(self) -> float: ...
    @property
    def slowed_until(self) -> datetime | None: ...


@dataclass(frozen=True)
class Slowing:
    """What a match remembers of its errors at one source."""

    level: float = 0.0  # errors that are counted
    level_at: datetime | None = None  # when the last one came
    seconds: float = 0.0  # the interval that errors force; 0: none
    until: datetime | None = None

    @classmethod
    def of(cls, row: Remembered) -> Slowing:
        return cls(row.error_level, row.error_level_at, row.slowed_seconds, row.slowed_until)

    def at(self, now: datetime) -> float:
        """The seconds that errors force at this moment."""
        return self.seconds if self.until is not None and now < self.until else 0.0

    def counted(self, now: datetime) -> float:
        """The errors that count at this moment: time has taken off the others, also where nobody has written that."""
        return _remembered(_unless_calm(self, now), now)


NOT_SLOWED = Slowing()


def after_error(before: Slowing, *, errors_in_a_row: int, calm_seconds: float, now: datetime) -> Slowing:
    """`errors_in_a_row`: this one included; they count whatever their rate, for a slow poll fails slowly."""
    before = _unless_calm(before, now)
    level = min(MOST_COUNTED, _remembered(before, now) + 1.0)
    step = max(_step(level), _step(errors_in_a_row))
    if not step:
        return replace(before, level=level, level_at=now)
    return Slowing(level, now, max(step, before.seconds), now + timedelta(seconds=calm_seconds))


def after_success(before: Slowing, *, now: datetime) -> Slowing:
    """Nothing is forgiven at once; what time has forgotten is."""
    before = _unless_calm(before, now)
    return before if before.seconds or _remembered(before, now) > 0 else NOT_SLOWED


def _unless_calm(slowing: Slowing, now: datetime) -> Slowing:
    """A step whose time is over takes with it what led to it."""
    return NOT_SLOWED if slowing.until is not None and now >= slowing.until else slowing


def _remembered(slowing: Slowing, now: datetime) -> float:
    """Of the errors so far. One that follows another at once takes nothing off; a longer gap takes off its share."""
    if slowing.level_at is None:
        return 0.0
    gap = (now - slowing.level_at).total_seconds()
    return slowing.level if gap < FORGOTTEN_AFTER_SECONDS else max(0.0, slowing.level - gap / FORGOTTEN_AFTER_SECONDS)


def _step(errors: float) -> float:
    return next((seconds for least, seconds in STEPS if errors >= least), 0.0)
