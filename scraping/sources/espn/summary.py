"""The summary response: teams, innings, status, toss, venue, time and line-ups of a cricket match."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import (
    STARTERS,
    Event,
    Innings,
    Lineup,
    LineupPlayer,
    MatchState,
    Phase,
    Side,
    Sport,
    Status,
    Teams,
    score_of,
)
from scraping.sources import broken_parts, cricket, parsing
from scraping.sources.broken_parts import is_broken
from scraping.sources.espn import schemas
from scraping.sources.espn.site import sides_of, team_of
from scraping.sources.parsing import note_unrecognized, validated

_COMPETITORS = f"{schemas.SUMMARY}: header.competitions[0].competitors"
_LONG = re.compile(r"\btest\b|first.?class|\bfc\b|mdm|multi.?day|\b[34].day\b", re.IGNORECASE)
_PLAY_TEXTS = re.compile(
    r"live|in progress|\d\w\w innings?|scheduled|result|final|complete[d]?|full time|super over|play|toss|"
    r"match yet to begin|status_\w+",
    re.IGNORECASE | re.ASCII,
)
_CLOSE_OF_PLAY = re.compile(
    r"(?P<runs>\d{1,4})(?:/(?P<wickets>\d{1,2}))?d? \((?:[^()]*, )?(?P<overs>\d{1,3}(?:\.\d)?) ov\)",
    re.ASCII,
)
_DECLARED = re.compile(r"\d/\d+d\b", re.ASCII)
_BY_STATE = {
    "pre": (Status.UPCOMING, Phase.SCHEDULED),
    "in": (Status.LIVE, Phase.PLAY),
    "post": (Status.COMPLETED, Phase.FINISHED),
}


def summary_of(data: Any, wanted_id: str, url: str) -> schemas.Summary:
    """Returns the summary; raises PayloadRejected where it is about another match."""
    response = validated(schemas.Summary, data, schema=schemas.SUMMARY, url=url, needed=schemas.SUMMARY_NEEDS)
    parsing.refuse_another("the summary is", response.header.id, wanted_id, url)
    return response


def state_of(response: schemas.Summary, events: Sequence[Event]) -> MatchState:
    competition = response.header.competitions[0]
    team_a, team_b = map(team_of, sides_of(competition.competitors, _COMPETITORS).values())
    teams = Teams(team_a=team_a, team_b=team_b)
    innings = innings_of(competition)
    notes = [*(response.notes or ()), *(competition.notes or ())]
    ending = ending_in(competition)
    status, phase = status_and_phase(competition.status, ending, has_play=parsing.has_play(innings))
    if phase is Phase.PLAY and _is_after_close_of_play(notes, innings):
        phase = Phase.STUMPS
    leagues = [response.header.league, *(response.header.leagues or ()), *(response.leagues or ())]
    series = (parsing.plain(league.name, 200) for league in leagues if league is not None)
    tosses = (cricket.toss_in(parsing.plain(one.text), (team_a, team_b)) for one in notes if one.type == "toss")
    metadata = {
        "series": next(filter(None, series), ""),
        "match_type": _match_type(competition),
        "round": parsing.plain(competition.description, 60),
    }
    return MatchState(
        sport=Sport.CRICKET,
        title=f"{team_a.name} v {team_b.name}",
        status=status,
        phase=phase,
        teams=teams,
        score=score_of(innings, with_super_overs=True),
        innings=innings,
        current_innings=innings[-1].number if innings else None,
        toss=next(filter(None, tosses), None),
        venue=parsing.plain(response.venue or competition.venue, 300),
        start_time=_start_of(competition.date),
        last_event=cricket.last_event_of(events),
        result=parsing.text(ending, 500) if phase is Phase.FINISHED else "",
        metadata={name: value for name, value in metadata.items() if value},
    )


def _start_of(date: str | None) -> datetime | None:
    start = parsing.iso_moment(date)
    if start is None and date is not None:
        broken_parts.note("header.competitions[].date", "Input should be a time")
    return start


def innings_of(competition: schemas.Competition) -> tuple[Innings, ...]:
    """Returns the innings in match order, from the linescores with `isBatting`; the others mirror the other side's."""
    found: dict[int, Innings] = {}
    for side, competitor in sides_of(competition.competitors, _COMPETITORS).items():
        declared = _declared(competitor)
        for line in competitor.linescores or ():
            if not line.is_batting:
                continue
            if line.period in found:
                raise PayloadRejected(f"both sides bat in innings {line.period}")
            innings = _innings(line, side, is_long=_is_long(competition), per_over=balls_per_over(competition))
            found[line.period] = (
                innings.model_copy(update={"is_declared": True}) if line.period in declared else innings
            )
    _refuse_lost_innings(competition, found)
    return tuple(found[number] for number in sorted(found))


def _refuse_lost_innings(competition: schemas.Competition, found: Collection[int]) -> None:
    """Raises SchemaBreak where an innings was batted, by other figures, and its own linescore cannot be read."""
    if not is_broken("linescores"):
        return
    sides = [(parsing.plain(one.score).partition("(")[0], one.linescores or ()) for one in competition.competitors]
    played = {line.period for _, lines in sides for line in lines if line.overs}
    printed = sum(bool(part.strip()) for score, _ in sides for part in score.split("&"))
    if not played <= set(found) or printed > len(found):
        raise SchemaBreak(f"{_COMPETITORS}[].linescores: the score of an innings cannot be read")


def fallen_in(response: schemas.Summary) -> cricket.Fallen:
    """Returns player and manner of each wicket, where the linescores have the fall of wickets."""
    lines = [line for one in response.header.competitions[0].competitors for line in one.linescores or ()]
    return {
        (line.period, fall.number): (parsing.plain(fall.player, 120), parsing.plain(fall.manner, 200))
        for line in lines
        if line.is_batting
        for fall in line.falls or ()
    }


