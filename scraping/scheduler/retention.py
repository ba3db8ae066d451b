"""Tables that grow are pruned all the time, a little at a time, so that nobody waits for it."""

from __future__ import annotations

from datetime import datetime

from scraping.scheduler import retention_rules
from victoryline.lib.retention import prune as carry_out


def prune(now: datetime) -> int:
    """What grows with every poll."""
    return carry_out(retention_rules.often(), now)


def prune_the_rest(now: datetime) -> int:
    return carry_out(retention_rules.seldom(), now)
