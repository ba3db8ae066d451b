"""How long to wait before the next attempt: doubling, with jitter, so that failures do not come back in step."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    max_attempts: int = 5
    base_delay_seconds: float = 1.0
    max_delay_seconds: float = 16.0


def backoff_seconds(attempt: int, policy: RetryPolicy, chance: random.Random) -> float:
    """The pause after the failed attempt number `attempt` (from 1): 1, 2, 4, 8, 16 s, and up to as much again."""
    doubled = policy.base_delay_seconds * 2.0 ** min(attempt - 1, 30)
    delay = min(doubled, policy.max_delay_seconds)
    return delay + chance.uniform(0.0, delay)
