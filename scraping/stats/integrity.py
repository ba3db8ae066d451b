"""Which fields of a payload were filled: what the drift of a source is measured by.

A field counts only where the source owes it. A match that has not begun has no score, a side that has not batted has no
runs, a match in a break has no clock: empty there says nothing. So readings are told apart by the stage of the match
(`schema_of`), and each stage has its own fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from scraping.payloads import BREAKS, MatchState, Payload, Sport, Status

INTEGRITY = "integrity"  # not a field: 1 - null_field_rate of the payload
USUAL_WAY = "usual_way"  # not a field: read as the adapter likes best, without any fallback

UPCOMING, PLAY, BREAK, COMPLETED, ABANDONED = "upcoming", "play", "break", "completed", "abandoned"
ALWAYS = frozenset({UPCOMING, PLAY, BREAK, COMPLETED, ABANDONED})
BEGUN = frozenset({PLAY, BREAK, COMPLETED})
CRICKET, BOTH = frozenset({Sport.CRICKET}), frozenset(Sport)


def stage_of(state: MatchState) -> str:
    if state.status is Status.LIVE:
        return BREAK if state.phase in BREAKS else PLAY
    return state.status.value


def schema_of(payload: Payload) -> str:
    """What makes two payloads comparable: sport, version and stage. The name in FieldFill.payload_schema."""
    return f"{payload.state.sport.value}/v{payload.schema_version}/{stage_of(payload.state)}"


def _has_play(state: MatchState) -> bool:
    return any(one.runs or one.wickets or one.overs != "0.0" for one in state.innings)


def _has_score(state: MatchState) -> bool:
    if state.sport is Sport.CRICKET:
        return bool(state.innings)
    return state.score.team_a.goals is not None and state.score.team_b.goals is not None


# Field, is it filled, and for which sports and stages it is owed.
STATE_FIELDS: tuple[tuple[str, Callable[[MatchState], bool], frozenset[Sport], frozenset[str]], ...] = (
    ("teams.team_a.short_name", lambda state: bool(state.teams.team_a.short_name), BOTH, ALWAYS),
    ("teams.team_b.short_name", lambda state: bool(state.teams.team_b.short_name), BOTH, ALWAYS),
    ("start_time", lambda state: state.start_time is not None, BOTH, ALWAYS),
    ("venue", lambda state: bool(state.venue), BOTH, ALWAYS),
    ("metadata.series", lambda state: bool(state.metadata.get("series")), BOTH, ALWAYS),
    ("metadata.match_type", lambda state: bool(state.metadata.get("match_type")), CRICKET, ALWAYS),
    ("score", _has_score, BOTH, BEGUN),
    ("current_innings", lambda state: state.current_innings is not None, CRICKET, frozenset({PLAY})),
    # Told by the page alone, which direct reads know from a visit that may have been before the toss.
    ("toss", lambda state: state.toss is not None, CRICKET, frozenset({COMPLETED})),
    ("clock", lambda state: bool(state.clock), frozenset({Sport.FOOTBALL}), frozenset({PLAY})),
    ("result", lambda state: bool(state.result), BOTH, frozenset({COMPLETED})),
)


@cache
def _owed(sport: Sport, stage: str) -> tuple[tuple[str, Callable[[MatchState], bool]], ...]:
    return tuple((name, filled) for name, filled, sports, stages in STATE_FIELDS if stage in stages and sport in sports)


def fields_of(payload: Payload) -> Mapping[str, bool]:
    """The fields that this payload owes, and whether each is filled."""
    state, stage = payload.state, stage_of(payload.state)
    found = {name: is_filled(state) for name, is_filled in _owed(state.sport, stage)}
    found[USUAL_WAY] = not payload.is_partial_state and not any(
        name not in found and name not in EVENT_FIELDS for name in payload.integrity.missing_fields
    )
    if stage in BEGUN:
        found |= _of_events(payload)
    return found


EVENTS_LOOKED_AT = 6  # this is counted at every poll, and what a source leaves out it leaves out everywhere
EVENT_FIELDS = frozenset({"events", "last_event", "events.description", "events.happened_at", "events.ordinal"})


def _of_events(payload: Payload) -> dict[str, bool]:
    """Owed once a ball was bowled; in football a list without a goal may be empty, but it must be there.

    Of the events' own fields one event that has it is enough: which ones have which depends on what has happened.
    """
    found = {"events": "events" not in payload.integrity.missing_fields}
    if payload.state.sport is Sport.CRICKET:
        if not _has_play(payload.state):
            return {}
        found["last_event"] = payload.state.last_event is not None
    if some := payload.events[:EVENTS_LOOKED_AT]:
        found["events.description"] = any(event.description for event in some)
        found["events.happened_at"] = any(event.happened_at is not None for event in some)
        found["events.ordinal"] = any(event.ordinal is not None for event in some)
    return found
