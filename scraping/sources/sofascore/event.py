"""The event answer: teams, score, status, place and time of a match."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scraping.errors import SchemaBreak
from scraping.payloads import Event, LastEvent, MatchState, Score, SideScore, Sport, Status, Team, Teams
from scraping.sources import parsing
from scraping.sources.parsing import validated
from scraping.sources.sofascore import schemas, status

_PERIODS = ("period1", "period2", "extra1", "extra2")
_WON_WITHOUT_PLAY = {91: "by walkover", 92: "as the other side retired"}


def check_shape(event: Mapping[str, Any], url: str = "") -> None:
    """SchemaBreak where a field that we live on is gone or of another type."""
    validated(schemas.FootballEventResponse, {"event": event}, schema=schemas.EVENT, url=url)


def state_of(event: Mapping[str, Any], events: tuple[Event, ...], now: datetime) -> MatchState:
    """The unified match; `events` are newest first."""
    judged, phase = status.status_and_phase(event["status"])
    teams = Teams(team_a=team_of(event, "homeTeam"), team_b=team_of(event, "awayTeam"))
    score = Score(team_a=_side_score(event, "homeScore"), team_b=_side_score(event, "awayScore"))
    return MatchState(
        sport=Sport.FOOTBALL,
        title=title_of(event),
        status=judged,
        phase=phase,
        teams=teams,
        score=score,
        clock=status.clock(event, judged, phase, now),
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
    """In football the league or cup; in cricket the tour, since all its internationals share one "tournament"."""
    tournament = parsing.mapping(event.get("tournament"))
    names = [parsing.mapping(tournament.get("uniqueTournament")).get("name"), tournament.get("name")]
    first, second = names if sport is Sport.FOOTBALL else names[::-1]
    return parsing.text(first or second, 200)


def title_of(event: Mapping[str, Any]) -> str:
    names = (parsing.text(parsing.mapping(event.get(side)).get("name"), 120) for side in ("homeTeam", "awayTeam"))
    return parsing.text(" v ".join(names))


def sport_of(event: Mapping[str, Any]) -> str:
    """The sport's slug; empty where the event does not say."""
    category = parsing.mapping(parsing.mapping(event.get("tournament")).get("category"))
    team = parsing.mapping(event.get("homeTeam"))
    stated = (parsing.mapping(holder.get("sport")).get("slug") for holder in (category, team))
    return next(filter(None, (parsing.text(slug, 40) for slug in stated)), "")


def _side_score(event: Mapping[str, Any], side: str) -> SideScore:
    """`current` counts a shoot-out's goals in, `display` does not: goals are the latter, the shoot-out stands apart.

    Where neither is given, the periods are added up: a live match may have `period1` and nothing else.
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
