"""A football match from one event of a scoreboard or the header of a summary: its state, goals, cards and kicks."""

from __future__ import annotations

import re
from collections import Counter

from scraping import event_keys
from scraping.errors import SchemaBreak
from scraping.payloads import Event, LastEvent, MatchState, Score, SideScore, Sport, Status, Team, Teams
from scraping.sources import parsing
from scraping.sources.espn import soccer_schemas
from scraping.sources.espn.schemas import is_true
from scraping.sources.espn.soccer_schemas import (
    SOCCER,
    Detail,
    SoccerCompetitor,
    SoccerEvent,
    SoccerStatus,
    SoccerVenue,
    minute_of,
)
from scraping.sources.espn.summary import SIDES
from scraping.sources.parsing import note_unrecognized

_MISSED = re.compile(r"penalty.*(?:miss|saved|no goal|blocked)", re.IGNORECASE)
_SUBSTITUTION = re.compile(r"substitut", re.IGNORECASE)
_VAR = re.compile(r"\bvar\b", re.IGNORECASE)
_SCORED = re.compile(r"scored|goal", re.IGNORECASE)
_OTHER_SIDE = {"team_a": "team_b", "team_b": "team_a"}
_LABELS = {
    "goal": "Goal",
    "penalty_goal": "Penalty goal",
    "own_goal": "Own goal",
    "yellow_card": "Yellow card",
    "red_card": "Red card",
    "substitution": "Substitution",
    "var": "VAR",
    "penalty_missed": "Penalty missed",
    "shootout_goal": "Shoot-out, scored",
    "shootout_miss": "Shoot-out, missed",
}
GOALS = frozenset({"goal", "penalty_goal", "own_goal"})
_KICKS = frozenset({"shootout_goal", "shootout_miss"})


def sides_of(event: SoccerEvent) -> dict[str, SoccerCompetitor]:
    """Returns the competitors by our names of the sides."""
    found = {SIDES.get(one.home_away, ""): one for one in event.competitions[0].competitors}
    if found.keys() != set(SIDES.values()):
        raise SchemaBreak(f"{SOCCER}: competitors of {event.id[:20]} are not one home and one away")
    return found


def goals_of(event: SoccerEvent) -> tuple[int, int]:
    """Returns the score, 0 where it is missing before the start."""
    sides = sides_of(event)
    home, away = (parsing.integer(sides[side].score) or 0 for side in ("team_a", "team_b"))
    return home, away


def state_of(
    event: SoccerEvent, events: tuple[Event, ...] = (), *, series: str = "", venue: SoccerVenue | None = None
) -> MatchState:
    """Returns the state of the match; `events` are newest first."""
    sides, stated = sides_of(event), status_of(event)
    judged, phase = soccer_schemas.status_and_phase(stated)
    has_begun = judged in (Status.LIVE, Status.COMPLETED)
    teams = Teams(team_a=_team(sides["team_a"]), team_b=_team(sides["team_b"]))
    score = Score(**{side: _side_score(one) for side, one in sides.items()}) if has_begun else Score()
    competition = event.competitions[0]
    return MatchState(
        sport=Sport.FOOTBALL,
        title=f"{teams.team_a.name} v {teams.team_b.name}",
        status=judged,
        phase=phase,
        teams=teams,
        score=score,
        clock=soccer_schemas.clock_text(stated, judged, phase),
        venue=_venue(competition.venue or venue),
        start_time=parsing.iso_moment(competition.date or event.date),
        last_event=LastEvent(type=events[0].kind, description=events[0].description) if events else None,
        result=_result(stated, judged, sides, teams, score),
        metadata=_metadata(event, series),
    )


def status_of(event: SoccerEvent) -> SoccerStatus:
    stated = event.competitions[0].status or event.status
    if stated is None:
        raise SchemaBreak(f"{SOCCER}: events[].status of {event.id[:20]} (missing)")
    return stated


def _team(competitor: SoccerCompetitor) -> Team:
    team = competitor.team
    return Team(name=parsing.plain(team.display_name, 120), short_name=parsing.plain(team.abbreviation, 24))


def _goals(competitor: SoccerCompetitor) -> int:
    goals = parsing.integer(competitor.score)
    if goals is None:
        raise SchemaBreak(f"{SOCCER}: competitors[].score is no number: {str(competitor.score)[:40]!r}")
    return goals


def _side_score(competitor: SoccerCompetitor) -> SideScore:
    """Returns goals and penalties, which the source keeps apart."""
    return SideScore(goals=_goals(competitor), penalties=parsing.integer(competitor.shootout_score))


def _venue(venue: SoccerVenue | None) -> str:
    if venue is None:
        return ""
    city = venue.address.city if venue.address else ""
    return ", ".join(filter(None, (parsing.plain(venue.full_name, 200), parsing.plain(city, 100))))


def _result(
    stated: SoccerStatus, judged: Status, sides: dict[str, SoccerCompetitor], teams: Teams, score: Score
) -> str:
    if judged is Status.ABANDONED:
        return parsing.plain(stated.type.detail, 60) or "Abandoned"
    if judged is not Status.COMPLETED:
        return ""
    pairs = [(score.team_a.goals, score.team_b.goals), (score.team_a.penalties, score.team_b.penalties)]
    goals, shootout = (sorted((a, b), reverse=True) if a is not None and b is not None else [] for a, b in pairs)
    printed = "-".join(map(str, goals))
    winner = next((getattr(teams, side).name for side, one in sides.items() if _has_won(one)), None)
    if winner is None:
        return f"Draw {printed}".strip()
    if shootout and len(set(goals)) == 1:
        return f"{winner} won {'-'.join(map(str, shootout))} on penalties after {printed}"
    return f"{winner} won {printed}".strip()


