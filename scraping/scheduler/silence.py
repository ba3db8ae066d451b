"""Live matches that have gone silent climb the ladder; orders whose worker is gone are closed."""

from __future__ import annotations

from datetime import datetime

from scraping import orders, policies, silence


def watch_silence(now: datetime) -> int:
    closed = orders.close_untaken(now)
    return closed + silence.look(now, staleness_threshold=policies.current().staleness_threshold_seconds)
