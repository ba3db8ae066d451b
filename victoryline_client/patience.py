"""How long to wait before asking again. Pure: numbers in, numbers out; chance is passed in.

Guards the server against its consumers: nobody asks faster than told, and those that failed together don't come back
together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from victoryline_client.errors import PASSING, ClientError

Chance = Callable[[], float]  # 0 <= number < 1

FIRST_SECONDS, LONGEST_SECONDS = 0.5, 30.0
JITTER = 0.25
SHORTEST_LOOK, LONGEST_LOOK, USUAL_LOOK = 1.0, 60.0, 10.0


@dataclass(frozen=True)
class Patience:
    """For one call: at most `attempts` of them, and at most `seconds` of waiting in all."""

    attempts: int = 4
    seconds: float = 30.0

    def wait(self, error: ClientError, attempt: int, waited: float, chance: Chance) -> float | None:
        """Seconds until the next attempt; None: give up. `attempt` counts from 1."""
        if attempt >= self.attempts or not isinstance(error, PASSING):
            return None
        seconds = after_failure(error, attempt, chance)
        return seconds if waited + seconds <= self.seconds else None


def after_failure(error: ClientError, attempt: int, chance: Chance) -> float:
    """As long as the server says, and a little longer, or else twice as long each time."""
    if error.retry_after is not None:
        return error.retry_after + min(1.0, JITTER * error.retry_after) * chance()
    ceiling = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(attempt - 1, 16))
    return ceiling * (0.5 + chance() / 2)


def until_next_look(next_update_in: float | None, chance: Chance) -> float:
    """Between two looks at a match: when the server has read its source again. A tenth of jitter, never earlier."""
    seconds = USUAL_LOOK if next_update_in is None else next_update_in
    bounded = min(LONGEST_LOOK, max(SHORTEST_LOOK, seconds))
    return bounded + min(1.0, 0.1 * bounded) * chance()