def _has_won(competitor: SoccerCompetitor) -> bool:
    """Reads the flag, which cricket has as text and football as a boolean."""
    return is_true(competitor.winner)


def _metadata(event: SoccerEvent, series: str) -> dict[str, str | int | float | None]:
    year = event.season.year if event.season else None
    found: dict[str, str | int | float | None] = {"series": series, "season": str(year) if year else ""}
    return {name: value for name, value in found.items() if value}


def events_of(details: list[Detail], sides: dict[str, str], goals: tuple[int, int]) -> tuple[Event, ...]:
    """Returns the events, newest first; `sides` are ours by the source's team id, `goals` is the score."""
    listed = [(detail, kind_of(detail), _side(detail, sides)) for detail in details]
    if goals_in(listed) != goals and goals_in(flipped := _own_goals_flipped(listed)) == goals:
        listed = flipped  # this list gives an own goal to the side of the player who scored it
    counts: Counter[tuple[str, str]] = Counter()
    ids: Counter[str] = Counter()
    found: list[Event] = []
    for detail, kind, side in listed:
        group = "goal" if kind in GOALS else "kick" if kind in _KICKS else ""
        counts[group, side] += 1
        slot = _slot(detail, kind, side, counts[group, side])
        if slot and any(slot == event.slot for event in found):
            slot = ""  # a second yellow card is the same player's red one
        identity = _id(detail, kind)
        ids[identity] += 1
        unique = identity if ids[identity] == 1 else f"{identity}:{ids[identity]}"
        found.append(_event_of(detail, kind, side, slot, unique))
    return tuple(reversed(found))


def goals_in(listed: list[tuple[Detail, str, str]]) -> tuple[int, int]:
    sides = [side for _, kind, side in listed if kind in GOALS]
    return sides.count("team_a"), sides.count("team_b")


def kind_of(detail: Detail) -> str:
    text = detail.type.text
    if detail.shootout:
        is_goal = detail.scoring_play or (bool(_SCORED.search(text)) and not _MISSED.search(text))
        return "shootout_goal" if is_goal else "shootout_miss"
    if detail.red_card:
        return "red_card"
    if detail.yellow_card:
        return "yellow_card"
    if detail.scoring_play:
        return "own_goal" if detail.own_goal else "penalty_goal" if detail.penalty_kick else "goal"
    for pattern, kind in ((_MISSED, "penalty_missed"), (_SUBSTITUTION, "substitution"), (_VAR, "var")):
        if pattern.search(text):
            return kind
    note_unrecognized("details[].type.text", text)
    return "other"


def _own_goals_flipped(listed: list[tuple[Detail, str, str]]) -> list[tuple[Detail, str, str]]:
    return [(detail, kind, _OTHER_SIDE.get(side, "") if kind == "own_goal" else side) for detail, kind, side in listed]


def _side(detail: Detail, sides: dict[str, str]) -> str:
    return sides.get(detail.team.id, "") if detail.team else ""


def _slot(detail: Detail, kind: str, side: str, number: int) -> str:
    who = _names(detail)
    if not side:
        return ""
    if kind in GOALS:
        return event_keys.goal(side, number)
    if kind in _KICKS:
        return event_keys.shootout_kick(side, number)
    if kind in ("yellow_card", "red_card"):
        return event_keys.card(side, kind.partition("_")[0], who[0]) if who else ""
    if kind == "substitution":
        return event_keys.substitution(side, who[1]) if len(who) > 1 else ""
    return ""


def _id(detail: Detail, kind: str) -> str:
    """Returns an id made of kind, team, time and player, because the source has none."""
    team = detail.team.id if detail.team else ""
    who = detail.athletes[0].id if detail.athletes else ""
    clock = detail.clock
    when = clock.display_value or ("" if clock.value is None else f"{clock.value:g}")
    return parsing.text(f"{kind}:{team}:{when}:{who or ''}", 110)


def _event_of(detail: Detail, kind: str, side: str, slot: str, identity: str) -> Event:
    who, minute = _names(detail), minute_of(detail.clock.display_value)
    found: dict[str, str | int | float | bool | None] = {"team": side} if side else {}
    if kind == "substitution":
        found |= dict(zip(("player_in", "player_out"), who, strict=False))
    elif who:
        found["player"] = who[0]
        if kind in GOALS and len(who) > 1:
            found["assist"] = who[1]
    found["class"] = parsing.plain(detail.type.text, 60)
    head = f"{_LABELS.get(kind) or parsing.plain(detail.type.text, 60)}{f' {minute}' + chr(39) if minute else ''}"
    body = " for ".join(who[:2]) if kind == "substitution" else who[0] if who else ""
    return Event(
        id=identity,
        kind=kind,
        minute=minute,
        slot=slot,
        is_critical=kind != "other",
        description=parsing.text(f"{head}: {body}" if body else head) or kind,
        detail=found,
    )


def _names(detail: Detail) -> list[str]:
    return [name for one in detail.athletes if (name := parsing.plain(one.display_name, 120))]
