"""Whether a list of incidents belongs to the event it came with.

Incidents do not name their match, and the two answers may be a second apart. So what they tell is held against the
event: goals, the score at the breaks, how far the match has got. What cannot be is another match's list and is not
used; what merely does not agree yet is used, but nothing is concluded from what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scraping.sources import parsing

Incident = Mapping[str, Any]
Pair = tuple[int, int]
_FIRST_HALF = 6
_AFTER_THE_BREAK = (7, 31, 41, 42, 50)
_NOT_BEGUN = ("notstarted", "postponed")
_PLAYED = ("goal", "penaltyShootout", "period", "substitution")


def goals_in(incidents: list[Incident]) -> Pair:
    """Home and away goals that the incidents tell of; `isHome` is the side credited, for own goals too."""
    goals = [incident.get("isHome") for incident in incidents if incident.get("incidentType") == "goal"]
    return sum(is_home is True for is_home in goals), sum(is_home is False for is_home in goals)


def is_foreign(incidents: list[Incident], event: Mapping[str, Any], goals: Pair) -> bool:
    """They tell what cannot have happened in this match: a delay explains one goal, and no whole half."""
    if any(told > scored + 1 for told, scored in zip(goals_in(incidents), goals, strict=True)):
        return True
    for incident in incidents:
        pair = _pair(incident) if incident.get("incidentType") == "goal" else None
        if pair and any(told > scored + 1 for told, scored in zip(pair, goals, strict=True)):
            return True
    status = parsing.mapping(event.get("status"))
    if status.get("type") in _NOT_BEGUN:
        return any(incident.get("incidentType") in _PLAYED for incident in incidents)
    return parsing.integer(status.get("code")) == _FIRST_HALF and bool(_ended(incidents).keys() & {"FT", "ET", "PEN"})


def are_all(rows: list[Incident], event: Mapping[str, Any], goals: Pair) -> bool:
    """Whether nothing is missing, as far as the event can tell: every goal is there, and the breaks' scores agree."""
    if goals_in(rows) != goals:
        return False
    status = parsing.mapping(event.get("status"))
    if not rows and parsing.integer(status.get("code")) in _AFTER_THE_BREAK:
        return False  # half-time at least would be on it
    ended = _ended(rows)
    stated = {"HT": _both(event, "period1"), "FT": _both(event, "normaltime")}
    return all(pair is None or ended.get(name) in (None, pair) for name, pair in stated.items())


def _ended(incidents: list[Incident]) -> dict[str, Pair | None]:
    """The periods that are over, with the score then."""
    periods = (row for row in incidents if row.get("incidentType") == "period" and row.get("isLive") is not True)
    return {parsing.text(row.get("text"), 20): _pair(row) for row in periods}


def _pair(incident: Incident) -> Pair | None:
    home, away = parsing.integer(incident.get("homeScore")), parsing.integer(incident.get("awayScore"))
    return None if home is None or away is None else (home, away)


def _both(event: Mapping[str, Any], field: str) -> Pair | None:
    home, away = (parsing.integer(parsing.mapping(event.get(side)).get(field)) for side in ("homeScore", "awayScore"))
    return None if home is None or away is None else (home, away)