def _innings(line: schemas.Linescore, side: Side, *, is_long: bool, per_over: int) -> Innings:
    if line.runs is None or line.wickets is None or line.overs is None:
        lacking = next(name for name in ("runs", "wickets", "overs") if getattr(line, name) is None)
        raise SchemaBreak(
            f"{schemas.SUMMARY}: linescores of innings {line.period} that was batted: {lacking} (missing)"
        )
    return Innings(
        number=line.period,
        team=side,
        runs=line.runs,
        wickets=line.wickets,
        overs=cricket.overs_text(line.overs, per_over),
        is_declared="declared" in parsing.plain(line.description).lower()
        or bool(_DECLARED.search(parsing.plain(line.score))),
        is_super_over=not is_long and line.period > 2,
        target=line.target or None,
    )


def _declared(competitor: schemas.Competitor) -> list[int]:
    """Returns the side's innings that its score marks with a d: "421/5d & 130 (50.3 ov)"."""
    own = [line.period for line in competitor.linescores or () if line.is_batting]
    parts = parsing.plain(competitor.score).partition("(")[0].split("&")
    if len(parts) != len(own):
        return []
    return [number for number, part in zip(sorted(own), parts, strict=True) if part.strip().endswith("d")]


def _is_long(competition: schemas.Competition) -> bool:
    """Returns whether a third innings belongs to the match and is no super over."""
    if competition.limited_overs is not None:
        return not schemas.is_true(competition.limited_overs)
    return bool(_LONG.search(_match_type(competition)))


def balls_per_over(competition: schemas.Competition) -> int:
    return cricket.balls_per_over(competition.event_type, competition.general_class_card)


def _match_type(competition: schemas.Competition) -> str:
    return parsing.plain(competition.event_type or competition.general_class_card, 60)


def ending_in(competition: schemas.Competition) -> str:
    """Returns the sentence that states the result, which may come before the state changes."""
    status = competition.status
    texts = (status.summary, status.detail, competition.note, status.description)
    return next(filter(None, (cricket.result_in(parsing.plain(text)) for text in texts)), "")


def status_and_phase(status: schemas.MatchStatus, ending: str, *, has_play: bool) -> tuple[Status, Phase]:
    """Returns status and phase; a postponed match has state "post", is not completed and is still upcoming."""
    texts = [parsing.plain(text) for text in (status.description, status.detail, status.name)]
    state = status.state.lower()
    if state not in _BY_STATE:
        note_unrecognized("header.competitions[0].status.type.state", state)
        raise PayloadRejected(f"unknown state {state[:40]!r} of a match")
    if not has_play and not schemas.is_true(status.completed) and any(map(cricket.POSTPONED.search, texts)):
        return Status.UPCOMING, Phase.POSTPONED
    if ending:
        return (Status.ABANDONED if cricket.is_called_off(ending) else Status.COMPLETED), Phase.FINISHED
    judged, phase = _BY_STATE[state]
    if judged is not Status.LIVE:
        return judged, phase
    sentences = (*texts[:2], parsing.plain(status.summary))
    found = next(filter(None, map(cricket.phase_in, sentences)), None)
    if found is None and texts[0] and not _PLAY_TEXTS.fullmatch(texts[0]):
        note_unrecognized("header.competitions[0].status.type.description", texts[0])
    return judged, found or phase


def _is_after_close_of_play(notes: Sequence[schemas.Note], innings: tuple[Innings, ...]) -> bool:
    """Returns whether the note of the last close of play has the current score: no ball has been bowled since."""
    closes = [parsing.plain(one.text) for one in notes if one.type == "closeofplay"]
    found = _CLOSE_OF_PLAY.search(closes[-1]) if closes and innings else None
    if found is None or "end of match" in closes[-1]:
        return False
    last = innings[-1]
    closed = int(found["runs"]), int(found["wickets"] or cricket.ALL_OUT), cricket.overs_text(float(found["overs"]))
    return closed == (last.runs, last.wickets, last.overs)


def lineups_of(data: Any, wanted_id: str, url: str) -> tuple[datetime | None, tuple[Lineup, ...]]:
    """Returns kick-off and line-ups. Eleven starters, or more with substitutes, are confirmed: there is no flag."""
    response = validated(schemas.Rosters, data, schema=schemas.ROSTERS, url=url, needed=schemas.ROSTERS_NEED)
    parsing.refuse_another("the rosters are", response.header.id, wanted_id, url)
    competition = response.header.competitions[0]
    sides = {one.team.id: side for side, one in sides_of(competition.competitors, _COMPETITORS).items()}
    found = []
    for roster in response.rosters or ():
        if not roster.roster:
            continue
        if roster.team_id not in sides:
            raise PayloadRejected(f"the rosters are about another match: team {roster.team_id[:40]}")
        players = tuple({entry.player_id: _player(entry) for entry in roster.roster}.values())
        is_confirmed = sum(player.is_starter for player in players) >= STARTERS
        found.append(Lineup(side=sides[roster.team_id], is_confirmed=is_confirmed, players=players))
    return _start_of(competition.date), tuple(found)


def _player(entry: schemas.RosterEntry) -> LineupPlayer:
    return LineupPlayer(
        player_id=parsing.text(entry.player_id, 40),
        name=parsing.plain(entry.name, 120),
        position=parsing.plain(entry.position_code or entry.position, 20),
        shirt=parsing.text(entry.jersey, 6),
        is_starter=schemas.is_true(entry.starter),
        is_captain=schemas.is_true(entry.captain),
    )
