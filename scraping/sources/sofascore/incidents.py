"""Goals, cards, substitutions: the incidents response as events with descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scraping import event_keys
from scraping.payloads import Event
from scraping.sources import parsing
from scraping.sources.parsing import note_unrecognized, validated
from scraping.sources.sofascore import schemas

Incident = Mapping[str, Any]
_NO_TIME = 999  # the source's mark for "no added time", and for the time of a shoot-out
_GOALS = {"regular": "goal", "penalty": "penalty_goal", "ownGoal": "own_goal"}
_CARDS = {"yellow": "yellow_card", "red": "red_card", "yellowRed": "red_card"}
_KICKS = {"scored": "shootout_goal", "missed": "shootout_miss"}
_PLAIN = {
    "inGamePenalty": "penalty_missed",
    "varDecision": "var",
    "injuryTime": "injury_time",
    "substitution": "substitution",
    "period": "period",
}
_PERIODS = {"HT": "Half-time", "FT": "Full time", "ET": "End of extra time", "PEN": "End of penalties"}
_CLASSES = {  # the variants of each type that have been recorded
    "goal": frozenset(_GOALS),
    "card": frozenset(_CARDS),
    "penaltyShootout": frozenset(_KICKS),
    "substitution": frozenset({"regular", "injury"}),
    "inGamePenalty": frozenset({"missed"}),
    "varDecision": frozenset(
        {
            "goalAwarded",
            "goalNotAwarded",
            "penaltyAwarded",
            "penaltyNotAwarded",
            "redCardGiven",
            "cardUpgrade",
            "review",
        }
    ),
}
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
_CARD_COLOURS = {"yellow": "yellow", "red": "red", "yellowRed": "red"}
_KEYED_PERIODS = ("HT", "FT", "ET", "PEN")
Pair = tuple[int, int]
_FIRST_HALF = 6
_AFTER_THE_BREAK = (7, 31, 41, 42, 50)
_NOT_BEGUN = ("notstarted", "postponed")
_PLAYED = ("goal", "penaltyShootout", "period", "substitution")


def checked(response: Any, url: str = "") -> list[Incident]:
    """Returns the rows of an incidents response, newest first."""
    validated(schemas.IncidentsResponse, response, schema=schemas.INCIDENTS, url=url)
    return list(response["incidents"])


def happened(rows: list[Incident]) -> list[Incident]:
    """Removes items with `isLive`, the headline of the running period ("First half"), which are no events."""
    return [row for row in rows if row.get("isLive") is not True]


def events_of(incidents: list[Incident]) -> tuple[Event, ...]:
    """Returns one event for each incident, newest first, without duplicates.

    Goals and cards are numbered separately, so an id may be another incident's too.
    """
    places = IncidentKeys(incidents)
    unique: dict[tuple[str, str], Event] = {}
    taken: set[str] = set()
    for incident in incidents:
        event = event_of(incident, places.slot(incident))
        key = (parsing.text(incident.get("incidentType"), 40), event.id)
        if key not in unique:
            is_free = event.id not in taken
            unique[key] = event if is_free else event.model_copy(update={"id": f"{key[0]}:{event.id}"})
            taken.add(unique[key].id)
    return tuple(unique.values())


def event_of(incident: Incident, slot: str = "") -> Event:
    kind, minute = _kind(incident), _minute(incident)
    return Event(
        id=_id(incident),
        kind=kind,
        minute=minute,
        slot=slot,
        is_critical=kind not in _NOT_CRITICAL,
        description=_description(incident, kind, minute),
        detail=_detail(incident),
    )


def _id(incident: Incident) -> str:
    """Returns the source's id, or one made of the contents: periods and added time have none."""
    own = parsing.text(incident.get("id"), 120)
    if own:
        return own
    said = parsing.text(incident.get("text"), 40) or parsing.text(incident.get("length"), 10)
    return f"{parsing.text(incident.get('incidentType'), 40)}:{parsing.text(incident.get('time'), 10)}:{said}"


