"""The event response: teams, status, venue and time of a match in all sports, score and clock of a football match.

The status type decides, its code refines it. An unknown type is refused: the last known state stays, and the refusal is
reported. An unknown code counts as its type does, and is recorded.
"""

from datetime import datetime

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Event, LastEvent, MatchState, Phase, Score, SideScore, Sport, Status, Team, Teams
from scraping.sources import football, parsing
from scraping.sources.parsing import note_unrecognized
from scraping.sources.sofascore import schemas
from scraping.sources.sofascore.schemas import Brief, BriefStatus, BriefTeam, FootballEvent, FootballScore

_WON_WITHOUT_PLAY = {91: "by walkover", 92: "as the other side retired"}
_BY_TYPE = {  # with the codes that have been seen; 41 and 50 have not been recorded
    "notstarted": (Status.UPCOMING, Phase.SCHEDULED, (0,)),
    "inprogress": (Status.LIVE, Phase.PLAY, (6, 7, 20, 21, 22, 31, 41, 42, 50)),
    "finished": (Status.COMPLETED, Phase.FINISHED, (91, 92, 100, 110, 120)),
    "postponed": (Status.UPCOMING, Phase.POSTPONED, (60,)),
    "canceled": (Status.ABANDONED, Phase.FINISHED, (70, 90)),
    "interrupted": (Status.LIVE, Phase.INTERRUPTED, (80,)),
    "suspended": (Status.LIVE, Phase.INTERRUPTED, (81,)),
    "willcontinue": (Status.LIVE, Phase.INTERRUPTED, (141,)),
}
_PHASE_BY_CODE = {31: Phase.HALFTIME, 41: Phase.EXTRA_TIME, 42: Phase.EXTRA_TIME, 50: Phase.PENALTIES}
_PHASE_BY_TEXT = (
    (("halftime", "half time", "pause"), Phase.HALFTIME),
    (("penalt",), Phase.PENALTIES),
    (("extra", "overtime"), Phase.EXTRA_TIME),
)
# code of the period: seconds played before, and at its end
_PERIOD_SECONDS = {6: (0, 2700), 7: (2700, 5400), 41: (5400, 6300), 42: (6300, 7200)}
_MOST_ADDED = 20  # minutes; a match without an entered end would run on
_ENDINGS = {110: "AET", 120: "AP"}


def state_of(event: FootballEvent, events: tuple[Event, ...], now: datetime) -> MatchState:
    status, phase = status_and_phase(event.status)
    teams = teams_of(event)
    score = Score(team_a=_side_score(event.homeScore, "homeScore"), team_b=_side_score(event.awayScore, "awayScore"))
    ending = _ENDINGS.get(event.status.code or 0, "FT")
    return MatchState(
        sport=Sport.FOOTBALL,
        title=title_of(event),
        status=status,
        phase=phase,
        teams=teams,
        score=score,
        clock=football.clock_text(status, phase, ending=ending, minute=_minute(event, now)),
        venue=venue_of(event),
        start_time=parsing.moment(event.startTimestamp),
        last_event=LastEvent(type=events[0].kind, description=events[0].description) if events else None,
        result=_result(event, status, teams, score),
        metadata=metadata_of(event, Sport.FOOTBALL),
    )


def goals_of(event: FootballEvent) -> tuple[int, int] | None:
    """Returns the goals of both sides; None where the score of a match in play is empty."""
    home, away = _side_score(event.homeScore, "homeScore").goals, _side_score(event.awayScore, "awayScore").goals
    has_none = home is None and away is None
    return None if has_none and event.status.type == "inprogress" else (home or 0, away or 0)


def team_of(team: BriefTeam) -> Team:
    return Team(name=parsing.text(team.name, 120), short_name=parsing.text(team.nameCode or team.shortName, 24))


def teams_of(event: Brief) -> Teams:
    return Teams(team_a=team_of(event.homeTeam), team_b=team_of(event.awayTeam))


def title_of(event: Brief) -> str:
    return parsing.text(f"{event.homeTeam.name[:120]} v {event.awayTeam.name[:120]}")


