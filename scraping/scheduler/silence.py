"""Live matches that have gone silent climb the ladder; orders whose worker is gone are closed."""

from __future__ import annotations

from datetime import datetime

from scraping.configuration import policies
from scraping.recovery import ladder, worker_commands


def watch_silence(now: datetime) -> int:
    closed = worker_commands.close_untaken(now)
    return closed + ladder.advance(now, staleness_threshold=policies.current().staleness_threshold_seconds)