def _kind(incident: Incident) -> str:
    kind, variant = parsing.text(incident.get("incidentType"), 40), parsing.text(incident.get("incidentClass"), 40)
    if kind in _CLASSES and variant and variant not in _CLASSES[kind]:
        note_unrecognized(f"incidents[].incidentClass of {kind}", variant)
    if kind == "goal":
        return _GOALS.get(variant, "goal")
    if kind == "card":
        return _CARDS.get(variant, "other")
    if kind == "penaltyShootout":
        return _KICKS.get(variant, "shootout_miss")
    if kind not in _PLAIN:
        note_unrecognized("incidents[].incidentType", kind)
    if kind == "period" and incident.get("text") not in _PERIODS:
        note_unrecognized("incidents[].text of period", incident.get("text"))
    return _PLAIN.get(kind, "other")


def _minute(incident: Incident) -> str | None:
    """Returns the minute; cards to the bench have a negative time, shoot-outs none or 999."""
    time, added = parsing.integer(incident.get("time")), parsing.integer(incident.get("addedTime"))
    if time is None or not 0 <= time < _NO_TIME:
        return None
    return f"{time}+{added}" if added is not None and 0 < added < _NO_TIME else str(time)


def _description(incident: Incident, kind: str, minute: str | None) -> str:
    if kind == "period":
        said = parsing.text(incident.get("text"), 40)
        return f"{_PERIODS.get(said, said)}{_score(incident)}".strip()
    what = _WORDS.get(kind) or parsing.text(incident.get("incidentType"), 40) or "Incident"
    head = f"{what} {minute}'" if minute else what
    return parsing.text(f"{head}: {body}" if (body := _body(incident, kind)) else head)


def _body(incident: Incident, kind: str) -> str:
    if kind == "injury_time":
        return f"{parsing.text(incident.get('length'), 5)} min"
    if kind == "substitution":
        return f"{_player(incident, 'playerIn')} for {_player(incident, 'playerOut')}"
    name = _player(incident, "player") or parsing.text(incident.get("playerName"), 120)
    if kind == "var":
        decision = parsing.text(incident.get("incidentClass"), 40)
        return " ".join(filter(None, (decision, "confirmed" if incident.get("confirmed") is True else "", name)))
    rescinded = " (rescinded)" if incident.get("rescinded") is True else ""
    return f"{name}{_score(incident)}{rescinded}".strip()


def _score(incident: Incident) -> str:
    home, away = parsing.integer(incident.get("homeScore")), parsing.integer(incident.get("awayScore"))
    return "" if home is None or away is None else f" ({home}-{away})"


def _player(incident: Incident, role: str) -> str:
    player = parsing.mapping(incident.get(role))
    return parsing.text(player.get("shortName") or player.get("name"), 120)


def _detail(incident: Incident) -> dict[str, str | int | float | bool | None]:
    """Returns a few plain fields: the incident itself may contain a whole network of passes."""
    detail: dict[str, str | int | float | bool | None] = {}
    if isinstance(incident.get("isHome"), bool):
        detail["team"] = "team_a" if incident["isHome"] else "team_b"
    for ours, theirs in (("class", "incidentClass"), ("reason", "reason")):
        if said := parsing.text(incident.get(theirs), 60):
            detail[ours] = said
    for role in ("player", "assist1", "playerIn", "playerOut"):
        if name := parsing.text(parsing.mapping(incident.get(role)).get("name"), 120):
            detail[{"assist1": "assist", "playerIn": "player_in", "playerOut": "player_out"}.get(role, role)] = name
    home, away = parsing.integer(incident.get("homeScore")), parsing.integer(incident.get("awayScore"))
    if home is not None and away is not None:
        detail["score"] = f"{home}-{away}"
    if incident.get("rescinded") is True:
        detail["rescinded"] = True
    return detail


