"""Goals, cards, substitutions: the incidents response as events with descriptions."""

from collections import Counter
from collections.abc import Sequence

from scraping import event_keys
from scraping.payloads import Event
from scraping.sources import football, parsing
from scraping.sources.parsing import note_unrecognized
from scraping.sources.sofascore.schemas import FootballEvent, Incident, Person

_NO_TIME = 999  # the source's mark for "no added time", and for the time of a shoot-out
_KINDS = {  # by type and class; an unknown class has the kind of the empty one
    "goal": {"regular": "goal", "penalty": "penalty_goal", "ownGoal": "own_goal", "": "goal"},
    "card": {"yellow": "yellow_card", "red": "red_card", "yellowRed": "red_card", "": "other"},
    "penaltyShootout": {"scored": "shootout_goal", "missed": "shootout_miss", "": "shootout_miss"},
    "inGamePenalty": dict.fromkeys(("missed", ""), "penalty_missed"),
    "substitution": dict.fromkeys(("regular", "injury", ""), "substitution"),
    "varDecision": dict.fromkeys((
        "goalAwarded", "goalNotAwarded", "penaltyAwarded", "penaltyNotAwarded", "redCardGiven", "cardUpgrade", "review",
        "",
    ), "var"),
    "injuryTime": {"": "injury_time"},
    "period": {"": "period"},
}  # fmt: skip
_VERDICTS: dict[bool | None, str] = {
    True: "confirmed",
    False: "overturned",
}  # of a video review
_WITHOUT_CLASSES = ("injuryTime", "period")
_PERIODS = {"HT": "Half-time", "FT": "Full time", "ET": "End of extra time", "PEN": "End of penalties"}
_FIRST_HALF = 6
_AFTER_THE_BREAK = (7, 31, 41, 42, 50)
_PLAYED = ("goal", "penaltyShootout", "period", "substitution")
Pair = tuple[int, int]


def events_of(incidents: Sequence[Incident]) -> tuple[Event, ...]:
    """Returns an event for each incident, newest first, once; goals and cards may have the same id."""
    counts: Counter[tuple[str, bool | None]] = Counter()
    numbers: list[int] = []
    for incident in reversed(incidents):
        counts[incident.incidentType, incident.isHome] += 1
        numbers.append(counts[incident.incidentType, incident.isHome])
    unique: dict[tuple[str, str], Event] = {}
    taken: set[str] = set()
    for incident, number in zip(incidents, reversed(numbers), strict=True):
        event = event_of(incident, number)
        key = (incident.incidentType, event.id)
        if key not in unique:
            is_free = event.id not in taken
            unique[key] = event if is_free else event.model_copy(update={"id": f"{key[0][:40]}:{event.id}"})
            taken.add(unique[key].id)
    return tuple(unique.values())


def event_of(incident: Incident, number: int = 1) -> Event:
    """Returns the event of an incident; `number`: its place among those of its type and side."""
    kind, minute = _kind(incident), _minute(incident)
    said = parsing.text(incident.text, 40)
    if kind == "period":
        description = f"{_PERIODS.get(said, said)}{_printed_score(incident)}".strip()
    else:
        label = football.LABELS.get(kind) or incident.incidentType[:40]
        description = parsing.text(football.description_of(label, minute, _body(incident, kind)))
    made_up = f"{incident.incidentType[:40]}:{parsing.text(incident.time)}:{said or parsing.text(incident.length)}"
    return Event(
        id=parsing.text(incident.id) or made_up,  # periods and added time have none
        kind=kind,
        minute=minute,
        slot=_slot(incident, kind, number),
        is_critical=kind not in ("injury_time", "other"),
        description=description,
        detail=_detail(incident),
    )


def _kind(incident: Incident) -> str:
    name, variant = incident.incidentType, parsing.text(incident.incidentClass, 40)
    if name not in _KINDS:
        note_unrecognized("incidents[].incidentType", name)
        return "other"
    if variant not in _KINDS[name] and name not in _WITHOUT_CLASSES:
        note_unrecognized(f"incidents[].incidentClass of {name}", variant)
    if name == "period" and incident.text not in _PERIODS:
        note_unrecognized("incidents[].text of period", incident.text)
    return _KINDS[name].get(variant) or _KINDS[name][""]


def _minute(incident: Incident) -> str | None:
    """Returns the minute; cards to the bench have a negative time, shoot-outs none or 999."""
    time, added = incident.time, incident.addedTime
    if time is None or not 0 <= time < _NO_TIME:
        return None
    return f"{time}+{added}" if added is not None and 0 < added < _NO_TIME else str(time)


