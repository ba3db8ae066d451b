"""When a match's line-ups are looked at: the closer its start, the more often. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

# How far the start is away at least, and how long to wait until the next look.
STEPS: tuple[tuple[timedelta, timedelta], ...] = (
    (timedelta(hours=24), timedelta(hours=6)),
    (timedelta(hours=3), timedelta(hours=1)),
    (timedelta(minutes=75), timedelta(minutes=10)),  # about when teams are announced
    (timedelta(0), timedelta(minutes=2)),
)
LAST_LOOK = timedelta(minutes=5)  # a player may be hurt while warming up


def next_look(kickoff: datetime, now: datetime, *, is_settled: bool, window: timedelta) -> datetime | None:
    """None when there is nothing more to see before the start. `is_settled`: both elevens are known and confirmed."""
    left = kickoff - now
    if left <= timedelta(0):
        return None
    if is_settled:
        last = kickoff - LAST_LOOK
        return last if now < last else None
    if left > window:
        return kickoff - window
    at_least, wait = next(step for step in STEPS if left > step[0])
    seen_oftener_from = max(kickoff - at_least, now + STEPS[-1][1])
    at = min(now + wait, seen_oftener_from)
    return at if at < kickoff else None
