"""Plans the reads of a match's line-ups: more often as the start comes closer. Pure."""

from datetime import datetime, timedelta

# The least time left until the start, and the wait until the next read.
STEPS: tuple[tuple[timedelta, timedelta], ...] = (
    (timedelta(hours=24), timedelta(hours=6)),
    (timedelta(hours=3), timedelta(hours=1)),
    (timedelta(minutes=75), timedelta(minutes=10)),  # about when teams are announced
    (timedelta(0), timedelta(minutes=2)),
)
LINEUP_WINDOW = timedelta(hours=72)  # before the start
FINAL_READ_BEFORE_START = timedelta(minutes=5)  # a player may be hurt while warming up


def next_lineup_read(kickoff: datetime, now: datetime, *, is_final: bool, window: timedelta) -> datetime | None:
    """Returns the time of the next read before the start, if any. `is_final`: both elevens are known and confirmed."""
    left = kickoff - now
    if left <= timedelta(0):
        return None
    if is_final:
        last = kickoff - FINAL_READ_BEFORE_START
        return last if now < last else None
    if left > window:
        return kickoff - window
    at_least, wait = next(step for step in STEPS if left > step[0])
    shorter_step_from = max(kickoff - at_least, now + STEPS[-1][1])
    at = min(now + wait, shorter_step_from)
    return at if at < kickoff else None
