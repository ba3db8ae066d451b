"""The event response of a football match: teams, score, status, clock, venue and time.

The status type decides, its code refines it. An unknown type is refused: the last known state stays, and the refusal is
reported. An unknown code counts as its type does, and is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Event, LastEvent, MatchState, Phase, Score, SideScore, Sport, Status, Team, Teams
from scraping.sources import parsing
from scraping.sources.parsing import note_unrecognized, validated
from scraping.sources.sofascore import schemas

_PERIODS = ("period1", "period2", "extra1", "extra2")
_WON_WITHOUT_PLAY = {91: "by walkover", 92: "as the other side retired"}
_BY_TYPE = {
    "notstarted": (Status.UPCOMING, Phase.SCHEDULED),
    "inprogress": (Status.LIVE, Phase.PLAY),
    "finished": (Status.COMPLETED, Phase.FINISHED),
    "postponed": (Status.UPCOMING, Phase.POSTPONED),
    "canceled": (Status.ABANDONED, Phase.FINISHED),
    "interrupted": (Status.LIVE, Phase.INTERRUPTED),
    "suspended": (Status.LIVE, Phase.INTERRUPTED),
    "willcontinue": (Status.LIVE, Phase.INTERRUPTED),
}
_SEEN = {  # codes by type; 41 and 50 have not been recorded
    "notstarted": frozenset({0}),
    "inprogress": frozenset({6, 7, 20, 21, 22, 31, 41, 42, 50}),
    "finished": frozenset({91, 92, 100, 110, 120}),
    "postponed": frozenset({60}),
    "canceled": frozenset({70, 90}),
    "interrupted": frozenset({80}),
    "suspended": frozenset({81}),
    "willcontinue": frozenset({141}),
}
HALFTIME, EXTRA_TIME, PENALTIES = 31, (41, 42), 50
_LIVE_PHASES = (
    (("halftime", "half time", "pause"), Phase.HALFTIME),
    (("penalt",), Phase.PENALTIES),
    (("extra", "overtime"), Phase.EXTRA_TIME),
)
_PERIOD_SECONDS = {
    6: (0, 2700),
    7: (2700, 5400),
    41: (5400, 6300),
    42: (6300, 7200),
}  # code: seconds played before, and at its end
_MOST_ADDED = 20  # minutes; a match without an entered end would run on
_ENDINGS = {110: "AET", 120: "AP"}


def check_shape(event: Mapping[str, Any], url: str = "") -> None:
    """Raises SchemaBreak where a required field is missing or of another type."""
    validated(schemas.FootballEventResponse, {"event": event}, schema=schemas.EVENT, url=url)


def state_of(event: Mapping[str, Any], events: tuple[Event, ...], now: datetime) -> MatchState:
    """Returns the state of the match; `events` are newest first."""
    judged, phase = status_and_phase(event["status"])
    teams = Teams(team_a=team_of(event, "homeTeam"), team_b=team_of(event, "awayTeam"))
    score = Score(team_a=_side_score(event, "homeScore"), team_b=_side_score(event, "awayScore"))
    return MatchState(
        sport=Sport.FOOTBALL,
        title=title_of(event),
        status=judged,
        phase=phase,
        teams=teams,
        score=score,
        clock=clock_text(event, judged, phase, now),
        venue=venue_of(parsing.mapping(event.get("venue"))),
        start_time=parsing.moment(event.get("startTimestamp")),
        last_event=LastEvent(type=events[0].kind, description=events[0].description) if events else None,
        result=_result(event, judged, teams, score),
        metadata=metadata_of(event),
    )


def goals_of(event: Mapping[str, Any]) -> tuple[int, int]:
    home, away = (_side_score(event, side).goals or 0 for side in ("homeScore", "awayScore"))
    return home, away


def team_of(event: Mapping[str, Any], side: str) -> Team:
    team = parsing.mapping(event.get(side))
    name = parsing.text(team.get("name"), 120)
    if not name:
        raise SchemaBreak(f"{schemas.EVENT}: event.{side}.name (empty)")
    return Team(name=name, short_name=parsing.text(team.get("nameCode") or team.get("shortName"), 24))


def series_of(event: Mapping[str, Any], sport: Sport = Sport.FOOTBALL) -> str:
    """Returns the league or cup in football, the tour in cricket, whose internationals share one "tournament"."""
    tournament = parsing.mapping(event.get("tournament"))
    names = [parsing.mapping(tournament.get("uniqueTournament")).get("name"), tournament.get("name")]
    first, second = names if sport is Sport.FOOTBALL else names[::-1]
    return parsing.text(first or second, 200)


def title_of(event: Mapping[str, Any]) -> str:
    names = (parsing.text(parsing.mapping(event.get(side)).get("name"), 120) for side in ("homeTeam", "awayTeam"))
    return parsing.text(" v ".join(names))


def sport_of(event: Mapping[str, Any]) -> str:
    """Returns the sport's slug; empty where the event has none."""
    category = parsing.mapping(parsing.mapping(event.get("tournament")).get("category"))
    team = parsing.mapping(event.get("homeTeam"))
    stated = (parsing.mapping(holder.get("sport")).get("slug") for holder in (category, team))
    return next(filter(None, (parsing.text(slug, 40) for slug in stated)), "")