def _body(incident: Incident, kind: str) -> str:
    if kind == "injury_time":
        return f"{parsing.text(incident.length, 5)} min"
    if kind == "substitution":
        return f"{_short_name(incident.playerIn)} for {_short_name(incident.playerOut)}"
    name = _short_name(incident.player) or parsing.text(incident.playerName, 120)
    if kind == "var":
        decision = parsing.text(incident.incidentClass, 40)
        return " ".join(filter(None, (decision, _VERDICTS.get(incident.confirmed, ""), name)))
    return f"{name}{_printed_score(incident)}{' (rescinded)' if incident.rescinded else ''}".strip()


def _short_name(player: Person | None) -> str:
    return parsing.text(player.shortName or player.name, 120) if player else ""


def _name(player: Person | None) -> str:
    return parsing.text(player.name, 120) if player else ""


def _score(incident: Incident) -> Pair | None:
    home, away = incident.homeScore, incident.awayScore
    return None if home is None or away is None else (home, away)


def _printed_score(incident: Incident) -> str:
    score = _score(incident)
    return f" ({score[0]}-{score[1]})" if score else ""


def _detail(incident: Incident) -> dict[str, str | int | float | bool | None]:
    score = _score(incident)
    found: dict[str, str | int | float | bool | None] = {
        "team": _side(incident),
        "class": parsing.text(incident.incidentClass, 60),
        "reason": incident.reason[:60],
        "player": _name(incident.player),
        "assist": _name(incident.assist1),
        "player_in": _name(incident.playerIn),
        "player_out": _name(incident.playerOut),
        "score": f"{score[0]}-{score[1]}" if score else "",
        "rescinded": incident.rescinded,
    }
    if incident.incidentType == "varDecision" and incident.confirmed is not None:
        found["confirmed"] = incident.confirmed
    return {name: value for name, value in found.items() if value or name == "confirmed"}


def _side(incident: Incident) -> str:
    return "" if incident.isHome is None else "team_a" if incident.isHome else "team_b"


def _slot(incident: Incident, kind: str, number: int) -> str:
    """Numbers goals and kicks per side, by the score or sequence in the incident, else by their count in the list."""
    if kind == "period":
        text = parsing.text(incident.text, 40)
        return event_keys.period(text) if text in _PERIODS else ""
    if kind in football.GOALS:
        number = (incident.homeScore if incident.isHome else incident.awayScore) or number
    elif kind in football.KICKS and incident.sequence:
        number = (incident.sequence + 1) // 2
    player = _name(incident.player) or parsing.text(incident.playerName, 120)
    return football.slot_of(kind, _side(incident), number, player=player, player_out=_name(incident.playerOut))


def _goals_in(incidents: Sequence[Incident]) -> Pair:
    """Returns home and away goals of the incidents; `isHome` is the side credited, for own goals too."""
    goals = [incident.isHome for incident in incidents if incident.incidentType == "goal"]
    return goals.count(True), goals.count(False)


def is_of_another_match(incidents: Sequence[Incident], event: FootballEvent, goals: Pair) -> bool:
    """Returns whether these incidents contradict the event: a delay explains one goal, and no whole half."""
    scores = [_score(incident) for incident in incidents if incident.incidentType == "goal"]
    for pair in (_goals_in(incidents), *filter(None, scores)):
        if any(listed > scored + 1 for listed, scored in zip(pair, goals, strict=True)):
            return True
    if event.status.type in ("notstarted", "postponed"):
        return any(incident.incidentType in _PLAYED for incident in incidents)
    return event.status.code == _FIRST_HALF and bool(_ended(incidents).keys() & {"FT", "ET", "PEN"})


def are_complete(incidents: Sequence[Incident], event: FootballEvent, goals: Pair) -> bool:
    """Returns whether nothing is missing, as far as the event shows: all goals, and the scores at the breaks agree."""
    if _goals_in(incidents) != goals:
        return False
    if not incidents and event.status.code in _AFTER_THE_BREAK:
        return False  # half-time at least would be on it
    ended, home, away = _ended(incidents), event.homeScore, event.awayScore
    stated = {"HT": (home.period1, away.period1), "FT": (home.normaltime, away.normaltime)}
    return all(None in pair or ended.get(name) in (None, pair) for name, pair in stated.items())


def _ended(incidents: Sequence[Incident]) -> dict[str, Pair | None]:
    return {parsing.text(row.text, 20): _score(row) for row in incidents if row.incidentType == "period"}
