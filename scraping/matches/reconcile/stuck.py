"""A heavier source that was left behind: by the end of the match, or by its beginning.

Guards against a match that is live for ever because nobody at one site entered its result, and one that never is
because nobody there said that it began. An end is believed from a lighter source when the heavier one has not moved for
longer than its own word explains: ten minutes of play, a night at stumps. Once believed it stands until the heavier one
moves again; then that one is right. A beginning is believed ten minutes after the start that the heavier one tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scraping.matches.reconcile.progress import goes_backwards
from scraping.matches.reconcile.views import SourceView, State
from scraping.payloads import Phase, Status

MINUTE = 60.0
STUCK_SECONDS = 10 * MINUTE
# A word that promises more play explains a longer silence. In rain or after an interruption matches are called off.
EXPLAINED_SECONDS = {
    Phase.DRINKS: 15 * MINUTE,
    Phase.HALFTIME: 25 * MINUTE,
    Phase.TEA: 45 * MINUTE,
    Phase.INNINGS_BREAK: 60 * MINUTE,
    Phase.LUNCH: 60 * MINUTE,
    Phase.STUMPS: 24 * 60 * MINUTE,
}
LESS_TOLD_FACTOR = (
    6  # for an end at a lower score than the heavier source tells: it has missed something, or invented it
)
ENDED = (Status.COMPLETED, Status.ABANDONED)
BEGUN = (Status.LIVE, *ENDED)


def told_end(chosen: SourceView, ranked: Sequence[SourceView], known: State) -> SourceView | None:
    """The source whose word of the end counts more than what the chosen one says of the play; None: none does."""
    if chosen.state.get("status") != Status.LIVE or chosen.unmoved_seconds is None:
        return None
    ended = next((view for view in ranked if view.state.get("status") in ENDED), None)
    if ended is None:
        return None
    ahead = [view for view in ranked if goes_backwards(view.state, ended.state)]
    if known.get("status") in ENDED:
        is_doubted = any(view.unmoved_seconds is None for view in ahead)
    else:
        is_doubted = chosen.unmoved_seconds < _patience(chosen) * (LESS_TOLD_FACTOR if ahead else 1)
    return None if is_doubted else ended


def told_beginning(chosen: SourceView, ranked: Sequence[SourceView]) -> SourceView | None:
    """The source that tells play, or more, of a match whose start the chosen one has let pass; None: there is none.

    Compared with when they were read, not with now: an outage of ours makes nobody late.
    """
    start = chosen.state.get("start_time")
    is_put_off = chosen.state.get("phase") == Phase.POSTPONED
    if chosen.state.get("status") != Status.UPCOMING or is_put_off or not start:
        return None
    late = (chosen.captured_at - datetime.fromisoformat(str(start))).total_seconds()
    begun = (view for view in ranked if view.state.get("status") in BEGUN)
    return next(begun, None) if late >= STUCK_SECONDS else None


def _patience(chosen: SourceView) -> float:
    return EXPLAINED_SECONDS.get(chosen.state.get("phase") or Phase.PLAY, STUCK_SECONDS)
