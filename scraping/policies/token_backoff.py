"""How long a token service that gave nothing is left alone: 1, 2, 4, 8, 16, 32 s, and a little less by chance.

Less and not more, so that no pause is longer than the longest one; by chance, so that workers do not ask in step.
"""

from __future__ import annotations

import random

LONGEST_SECONDS = 32.0
JITTER = 0.25


def pause_seconds(failures: int, chance: random.Random, *, asked: float | None = None) -> float:
    """After so many failures in a row (from 1). A service that says when to come back is obeyed."""
    doubled = min(2.0 ** min(failures - 1, 10), LONGEST_SECONDS)
    return max(doubled * (1.0 - chance.uniform(0.0, JITTER)), asked or 0.0)
