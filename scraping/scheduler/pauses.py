"""Pauses end by themselves."""

from __future__ import annotations

from datetime import datetime

from scraping import lifecycle


def end_pauses(now: datetime) -> int:
    return lifecycle.end_pauses(now=now)
