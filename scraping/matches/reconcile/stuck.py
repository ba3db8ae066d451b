"""Finds a heavier source that has not noticed the start or the end of a match.

Guards against a match that is live for ever because one site never got its result, and against one that is upcoming for
ever. An end at a lighter source is accepted when the heavier one has not changed for longer than its phase explains:
ten minutes of play, a night at stumps. It stays accepted until the heavier one changes again; then that one counts. A
start is accepted ten minutes after the start time of the heavier source.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scraping.matches.reconcile.states import SourceView, State, goes_backwards
from scraping.payloads import Phase, Status

MINUTE = 60.0
STUCK_SECONDS = 10 * MINUTE
# A phase that announces more play explains a longer silence. In rain or after an interruption matches are called off.
EXPLAINED_SECONDS = {
    Phase.DRINKS: 15 * MINUTE,
    Phase.HALFTIME: 25 * MINUTE,
    Phase.TEA: 45 * MINUTE,
    Phase.INNINGS_BREAK: 60 * MINUTE,
    Phase.LUNCH: 60 * MINUTE,
    Phase.STUMPS: 24 * 60 * MINUTE,
}
# For an end at a lower score than the heavier source's: the lighter one has missed something, or invented the end.
LOWER_SCORE_FACTOR = 6
ENDED = (Status.COMPLETED, Status.ABANDONED)
BEGUN = (Status.LIVE, *ENDED)


def accepted_end(chosen: SourceView, ranked: Sequence[SourceView], known: State) -> SourceView | None:
    """Returns the source whose end of the match counts more than the chosen source's play, or None."""
    if chosen.state.get("status") != Status.LIVE or chosen.unmoved_seconds is None:
        return None
    ended = next((view for view in ranked if view.state.get("status") in ENDED), None)
    if ended is None:
        return None
    ahead = [view for view in ranked if goes_backwards(view.state, ended.state)]
    if known.get("status") in ENDED:
        is_doubted = any(view.unmoved_seconds is None for view in ahead)
    else:
        explained = EXPLAINED_SECONDS.get(chosen.state.get("phase") or Phase.PLAY, STUCK_SECONDS)
        is_doubted = chosen.unmoved_seconds < explained * (LOWER_SCORE_FACTOR if ahead else 1)
    return None if is_doubted else ended


def accepted_start(chosen: SourceView, ranked: Sequence[SourceView]) -> SourceView | None:
    """Returns a source that has the match as begun, if the chosen one has missed its own start time; else None.

    Compared with the time of the readings, not with now: an outage of ours makes no source late.
    """
    start = chosen.state.get("start_time")
    is_postponed = chosen.state.get("phase") == Phase.POSTPONED
    if chosen.state.get("status") != Status.UPCOMING or is_postponed or not start:
        return None
    late = (chosen.captured_at - datetime.fromisoformat(str(start))).total_seconds()
    begun = (view for view in ranked if view.state.get("status") in BEGUN)
    return next(begun, None) if late >= STUCK_SECONDS else None
