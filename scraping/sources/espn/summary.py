"""The summary answer: teams, innings, status, toss, place and time of a cricket match."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Event, Innings, LastEvent, MatchState, Phase, Score, SideScore, Sport, Team, Teams, Toss
from scraping.sources import parsing
from scraping.sources.espn import status
from scraping.sources.espn.answers import SUMMARY, Competition, Competitor, Linescore, Note, Summary, is_true
from scraping.sources.parsing import validated

SIDES = {"home": "team_a", "away": "team_b"}
_TOSS = re.compile(
    r"\W*(?P<winner>.{1,120}?)\s*,?\s*(?:won the toss(?:,| and)?\s*)?(?:elected|chose|opted|decided) to "
    r"(?P<decision>bat|field|bowl)",
    re.IGNORECASE,
)
_LONG = re.compile(r"\btest\b|first.?class|\bfc\b|mdm|multi.?day|\b[34].day\b", re.IGNORECASE)


def summary_of(data: Any, wanted_id: str, url: str) -> Summary:
    """The answer, checked to be about the match that was asked for."""
    answer = validated(Summary, data, schema=SUMMARY, url=url)
    if answer.header.id != wanted_id:
        raise PayloadRejected(f"the summary is about another match: {answer.header.id} instead of {wanted_id}", url=url)
    if {one.home_away for one in competition_of(answer).competitors} != set(SIDES):
        raise SchemaBreak(f"{SUMMARY}: header.competitions[0].competitors are not one home and one away", url=url)
    return answer


def competition_of(answer: Summary) -> Competition:
    return answer.header.competitions[0]


def sides_of(competition: Competition) -> dict[str, Competitor]:
    """By our own names of the sides."""
    return {SIDES[one.home_away]: one for one in competition.competitors}


def state_of(answer: Summary, events: tuple[Event, ...]) -> MatchState:
    """The unified match; `events` are newest first."""
    competition = competition_of(answer)
    sides = sides_of(competition)
    teams = Teams(team_a=_team(sides["team_a"]), team_b=_team(sides["team_b"]))
    innings = innings_of(competition)
    notes = answer.notes + competition.notes
    has_play = any(one.runs or one.wickets or one.overs != "0.0" for one in innings)
    ending = status.ending_in(competition.status, competition.note)
    judged, phase = status.judge(competition.status, ending, has_play=has_play)
    if phase is Phase.PLAY and status.has_closed(notes, innings):
        phase = Phase.STUMPS
    newest = next((event for event in events if event.ordinal is not None), None)
    return MatchState(
        sport=Sport.CRICKET,
        title=f"{teams.team_a.name} v {teams.team_b.name}",
        status=judged,
        phase=phase,
        teams=teams,
        score=Score(**{side: _latest(innings, side) for side in sides}),
        innings=innings,
        current_innings=innings[-1].number if innings else None,
        toss=toss_in(notes, teams),
        venue=_venue(answer),
        start_time=_start(competition),
        last_event=LastEvent(type=newest.kind, description=newest.description) if newest else None,
        result=parsing.text(ending, 500) if phase is Phase.FINISHED else "",
        metadata=_metadata(answer),
    )


def innings_of(competition: Competition) -> tuple[Innings, ...]:
    """In match order. A side's own are those with `isBatting`; the others mirror what the other side did."""
    is_long = _is_long(competition)
    found: dict[int, Innings] = {}
    for side, competitor in sides_of(competition).items():
        for line in competitor.linescores or ():
            if not line.is_batting:
                continue
            if line.period in found:
                raise PayloadRejected(f"both sides bat in innings {line.period}")
            found[line.period] = _innings(line, side, is_long=is_long)
        for number in _declared(competitor):
            found[number] = found[number].model_copy(update={"is_declared": True})
    return tuple(found[number] for number in sorted(found))


def overs_text(overs: float) -> str:
    """50.3 as it is; 20 and 19.6 are twenty overs."""
    done, balls = divmod(round(overs * 10), 10)
    return f"{done + balls // 6}.{balls % 6}" if balls >= 6 else f"{done}.{balls}"


def toss_in(notes: list[Note], teams: Teams) -> Toss | None:
    """ "West Indies , elected to bat first", with the blank before the comma."""
    for one in notes:
        found = _TOSS.match(parsing.plain(one.text)) if one.type == "toss" else None
        if found is not None:
            names = {team.short_name: team.name for team in (teams.team_a, teams.team_b)}
            winner = found["winner"].strip(" ,")
            return Toss(
                winner=names.get(winner, winner), decision="bat" if found["decision"].lower() == "bat" else "field"
            )
    return None


def _innings(line: Linescore, side: str, *, is_long: bool) -> Innings:
    if line.runs is None or line.wickets is None or line.overs is None:
        lacking = next(name for name in ("runs", "wickets", "overs") if getattr(line, name) is None)
        raise SchemaBreak(f"{SUMMARY}: linescores of innings {line.period} that was batted: {lacking} (missing)")
    score = parsing.plain(line.score)
    return Innings(
        number=line.period,
        team="team_a" if side == "team_a" else "team_b",
        runs=line.runs,
        wickets=line.wickets,
        overs=overs_text(line.overs),
        is_declared="declared" in parsing.plain(line.description).lower() or bool(re.search(r"\d/\d+d\b", score)),
        is_super_over=not is_long and line.period > 2,
        target=line.target or None,
    )


def _declared(competitor: Competitor) -> list[int]:
    """The side's innings that its score "421/5d & 130 (50.3 ov)" marks with a d."""
    own = [line.period for line in competitor.linescores or () if line.is_batting]
    parts = parsing.plain(competitor.score).partition("(")[0].split("&")
    if len(parts) != len(own):
        return []
    return [number for number, part in zip(sorted(own), parts, strict=True) if part.strip().endswith("d")]


def _is_long(competition: Competition) -> bool:
    """Whether a third innings is one of the match's own, and no super over."""
    if competition.limited_overs is not None:
        return not is_true(competition.limited_overs)
    return bool(_LONG.search(_match_type(competition)))


def _latest(innings: tuple[Innings, ...], side: str) -> SideScore:
    own = [one for one in innings if one.team == side]
    return SideScore(runs=own[-1].runs, wickets=own[-1].wickets, overs=own[-1].overs) if own else SideScore()


def _team(competitor: Competitor) -> Team:
    team = competitor.team
    return Team(name=parsing.plain(team.display_name, 120), short_name=parsing.plain(team.abbreviation, 24))


def _venue(answer: Summary) -> str:
    venues = (answer.game_info.venue if answer.game_info else None, competition_of(answer).venue)
    return next((parsing.plain(venue.full_name, 300) for venue in venues if venue and venue.full_name), "")


def _start(competition: Competition) -> datetime:
    start = parsing.iso_moment(competition.date)
    if start is None:
        raise SchemaBreak(f"{SUMMARY}: header.competitions[0].date is no time: {competition.date[:60]!r}")
    return start


def _match_type(competition: Competition) -> str:
    kind = competition.match_class
    return parsing.plain((kind.event_type or kind.general_class_card) if kind else "", 60)


def _metadata(answer: Summary) -> dict[str, str | int | float | None]:
    leagues = [answer.header.league, *answer.header.leagues, *answer.leagues]
    names = [parsing.plain(league.name, 200) for league in leagues if league is not None]
    competition = competition_of(answer)
    found: dict[str, str | int | float | None] = {
        "series": next(filter(None, names), ""),
        "match_type": _match_type(competition),
        "round": parsing.plain(competition.description, 60),
    }
    return {name: value for name, value in found.items() if value}