def _side_score(event: Mapping[str, Any], side: str) -> SideScore:
    """Returns goals from `display`, which excludes a shoot-out's goals; `current` includes them.

    Without both, the periods are added up: a live match may have `period1` only.
    """
    score = parsing.mapping(event.get(side))
    goals, penalties = parsing.integer(score.get("display")), parsing.integer(score.get("penalties"))
    current = parsing.integer(score.get("current"))
    periods = [number for number in map(parsing.integer, map(score.get, _PERIODS)) if number is not None]
    if goals is None and current is not None:
        goals = current - (penalties or 0)
    if goals is None and periods:
        goals = sum(periods)
    if score and goals is None:
        has = ", ".join(sorted(score)[:10])
        raise SchemaBreak(f"{schemas.EVENT}: event.{side}.display (field required); it has {has}")
    return SideScore(goals=goals, penalties=penalties)


def venue_of(venue: Mapping[str, Any]) -> str:
    name = parsing.text(venue.get("name") or parsing.mapping(venue.get("stadium")).get("name"), 200)
    city = parsing.text(parsing.mapping(venue.get("city")).get("name"), 100)
    return ", ".join(filter(None, (name, city)))


def _result(event: Mapping[str, Any], judged: Status, teams: Teams, score: Score) -> str:
    if judged is Status.ABANDONED:
        return parsing.text(parsing.mapping(event.get("status")).get("description"), 60) or "Abandoned"
    if judged is not Status.COMPLETED:
        return ""
    winner = {1: teams.team_a.name, 2: teams.team_b.name}.get(parsing.integer(event.get("winnerCode")) or 0)
    pairs = [(score.team_a.goals, score.team_b.goals), (score.team_a.penalties, score.team_b.penalties)]
    goals, shootout = (sorted((a, b), reverse=True) if a is not None and b is not None else [] for a, b in pairs)
    printed = "-".join(map(str, goals))
    unplayed = _WON_WITHOUT_PLAY.get(parsing.integer(parsing.mapping(event.get("status")).get("code")) or 0)
    if unplayed:
        return f"{winner} won {unplayed}" if winner else parsing.text(event["status"].get("description"), 60)
    if winner is None:
        return f"Draw {printed}".strip()
    if shootout:
        return f"{winner} won {'-'.join(map(str, shootout))} on penalties after {printed}"
    return f"{winner} won {printed}".strip()


def metadata_of(event: Mapping[str, Any]) -> dict[str, str | int | float | None]:
    season = parsing.mapping(event.get("season"))
    round_info = parsing.mapping(event.get("roundInfo"))
    found: dict[str, str | int | float | None] = {
        "series": series_of(event),
        "season": parsing.text(season.get("year") or season.get("name"), 60),
        "round": parsing.integer(round_info.get("round")),
        "round_name": parsing.text(round_info.get("name"), 60),
        "referee": parsing.text(parsing.mapping(event.get("referee")).get("name"), 120),
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


def status_and_phase(status: Mapping[str, Any]) -> tuple[Status, Phase]:
    """Raises PayloadRejected for an unknown type: the last known state stays."""
    judged, phase = status_by_type(status)
    return judged, _live_phase(status) if phase is Phase.PLAY else phase


def status_by_type(status: Mapping[str, Any]) -> tuple[Status, Phase]:
    """Returns status and phase by the status type alone, which all sports share."""
    kind, code = parsing.text(status.get("type"), 40), parsing.integer(status.get("code"))
    if not kind:
        raise SchemaBreak(f"the event's status has no type; it has {', '.join(sorted(status)[:10]) or 'nothing'}")
    if kind not in _BY_TYPE:
        note_unrecognized("event.status.type", kind)
        raise PayloadRejected(f"unknown status type {kind!r}, code {code}")
    if code not in _SEEN[kind]:
        note_unrecognized("event.status.code", f"{kind} {code}")
    return _BY_TYPE[kind]


def _live_phase(status: Mapping[str, Any]) -> Phase:
    code = parsing.integer(status.get("code"))
    if code == HALFTIME:
        return Phase.HALFTIME
    if code in EXTRA_TIME:
        return Phase.EXTRA_TIME
    if code == PENALTIES:
        return Phase.PENALTIES
    described = parsing.text(status.get("description"), 60).lower()
    return next((phase for parts, phase in _LIVE_PHASES if any(part in described for part in parts)), Phase.PLAY)


def clock_text(event: Mapping[str, Any], judged: Status, phase: Phase, now: datetime) -> str:
    """Returns the minute being played ("37", "45+2"), HT, PEN, FT, AET or AP; empty where it is unknown."""
    code = parsing.integer(parsing.mapping(event.get("status")).get("code"))
    if judged is Status.COMPLETED:
        return _ENDINGS.get(code or 0, "FT")
    if judged is not Status.LIVE or phase is Phase.INTERRUPTED:
        return ""
    if phase is Phase.HALFTIME:
        return "HT"
    if phase is Phase.PENALTIES:
        return "PEN"
    return _minute(parsing.mapping(event.get("time")), code, now)


def _minute(time: Mapping[str, Any], code: int | None, now: datetime) -> str:
    began = parsing.moment(time.get("currentPeriodStartTimestamp"))
    initial, end = parsing.integer(time.get("initial")), parsing.integer(time.get("max"))
    if code in _PERIOD_SECONDS:
        initial = _PERIOD_SECONDS[code][0] if initial is None else initial
        end = _PERIOD_SECONDS[code][1] if end is None else end
    if began is None or initial is None or not 0 <= initial <= 7200:
        return ""
    elapsed = max(0, int((now - began).total_seconds()))
    minute, last = (initial + elapsed) // 60 + 1, (end or 0) // 60
    return f"{last}+{min(minute - last, _MOST_ADDED)}" if last and minute > last else str(minute)