class IncidentKeys:
    """The keys that incidents have at every source.

    Goals and kicks are numbered per side, by the score or sequence in the incident, else by their count in the list.
    """

    def __init__(self, newest_first: list[Incident]) -> None:
        self._counted: dict[int, int] = {}
        counts: dict[tuple[str, bool], int] = {}
        for incident in reversed(newest_first):
            kind, is_home = incident.get("incidentType"), incident.get("isHome")
            if kind in ("goal", "penaltyShootout") and isinstance(is_home, bool):
                counts[kind, is_home] = counts.get((kind, is_home), 0) + 1
                self._counted[id(incident)] = counts[kind, is_home]

    def slot(self, incident: Incident) -> str:
        """Returns the event key; empty where the incident has none: a video review, added time."""
        kind, variant = incident.get("incidentType"), parsing.text(incident.get("incidentClass"), 40)
        if kind == "period":
            text = parsing.text(incident.get("text"), 40)
            return event_keys.period(text) if text in _KEYED_PERIODS else ""
        is_home = incident.get("isHome")
        if not isinstance(is_home, bool):
            return ""
        side = "team_a" if is_home else "team_b"
        if kind == "goal":
            return event_keys.goal(
                side, parsing.integer(incident.get("homeScore" if is_home else "awayScore")) or self._nth(incident)
            )
        if kind == "penaltyShootout":
            sequence = parsing.integer(incident.get("sequence"))
            return event_keys.shootout_kick(side, (sequence + 1) // 2 if sequence else self._nth(incident))
        if kind == "card" and variant in _CARD_COLOURS:
            name = _person_name(incident, "player") or parsing.text(incident.get("playerName"), 120)
            return event_keys.card(side, _CARD_COLOURS[variant], name) if name else ""
        if kind == "substitution":
            name = _person_name(incident, "playerOut")
            return event_keys.substitution(side, name) if name else ""
        return ""

    def _nth(self, incident: Incident) -> int:
        return self._counted.get(id(incident), 1)


def _person_name(incident: Incident, role: str) -> str:
    return parsing.text(parsing.mapping(incident.get(role)).get("name"), 120)


def goals_in(incidents: list[Incident]) -> Pair:
    """Returns home and away goals of the incidents; `isHome` is the side credited, for own goals too."""
    goals = [incident.get("isHome") for incident in incidents if incident.get("incidentType") == "goal"]
    return sum(is_home is True for is_home in goals), sum(is_home is False for is_home in goals)


def is_of_another_match(incidents: list[Incident], event: Mapping[str, Any], goals: Pair) -> bool:
    """Returns whether these incidents contradict the event: a delay explains one goal, and no whole half."""
    if any(listed > scored + 1 for listed, scored in zip(goals_in(incidents), goals, strict=True)):
        return True
    for incident in incidents:
        pair = _pair(incident) if incident.get("incidentType") == "goal" else None
        if pair and any(listed > scored + 1 for listed, scored in zip(pair, goals, strict=True)):
            return True
    status = parsing.mapping(event.get("status"))
    if status.get("type") in _NOT_BEGUN:
        return any(incident.get("incidentType") in _PLAYED for incident in incidents)
    return parsing.integer(status.get("code")) == _FIRST_HALF and bool(_ended(incidents).keys() & {"FT", "ET", "PEN"})


def are_complete(rows: list[Incident], event: Mapping[str, Any], goals: Pair) -> bool:
    """Returns whether nothing is missing, as far as the event shows: all goals, and the scores at the breaks agree."""
    if goals_in(rows) != goals:
        return False
    status = parsing.mapping(event.get("status"))
    if not rows and parsing.integer(status.get("code")) in _AFTER_THE_BREAK:
        return False  # half-time at least would be on it
    ended = _ended(rows)
    stated = {"HT": _both(event, "period1"), "FT": _both(event, "normaltime")}
    return all(pair is None or ended.get(name) in (None, pair) for name, pair in stated.items())


def _ended(incidents: list[Incident]) -> dict[str, Pair | None]:
    """Returns the periods that are over, with the score at their end."""
    periods = (row for row in incidents if row.get("incidentType") == "period" and row.get("isLive") is not True)
    return {parsing.text(row.get("text"), 20): _pair(row) for row in periods}


def _pair(incident: Incident) -> Pair | None:
    home, away = parsing.integer(incident.get("homeScore")), parsing.integer(incident.get("awayScore"))
    return None if home is None or away is None else (home, away)


def _both(event: Mapping[str, Any], field: str) -> Pair | None:
    home, away = (parsing.integer(parsing.mapping(event.get(side)).get(field)) for side in ("homeScore", "awayScore"))
    return None if home is None or away is None else (home, away)
