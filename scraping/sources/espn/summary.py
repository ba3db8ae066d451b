"""The summary response: teams, innings, status, toss, venue and time of a cricket match."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import (
    Event,
    Innings,
    LastEvent,
    MatchState,
    Phase,
    Sport,
    Status,
    Team,
    Teams,
    Toss,
    score_of,
)
from scraping.sources import parsing
from scraping.sources.espn.schemas import (
    SUMMARY,
    Competition,
    Competitor,
    Linescore,
    MatchStatus,
    Note,
    Summary,
    is_true,
)
from scraping.sources.parsing import note_unrecognized, validated

SIDES = {"home": "team_a", "away": "team_b"}
_TOSS = re.compile(
    r"\W*(?P<winner>.{1,120}?)\s*,?\s*(?:won the toss(?:,| and)?\s*)?(?:elected|chose|opted|decided) to "
    r"(?P<decision>bat|field|bowl)",
    re.IGNORECASE,
)
_LONG = re.compile(r"\btest\b|first.?class|\bfc\b|mdm|multi.?day|\b[34].day\b", re.IGNORECASE)
_CALLED_OFF = re.compile(r"abandon|no result|called off|cancel+ed|washed out", re.IGNORECASE)
_DECIDED = re.compile(r"\bwon\b|\btied\b|\bdrawn\b|match draw|walkover|forfeit|awarded", re.IGNORECASE)
_POSTPONED = re.compile(r"postpone|reschedul", re.IGNORECASE)
_ONE_DAY = re.compile(r"\bday \d|for the day|day's play|\bsession\b", re.IGNORECASE)
_TOSS_TEXT = re.compile(r"\btoss\b|elected to|chose to", re.IGNORECASE)
_SUPER_OVER = re.compile(r"super over", re.IGNORECASE)
_WON_TEXT = re.compile(r"\bwon\b", re.IGNORECASE)
_PHASES = (
    (re.compile(r"inn(?:ing)?s? break|end of innings|between innings", re.IGNORECASE), Phase.INNINGS_BREAK),
    (re.compile(r"\blunch\b|\bdinner\b|\bsupper\b", re.IGNORECASE), Phase.LUNCH),
    (re.compile(r"\btea\b", re.IGNORECASE), Phase.TEA),
    (re.compile(r"\bstumps\b|end of day|close of play|day \d+ ends?\b", re.IGNORECASE), Phase.STUMPS),
    (re.compile(r"\bdrinks\b|time-?\s?out", re.IGNORECASE), Phase.DRINKS),
    (re.compile(r"\brain|\bwet\b|bad light|delay|\bweather\b|outfield|dust|fog", re.IGNORECASE), Phase.RAIN),
    (re.compile(r"interrupt|suspend|play stopped|play halted", re.IGNORECASE), Phase.INTERRUPTED),
)
_PLAY_TEXTS = re.compile(
    r"live|in progress|\d\w\w innings?|scheduled|result|final|complete[d]?|full time|super over|play|toss|"
    r"match yet to begin|status_\w+",
    re.IGNORECASE,
)
_CLOSE_OF_PLAY = re.compile(
    r"(?P<runs>\d{1,4})(?:/(?P<wickets>\d{1,2}))?d? \((?:[^()]*, )?(?P<overs>\d{1,3}(?:\.\d)?) ov\)"
)
_BY_STATE = {
    "pre": (Status.UPCOMING, Phase.SCHEDULED),
    "in": (Status.LIVE, Phase.PLAY),
    "post": (Status.COMPLETED, Phase.FINISHED),
}


def summary_of(data: Any, wanted_id: str, url: str) -> Summary:
    """Returns the summary; raises PayloadRejected where it is about another match."""
    response = validated(Summary, data, schema=SUMMARY, url=url)
    if response.header.id != wanted_id:
        raise PayloadRejected(
            f"the summary is about another match: {response.header.id} instead of {wanted_id}", url=url
        )
    if {one.home_away for one in competition_of(response).competitors} != set(SIDES):
        raise SchemaBreak(f"{SUMMARY}: header.competitions[0].competitors are not one home and one away", url=url)
    return response


def competition_of(response: Summary) -> Competition:
    return response.header.competitions[0]


def sides_of(competition: Competition) -> dict[str, Competitor]:
    """Returns the competitors by our names of the sides."""
    return {SIDES[one.home_away]: one for one in competition.competitors}


def state_of(response: Summary, events: tuple[Event, ...]) -> MatchState:
    """Returns the state of the match; `events` are newest first."""
    competition = competition_of(response)
    sides = sides_of(competition)
    teams = Teams(team_a=_team(sides["team_a"]), team_b=_team(sides["team_b"]))
    innings = innings_of(competition)
    notes = response.notes + competition.notes
    has_play = any(one.runs or one.wickets or one.overs != "0.0" for one in innings)
    ending = ending_in(competition.status, competition.note)
    judged, phase = status_and_phase(competition.status, ending, has_play=has_play)
    if phase is Phase.PLAY and is_after_close_of_play(notes, innings):
        phase = Phase.STUMPS
    newest = next((event for event in events if event.ordinal is not None), None)
    return MatchState(
        sport=Sport.CRICKET,
        title=f"{teams.team_a.name} v {teams.team_b.name}",
        status=judged,
        phase=phase,
        teams=teams,
        score=score_of(innings, with_super_overs=True),
        innings=innings,
        current_innings=innings[-1].number if innings else None,
        toss=toss_in(notes, teams),
        venue=_venue(response),
        start_time=_start(competition),
        last_event=LastEvent(type=newest.kind, description=newest.description) if newest else None,
        result=parsing.text(ending, 500) if phase is Phase.FINISHED else "",
        metadata=_metadata(response),
    )


def innings_of(competition: Competition) -> tuple[Innings, ...]:
    """Returns the innings in match order, from the linescores with `isBatting`; the others mirror the other side's."""
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
    """Returns 50.3 as it is; 20 and 19.6 are twenty overs."""
    done, balls = divmod(round(overs * 10), 10)
    return f"{done + balls // 6}.{balls % 6}" if balls >= 6 else f"{done}.{balls}"


