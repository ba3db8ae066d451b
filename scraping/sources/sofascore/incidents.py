"""Goals, cards, substitutions: the incidents answer as events, described in our own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scraping.payloads import Event
from scraping.sources import loose

Incident = Mapping[str, Any]
_NO_TIME = 999  # the source's mark for "no added time", and for the time of a shoot-out
_GOALS = {"penalty": "penalty_goal", "ownGoal": "own_goal"}
_CARDS = {"yellow": "yellow_card", "red": "red_card", "yellowRed": "red_card"}
_PERIODS = {"HT": "Half-time", "FT": "Full time", "ET": "End of extra time", "PEN": "End of penalties"}
_WORDS = {
    "goal": "Goal",
    "penalty_goal": "Penalty goal",
    "own_goal": "Own goal",
    "yellow_card": "Yellow card",
    "red_card": "Red card",
    "substitution": "Substitution",
    "var": "VAR",
    "injury_time": "Added time",
    "penalty_missed": "Penalty missed",
    "shootout_goal": "Shoot-out, scored",
    "shootout_miss": "Shoot-out, missed",
}
_NOT_CRITICAL = frozenset({"injury_time", "other"})


def happenings(answer: Any) -> list[Incident] | None:
    """The incidents that have happened, newest first; None if this is not an incidents answer.

    An item with `isLive` is the running period's headline ("First half"): its text changes, it is no happening.
    """
    listed = loose.mapping(answer).get("incidents")
    if not isinstance(listed, list):
        return None
    return [item for item in loose.rows(listed) if item.get("isLive") is not True]


def goals_in(incidents: list[Incident]) -> tuple[int, int]:
    """Home and away goals that the incidents tell of; `isHome` is the side credited, for own goals too."""
    goals = [incident.get("isHome") for incident in incidents if incident.get("incidentType") == "goal"]
    return sum(is_home is True for is_home in goals), sum(is_home is False for is_home in goals)


def is_beyond(incidents: list[Incident], goals: tuple[int, int]) -> bool:
    """Whether they tell of more goals than the score, by more than the one that a second's delay explains.

    Incidents do not name their match: this is all there is to tell a mix-up by. Fewer goals are common in small
    leagues.
    """
    return any(told > scored + 1 for told, scored in zip(goals_in(incidents), goals, strict=True))


def events_of(incidents: list[Incident]) -> tuple[Event, ...]:
    """One event an incident; an id that comes twice counts once."""
    unique: dict[str, Event] = {}
    for incident in incidents:
        event = event_of(incident)
        unique.setdefault(event.id, event)
    return tuple(unique.values())


def event_of(incident: Incident) -> Event:
    kind, minute = _kind(incident), _minute(incident)
    return Event(
        id=_id(incident),
        kind=kind,
        minute=minute,
        is_critical=kind not in _NOT_CRITICAL,
        description=_description(incident, kind, minute),
        detail=_detail(incident),
    )


def _id(incident: Incident) -> str:
    """The source's id; periods and added time have none, so theirs is made of what they say."""
    own = loose.text(incident.get("id"), 120)
    if own:
        return own
    said = loose.text(incident.get("text"), 40) or loose.text(incident.get("length"), 10)
    return f"{loose.text(incident.get('incidentType'), 40)}:{loose.text(incident.get('time'), 10)}:{said}"


def _kind(incident: Incident) -> str:
    kind, variant = loose.text(incident.get("incidentType"), 40), loose.text(incident.get("incidentClass"), 40)
    if kind == "goal":
        return _GOALS.get(variant, "goal")
    if kind == "card":
        return _CARDS.get(variant, "yellow_card")
    if kind == "penaltyShootout":
        return "shootout_goal" if variant == "scored" else "shootout_miss"
    plain = {"inGamePenalty": "penalty_missed", "varDecision": "var", "injuryTime": "injury_time"}
    return plain.get(kind, kind if kind in ("substitution", "period") else "other")


def _minute(incident: Incident) -> str | None:
    """Cards to the bench have a negative time, shoot-outs none or 999."""
    time, added = loose.integer(incident.get("time")), loose.integer(incident.get("addedTime"))
    if time is None or not 0 <= time < _NO_TIME:
        return None
    return f"{time}+{added}" if added is not None and 0 < added < _NO_TIME else str(time)


def _description(incident: Incident, kind: str, minute: str | None) -> str:
    if kind == "period":
        said = loose.text(incident.get("text"), 40)
        return f"{_PERIODS.get(said, said)}{_score(incident)}".strip()
    what = _WORDS.get(kind) or loose.text(incident.get("incidentType"), 40) or "Incident"
    head = f"{what} {minute}'" if minute else what
    return loose.text(f"{head}: {body}" if (body := _body(incident, kind)) else head)


def _body(incident: Incident, kind: str) -> str:
    if kind == "injury_time":
        return f"{loose.text(incident.get('length'), 5)} min"
    if kind == "substitution":
        return f"{_player(incident, 'playerIn')} for {_player(incident, 'playerOut')}"
    name = _player(incident, "player") or loose.text(incident.get("playerName"), 120)
    if kind == "var":
        decision = loose.text(incident.get("incidentClass"), 40)
        return " ".join(filter(None, (decision, "confirmed" if incident.get("confirmed") is True else "", name)))
    rescinded = " (rescinded)" if incident.get("rescinded") is True else ""
    return f"{name}{_score(incident)}{rescinded}".strip()


def _score(incident: Incident) -> str:
    home, away = loose.integer(incident.get("homeScore")), loose.integer(incident.get("awayScore"))
    return "" if home is None or away is None else f" ({home}-{away})"


def _player(incident: Incident, role: str) -> str:
    player = loose.mapping(incident.get(role))
    return loose.text(player.get("shortName") or player.get("name"), 120)


def _detail(incident: Incident) -> dict[str, str | int | float | bool | None]:
    """A few plain fields: the incident itself may carry a whole network of passes."""
    detail: dict[str, str | int | float | bool | None] = {}
    if isinstance(incident.get("isHome"), bool):
        detail["team"] = "team_a" if incident["isHome"] else "team_b"
    for ours, theirs in (("class", "incidentClass"), ("reason", "reason")):
        if said := loose.text(incident.get(theirs), 60):
            detail[ours] = said
    for role in ("player", "assist1", "playerIn", "playerOut"):
        if name := loose.text(loose.mapping(incident.get(role)).get("name"), 120):
            detail[{"assist1": "assist", "playerIn": "player_in", "playerOut": "player_out"}.get(role, role)] = name
    home, away = loose.integer(incident.get("homeScore")), loose.integer(incident.get("awayScore"))
    if home is not None and away is not None:
        detail["score"] = f"{home}-{away}"
    if incident.get("rescinded") is True:
        detail["rescinded"] = True
    return detail
