"""A football match from one event of a scoreboard or the header of a summary: its state, goals, cards and kicks."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from scraping.errors import SchemaBreak
from scraping.payloads import Event, LastEvent, MatchState, Score, Side, SideScore, Sport, Status, Teams
from scraping.sources import football, parsing
from scraping.sources.broken_parts import is_broken
from scraping.sources.espn.schemas import is_true
from scraping.sources.espn.site import sides_of, team_of
from scraping.sources.espn.soccer_schemas import (
    EVENT_LISTS,
    SOCCER,
    Detail,
    SoccerCompetitor,
    SoccerEvent,
    SoccerStatus,
    SoccerVenue,
    minute_of,
    status_and_phase,
)
from scraping.sources.parsing import note_unrecognized

_MISSED = re.compile(r"penalty.*(?:miss|saved|no goal|blocked)", re.IGNORECASE)
_SCORED = re.compile(r"scored|goal", re.IGNORECASE)
_KINDS_BY_TEXT = (
    (_MISSED, "penalty_missed"),
    (re.compile(r"substitut", re.IGNORECASE), "substitution"),
    (re.compile(r"\bvar\b", re.IGNORECASE), "var"),
    (re.compile(r"\bred\b.*\bcard|second yellow", re.IGNORECASE), "red_card"),
    (re.compile(r"\byellow card", re.IGNORECASE), "yellow_card"),
)
_GOAL = re.compile(r"goal\b(?!.*(?:disallowed|cancel))|own goal|penalty\W+(?:-\s)?scored", re.IGNORECASE)
_OWN, _PENALTY = re.compile(r"\bown goal", re.IGNORECASE), re.compile(r"penalty\b", re.IGNORECASE)
# Items of the key events that are no events of ours: periods and delays.
_NO_EVENT = re.compile(r"kick.?off|half.?time|\b(?:start|end)\b|full.?time|\bdelay", re.IGNORECASE)
_OTHER_SIDE = {"team_a": "team_b", "team_b": "team_a", "": ""}
Listed = list[tuple[Detail, str, str]]  # with kind and side of each


def _sides(event: SoccerEvent) -> dict[Side, SoccerCompetitor]:
    return sides_of(event.competitions[0].competitors, f"{SOCCER}: competitors of {event.id[:20]}")


def goals_of(event: SoccerEvent) -> tuple[int, int]:
    """Returns the score, 0 where it is missing before the start."""
    home, away = (parsing.integer(one.score) or 0 for one in _sides(event).values())
    return home, away


def state_of(
    event: SoccerEvent, events: tuple[Event, ...] = (), *, series: str = "", venue: SoccerVenue | None = None
) -> MatchState:
    competition, sides = event.competitions[0], _sides(event)
    stated = competition.status or event.status
    if stated is None:
        raise SchemaBreak(f"{SOCCER}: events[].status of {event.id[:20]} (missing)")
    status, phase = status_and_phase(stated)
    was_cut_short = status is Status.ABANDONED and any(goals_of(event))  # "0" and "0" may be before the start
    has_begun = status in (Status.LIVE, Status.COMPLETED) or was_cut_short
    teams = Teams(team_a=team_of(sides["team_a"]), team_b=team_of(sides["team_b"]))
    score = Score(**{side: _side_score(one, stated) for side, one in sides.items()}) if has_begun else Score()
    if stated.is_walkover and score.team_a.goals == score.team_b.goals:
        score = Score()  # "0" and "0" say that there was no play
    result = parsing.plain(stated.detail, 60) or "Abandoned" if status is Status.ABANDONED else ""
    if status is Status.COMPLETED:
        winner = next((team_of(one).name for one in sides.values() if is_true(one.winner)), None)
        is_level = stated.is_awarded and score.team_a.goals == score.team_b.goals
        result = _award_of(stated, winner) if is_level else football.result_of(score, winner, teams)
    metadata = {"series": series, "season": str(event.year or "")}
    return MatchState(
        sport=Sport.FOOTBALL,
        title=f"{teams.team_a.name} v {teams.team_b.name}",
        status=status,
        phase=phase,
        teams=teams,
        score=score,
        clock=football.clock_text(status, phase, ending=stated.ending, minute=minute_of(stated.display_clock) or ""),
        venue=_venue(competition.venue or venue),
        start_time=parsing.iso_moment(competition.date or event.date),
        last_event=LastEvent(type=events[0].kind, description=events[0].description) if events else None,
        result=result,
        metadata={name: value for name, value in metadata.items() if value},
    )


def _award_of(stated: SoccerStatus, winner: str | None) -> str:
    name = stated.name.lower()
    return f"{winner} won ({name})" if winner else parsing.plain(stated.detail, 60) or name.capitalize()


def _side_score(competitor: SoccerCompetitor, stated: SoccerStatus) -> SideScore:
    """Returns goals and penalties, which the source keeps apart. Only an awarded match may have none."""
    goals = parsing.integer(competitor.score)
    if goals is None and not (stated.is_awarded and not competitor.score):
        path = "competitions[].competitors[].score"
        raise SchemaBreak(f"{SOCCER}: {path} is no number: {str(competitor.score)[:40]!r}", selector=path)
    return SideScore(goals=goals, penalties=parsing.integer(competitor.shootout_score))


def _venue(venue: SoccerVenue | None) -> str:
    names = (parsing.plain(venue.full_name, 200), parsing.plain(venue.city, 100)) if venue else ()
    return ", ".join(filter(None, names))


def events_of(event: SoccerEvent, key_events: Sequence[Detail] = ()) -> tuple[Event, ...]:
    """Returns the events, newest first. `key_events`: those of a summary, whose header leaves out most kinds."""
    sides: dict[str, str] = {one.team.id: side for side, one in _sides(event).items()}
    listed = _merged(event, [_judged(one, sides) for one in key_events if not _NO_EVENT.search(one.text)], sides)
    if _goals_in(listed) != goals_of(event):
        flipped = [(one, kind, _OTHER_SIDE[side] if kind == "own_goal" else side) for one, kind, side in listed]
        if _goals_in(flipped) == goals_of(event):
            listed = flipped  # this list gives an own goal to the side of the player who scored it
    unnumbered = _unnumbered(event, listed)
    counts: Counter[tuple[str, str]] = Counter()
    ids: Counter[str] = Counter()
    slots: set[str] = set()
    found: list[Event] = []
    for detail, kind, side in listed:
        group = _group(kind)
        counts[group, side] += 1
        player, player_out, *_ = [*_names(detail), "", ""]
        number = counts[group, side]
        slot = football.slot_of(kind, side, number, player=player, player_out=player_out)
        slot = "" if group in unnumbered else slot
        identity = _id(detail, kind)
        ids[identity] += 1
        unique = identity if ids[identity] == 1 else f"{identity}:{ids[identity]}"
        # a second yellow card is the same player's red one
        found.append(_event_of(detail, kind, side, "" if slot in slots else slot, unique))
        slots.add(slot)
    return tuple(reversed(found))


def _unnumbered(event: SoccerEvent, listed: Listed) -> set[str]:
    """Returns the groups that cannot be numbered, because a row before may have been left out."""
    if not any(map(is_broken, EVENT_LISTS)):
        return set()
    return {"kick"} if _goals_in(listed) == goals_of(event) else {"kick", "goal"}


def _judged(detail: Detail, sides: Mapping[str, str]) -> tuple[Detail, str, str]:
    return detail, _kind_of(detail), sides.get(detail.team_id or "", "")


def _merged(event: SoccerEvent, key_events: Listed, sides: Mapping[str, str]) -> Listed:
    """Returns each kind from the list that has more of it; the key events alone where only their goals fit."""
    details = [_judged(one, sides) for one in event.competitions[0].details or []]
    if not key_events:
        return details
    counts, other_counts = (Counter(_group(kind) for _, kind, _ in rows) for rows in (details, key_events))
    merged = [one for one in details if counts[_group(one[1])] >= other_counts[_group(one[1])]]
    merged += [one for one in key_events if counts[_group(one[1])] < other_counts[_group(one[1])]]
    scored = sum(goals_of(event))
    fits = sum(_goals_in(merged)) == scored or sum(_goals_in(key_events)) != scored
    return sorted(merged if fits else key_events, key=lambda one: one[0].at)


def _group(kind: str) -> str:
    return "goal" if kind in football.GOALS else "kick" if kind in football.KICKS else kind


def _goals_in(listed: Listed) -> tuple[int, int]:
    sides = [side for _, kind, side in listed if kind in football.GOALS]
    return sides.count("team_a"), sides.count("team_b")


def _kind_of(detail: Detail) -> str:
    text = detail.text
    if detail.shootout:
        is_goal = detail.scoring_play or (bool(_SCORED.search(text)) and not _MISSED.search(text))
        return "shootout_goal" if is_goal else "shootout_miss"
    if detail.red_card:
        return "red_card"
    if detail.yellow_card:
        return "yellow_card"
    if detail.scoring_play or (detail.scoring_play is None and _GOAL.match(text)):
        is_own, is_penalty = detail.own_goal or _OWN.search(text), detail.penalty_kick or _PENALTY.match(text)
        return "own_goal" if is_own else "penalty_goal" if is_penalty else "goal"
    kind = next((kind for pattern, kind in _KINDS_BY_TEXT if pattern.search(text)), "other")
    if kind == "other":
        note_unrecognized("details[].type.text", text)
    return kind


def _id(detail: Detail, kind: str) -> str:
    """Returns an id made of kind, team, time and player, because the source has none."""
    player = detail.athletes[0].id if detail.athletes else ""
    when = detail.clock or ("" if detail.seconds is None else f"{detail.seconds:g}")
    return parsing.text(f"{kind}:{detail.team_id or ''}:{when}:{player or ''}", 110)


def _event_of(detail: Detail, kind: str, side: str, slot: str, identity: str) -> Event:
    names, minute, text = _names(detail), minute_of(detail.clock), parsing.plain(detail.text, 60)
    found: dict[str, str | int | float | bool | None] = {"team": side} if side else {}
    roles = ("player_in", "player_out") if kind == "substitution" else ("player", "assist")
    found |= zip(roles[: 2 if kind in football.GOALS or kind == "substitution" else 1], names, strict=False)
    body = " for ".join(names[:2]) if kind == "substitution" else names[0] if names else ""
    return Event(
        id=identity,
        kind=kind,
        minute=minute,
        slot=slot,
        is_critical=kind != "other",
        description=parsing.text(football.description_of(football.LABELS.get(kind) or text, minute, body)) or kind,
        detail={**found, "class": text},
    )


def _names(detail: Detail) -> list[str]:
    return [name for one in detail.athletes if (name := parsing.plain(one.display_name, 120))]
