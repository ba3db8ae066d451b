"""Which fields of a cricket match are wanted: their absence is told in a payload's integrity."""

from __future__ import annotations

from scraping.payloads import MatchState, Phase, Status


def missing_in(state: MatchState, *, has_events: bool) -> tuple[str, ...]:
    """Which of the nine wanted fields the source left out; a match without a ball owes no score and no last event."""
    has_begun = state.phase is Phase.PLAY or state.status is Status.COMPLETED
    has_play = any(one.runs or one.wickets or one.overs != "0.0" for one in state.innings)
    wanted = {
        "teams.team_a.short_name": bool(state.teams.team_a.short_name),
        "teams.team_b.short_name": bool(state.teams.team_b.short_name),
        "start_time": state.start_time is not None,
        "venue": bool(state.venue),
        "metadata.series": bool(state.metadata.get("series")),
        "metadata.match_type": bool(state.metadata.get("match_type")),
        "score": bool(state.innings) or not has_begun,
        "last_event": state.last_event is not None or not has_play,
        "events": has_events or not has_play,
    }
    return tuple(name for name, is_there in wanted.items() if not is_there)


def missing_in_football(state: MatchState, *, has_events: bool) -> tuple[str, ...]:
    """Which of the seven wanted fields the source left out; a match that has not begun owes no score."""
    has_begun = state.status in (Status.LIVE, Status.COMPLETED)
    wanted = {
        "teams.team_a.short_name": bool(state.teams.team_a.short_name),
        "teams.team_b.short_name": bool(state.teams.team_b.short_name),
        "start_time": state.start_time is not None,
        "venue": bool(state.venue),
        "metadata.series": bool(state.metadata.get("series")),
        "score": state.score.team_a.goals is not None or not has_begun,
        "events": has_events or not has_begun,
    }
    return tuple(name for name, is_there in wanted.items() if not is_there)