def toss_in(notes: list[Note], teams: Teams) -> Toss | None:
    """Reads the toss from a note like "West Indies , elected to bat first"."""
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
    """Returns the side's innings that its score marks with a d: "421/5d & 130 (50.3 ov)"."""
    own = [line.period for line in competitor.linescores or () if line.is_batting]
    parts = parsing.plain(competitor.score).partition("(")[0].split("&")
    if len(parts) != len(own):
        return []
    return [number for number, part in zip(sorted(own), parts, strict=True) if part.strip().endswith("d")]


def _is_long(competition: Competition) -> bool:
    """Returns whether a third innings belongs to the match and is no super over."""
    if competition.limited_overs is not None:
        return not is_true(competition.limited_overs)
    return bool(_LONG.search(_match_type(competition)))


def _team(competitor: Competitor) -> Team:
    team = competitor.team
    return Team(name=parsing.plain(team.display_name, 120), short_name=parsing.plain(team.abbreviation, 24))


def _venue(response: Summary) -> str:
    venues = (response.game_info.venue if response.game_info else None, competition_of(response).venue)
    return next((parsing.plain(venue.full_name, 300) for venue in venues if venue and venue.full_name), "")


def _start(competition: Competition) -> datetime:
    start = parsing.iso_moment(competition.date)
    if start is None:
        raise SchemaBreak(f"{SUMMARY}: header.competitions[0].date is no time: {competition.date[:60]!r}")
    return start


def _match_type(competition: Competition) -> str:
    kind = competition.match_class
    return parsing.plain((kind.event_type or kind.general_class_card) if kind else "", 60)


def _metadata(response: Summary) -> dict[str, str | int | float | None]:
    leagues = [response.header.league, *response.header.leagues, *response.leagues]
    names = [parsing.plain(league.name, 200) for league in leagues if league is not None]
    competition = competition_of(response)
    found: dict[str, str | int | float | None] = {
        "series": next(filter(None, names), ""),
        "match_type": _match_type(competition),
        "round": parsing.plain(competition.description, 60),
    }
    return {name: value for name, value in found.items() if value}


def ending_in(status: MatchStatus, note: str | None) -> str:
    """Returns the sentence that states the result, which may come before the state changes."""
    sentences = (parsing.plain(text) for text in (status.summary, status.type.detail, note, status.type.description))
    return next((sentence for sentence in sentences if _is_ending(sentence)), "")


def status_and_phase(status: MatchStatus, ending: str, *, has_play: bool) -> tuple[Status, Phase]:
    """Returns status and phase; a postponed match has state "post", is not completed and is still upcoming."""
    texts = [parsing.plain(text) for text in (status.type.description, status.type.detail, status.type.name)]
    state = status.type.state
    if state not in _BY_STATE:
        note_unrecognized("header.competitions[0].status.type.state", state)
        raise PayloadRejected(f"unknown state {state[:40]!r} of a match")
    if not has_play and not is_true(status.type.completed) and any(map(_POSTPONED.search, texts)):
        return Status.UPCOMING, Phase.POSTPONED
    if ending:
        return (Status.ABANDONED if _CALLED_OFF.search(ending) else Status.COMPLETED), Phase.FINISHED
    judged, phase = _BY_STATE[state]
    if judged is not Status.LIVE:
        return judged, phase
    sentences = (*texts[:2], parsing.plain(status.summary))
    return judged, next(filter(None, map(_phase_in, sentences)), None) or _play_phase(texts[0])


def is_after_close_of_play(notes: list[Note], innings: tuple[Innings, ...]) -> bool:
    """Returns whether the note of the last close of play has the current score: no ball has been bowled since."""
    closes = [parsing.plain(one.text) for one in notes if one.type == "closeofplay"]
    if not closes or not innings:
        return False
    found = _CLOSE_OF_PLAY.search(closes[-1])
    if found is None or "end of match" in closes[-1]:
        return False
    last = innings[-1]
    return (found["runs"], int(found["wickets"] or 10), _overs_with_balls(found["overs"])) == (
        str(last.runs),
        last.wickets,
        last.overs,
    )


def _is_ending(sentence: str) -> bool:
    if _CALLED_OFF.search(sentence):
        return not _ONE_DAY.search(sentence)  # a day of a long match that is washed out is not its end
    if _TOSS_TEXT.search(sentence) or not _DECIDED.search(sentence):
        return False
    return bool(_WON_TEXT.search(sentence)) or not _SUPER_OVER.search(sentence)  # a tie that a super over follows


def _phase_in(sentence: str) -> Phase | None:
    return next((phase for pattern, phase in _PHASES if pattern.search(sentence)), None)


def _play_phase(description: str) -> Phase:
    if description and not _PLAY_TEXTS.fullmatch(description):
        note_unrecognized("header.competitions[0].status.type.description", description)
    return Phase.PLAY


def _overs_with_balls(text: str) -> str:
    return text if "." in text else f"{text}.0"
