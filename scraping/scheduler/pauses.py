"""Pauses end by themselves, and a match that is read again begins with the configuration as it is now."""

from __future__ import annotations

from datetime import datetime

from scraping.configuration import policies
from scraping.matches import lifecycle


def end_pauses(now: datetime) -> int:
    ended = lifecycle.end_pauses(now=now)
    if ended:
        policies.reload()
    return ended
