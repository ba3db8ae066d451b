"""One event of a scoreboard, or the header of a summary, as a football match."""

from __future__ import annotations

from scraping.errors import SchemaBreak
from scraping.payloads import Event, LastEvent, MatchState, Score, SideScore, Sport, Status, Team, Teams
from scraping.sources import parsing
from scraping.sources.espn import soccer_status
from scraping.sources.espn.answers import is_true
from scraping.sources.espn.soccer_answers import SOCCER, SoccerCompetitor, SoccerEvent, SoccerStatus, SoccerVenue
from scraping.sources.espn.summary import SIDES


def sides_of(event: SoccerEvent) -> dict[str, SoccerCompetitor]:
    """By our own names of the sides."""
    found = {SIDES.get(one.home_away, ""): one for one in event.competitions[0].competitors}
    if found.keys() != set(SIDES.values()):
        raise SchemaBreak(f"{SOCCER}: competitors of {event.id[:20]} are not one home and one away")
    return found


def goals_of(event: SoccerEvent) -> tuple[int, int]:
    """The score; a match that has not begun may have none."""
    sides = sides_of(event)
    home, away = (parsing.integer(sides[side].score) or 0 for side in ("team_a", "team_b"))
    return home, away


def state_of(
    event: SoccerEvent, events: tuple[Event, ...] = (), *, series: str = "", venue: SoccerVenue | None = None
) -> MatchState:
    """The unified match; `events` are newest first."""
    sides, stated = sides_of(event), status_of(event)
    judged, phase = soccer_status.judge(stated)
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
        clock=soccer_status.clock(stated, judged, phase),
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
    """The shoot-out stands apart from the goals here already."""
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
    """Cricket writes it as text, football as a flag."""
    return is_true(competitor.winner)


def _metadata(event: SoccerEvent, series: str) -> dict[str, str | int | float | None]:
    year = event.season.year if event.season else None
    found: dict[str, str | int | float | None] = {"series": series, "season": str(year) if year else ""}
    return {name: value for name, value in found.items() if value}