def venue_of(event: Brief) -> str:
    return ", ".join(filter(None, ((event.venue or event.stadium)[:200], event.city[:100])))


def series_of(event: Brief, sport: Sport) -> str:
    """Returns the league or cup in football, the tour in cricket, whose internationals share one "tournament"."""
    names = (event.league, event.tour) if sport is Sport.FOOTBALL else (event.tour, event.league)
    return next(filter(None, names), "")[:200]


def metadata_of(event: Brief, sport: Sport) -> dict[str, str | int | float | None]:
    found: dict[str, str | int | float | None] = {
        "series": series_of(event, sport),
        "season": (event.season_year or event.season_name)[:60],
        "round": event.round,
        "round_name": event.round_name[:60],
        "referee": event.referee[:120],
    }
    if sport is Sport.CRICKET:
        found["match_type"] = event.league[:60]
    return {name: value for name, value in found.items() if value not in (None, "")}


def _side_score(score: FootballScore, name: str) -> SideScore:
    """Returns goals by `display`, `current` (with a shoot-out's goals) or the periods, which may be all there is."""
    periods = [goals for goals in (score.period1, score.period2, score.extra1, score.extra2) if goals is not None]
    goals = score.display
    if goals is None and score.current is not None:
        goals = score.current - (score.penalties or 0)
    if goals is None and periods:
        goals = sum(periods)
    if goals is None and (score.model_fields_set or score.model_extra):
        has = ", ".join(sorted({*score.model_fields_set, *(score.model_extra or ())})[:10])
        raise SchemaBreak(f"{schemas.EVENT}: event.{name}.display (field required); it has {has}")
    return SideScore(goals=goals, penalties=score.penalties)


def winner_of(event: schemas.Event, teams: Teams) -> str | None:
    return {1: teams.team_a.name, 2: teams.team_b.name}.get(event.winnerCode or 0)


def _result(event: FootballEvent, status: Status, teams: Teams, score: Score) -> str:
    described = event.status.description[:60]
    if status is Status.ABANDONED:
        return described or "Abandoned"
    if status is not Status.COMPLETED:
        return ""
    winner = winner_of(event, teams)
    if unplayed := _WON_WITHOUT_PLAY.get(event.status.code or 0):
        return f"{winner} won {unplayed}" if winner else described
    return football.result_of(score, winner, teams)


def status_by_type(status: BriefStatus) -> tuple[Status, Phase]:
    """Returns status and phase by the status type alone, which all sports share; raises for an unknown one."""
    if not status.type:
        raise SchemaBreak("the event's status has no type")
    name = status.type.lower()
    if name not in _BY_TYPE:
        note_unrecognized("event.status.type", status.type)
        raise PayloadRejected(f"unknown status type {status.type[:40]!r}, code {status.code}")
    judged, phase, codes = _BY_TYPE[name]
    if status.code not in codes:
        note_unrecognized("event.status.code", f"{status.type} {status.code}")
    return judged, phase


def status_and_phase(status: BriefStatus) -> tuple[Status, Phase]:
    judged, phase = status_by_type(status)
    if phase is not Phase.PLAY:
        return judged, phase
    described = status.description.lower()
    by_text = (found for parts, found in _PHASE_BY_TEXT if any(part in described for part in parts))
    return judged, _PHASE_BY_CODE.get(status.code or 0) or next(by_text, phase)


def _minute(event: FootballEvent, now: datetime) -> str:
    began = parsing.moment(event.period_began)
    initial, end = event.period_initial, event.period_max
    if event.status.code in _PERIOD_SECONDS:
        first, last = _PERIOD_SECONDS[event.status.code]
        initial, end = first if initial is None else initial, last if end is None else end
    if began is None or initial is None or not 0 <= initial <= 7200:
        return ""
    elapsed = max(0, int((now - began).total_seconds()))
    minute, last = (initial + elapsed) // 60 + 1, (end or 0) // 60
    return f"{last}+{min(minute - last, _MOST_ADDED)}" if last and minute > last else str(minute)
