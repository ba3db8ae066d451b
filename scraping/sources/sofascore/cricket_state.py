"""The state of a cricket match, from its event, its list of innings and its balls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from scraping.payloads import (
    Event,
    Innings,
    LastEvent,
    MatchState,
    Phase,
    Sport,
    Status,
    Teams,
    Toss,
    score_of,
)
from scraping.sources import parsing
from scraping.sources.parsing import validated
from scraping.sources.sofascore import schemas
from scraping.sources.sofascore.batting_order import decision_of
from scraping.sources.sofascore.event import metadata_of, series_of, status_by_type, team_of, title_of, venue_of
from scraping.sources.sofascore.schemas import CricketEvent

_CALLED_OFF = re.compile(r"abandon|no result|called off|cancel|washed out", re.IGNORECASE)
_RESULT = re.compile(r"\b(?:beat|defeat(?:ed)?)\b|\bwon\b(?! the toss)|\bdrawn?\b|\bawarded\b", re.IGNORECASE)
_NOT_THE_END = re.compile(r"\btoss\b|\bday \d|\bsession\b|\bneeds?\b", re.IGNORECASE)
_PHASES = (
    (re.compile(r"inn(?:ing)?s? break|end of (?:the )?inn", re.IGNORECASE), Phase.INNINGS_BREAK),
    (re.compile(r"\blunch\b|\bdinner\b", re.IGNORECASE), Phase.LUNCH),
    (re.compile(r"\btea\b", re.IGNORECASE), Phase.TEA),
    (re.compile(r"\bstumps\b|end of day|close of play", re.IGNORECASE), Phase.STUMPS),
    (re.compile(r"\bdrinks\b", re.IGNORECASE), Phase.DRINKS),
    (re.compile(r"\brain\b|\bwet\b|bad light|delay", re.IGNORECASE), Phase.RAIN),
)
_WILL_CONTINUE = "willcontinue"


def checked(event: Mapping[str, Any], url: str = "") -> CricketEvent:
    return validated(schemas.CricketEventResponse, {"event": event}, schema=schemas.EVENT, url=url).event


def check_shape(event: Mapping[str, Any], url: str = "") -> None:
    checked(event, url)


def status_and_phase(event: Mapping[str, Any]) -> tuple[Status, Phase]:
    """Checks the note for a result first: it changes before the status does."""
    judged, phase = status_by_type(event["status"])
    note = parsing.text(event.get("note"))
    if judged is Status.LIVE and result_in(note):
        return (Status.ABANDONED if _CALLED_OFF.search(note) else Status.COMPLETED), Phase.FINISHED
    if judged is Status.COMPLETED and _CALLED_OFF.search(note):
        return Status.ABANDONED, Phase.FINISHED
    if judged is not Status.LIVE:
        return judged, phase
    if event["status"]["type"] == _WILL_CONTINUE:
        return judged, Phase.STUMPS
    said = (parsing.text(event["status"].get("description"), 100), note)
    found = (phase for text in said for pattern, phase in _PHASES if pattern.search(text))
    return judged, next(found, phase)


def result_in(note: str) -> str:
    """Returns the note if it states the result. A tie may be followed by a super over: there the status decides."""
    if _CALLED_OFF.search(note) or _RESULT.search(note):
        return "" if _NOT_THE_END.search(note) else note
    return ""


def state_of(
    raw: Mapping[str, Any], event: CricketEvent, innings: Sequence[Innings], events: Sequence[Event]
) -> MatchState:
    """Returns the state of the match; `events` are newest first."""
    judged, phase = status_and_phase(raw)
    teams = Teams(team_a=team_of(raw, "homeTeam"), team_b=team_of(raw, "awayTeam"))
    last = next((event for event in events if event.kind != "dismissal"), None)
    has_begun = judged is not Status.UPCOMING
    return MatchState(
        sport=Sport.CRICKET,
        title=title_of(raw),
        status=judged,
        phase=phase,
        teams=teams,
        score=score_of(innings),
        innings=tuple(innings),
        current_innings=_current(innings, last) if has_begun else None,
        toss=_toss(event),
        venue=venue_of(parsing.mapping(raw.get("venue"))),
        start_time=parsing.moment(event.startTimestamp),
        last_event=LastEvent(type=last.kind, description=last.description) if last else None,
        result=_result(raw, event, judged, teams),
        metadata=_metadata(raw),
    )


def _current(innings: Sequence[Innings], last: Event | None) -> int | None:
    """Returns the current innings; the balls may be a second ahead of the score."""
    return max(len(innings), (last.innings or 0) if last else 0) or None


def _toss(event: CricketEvent) -> Toss | None:
    winner = (event.tossWin or "").strip()
    return Toss(winner=winner[:120], decision=decision_of(event)) if winner else None


def _result(raw: Mapping[str, Any], event: CricketEvent, judged: Status, teams: Teams) -> str:
    if judged not in (Status.COMPLETED, Status.ABANDONED):
        return ""
    note = (event.note or "").strip()
    if note:
        return parsing.text(note)
    if judged is Status.ABANDONED:
        return parsing.text(raw["status"].get("description"), 60) or "Abandoned"
    winner = {1: teams.team_a.name, 2: teams.team_b.name}.get(event.winnerCode or 0)
    return f"{winner} won" if winner else ""


def _metadata(raw: Mapping[str, Any]) -> dict[str, str | int | float | None]:
    found = metadata_of(raw)
    unique = parsing.mapping(parsing.mapping(raw.get("tournament")).get("uniqueTournament"))
    found |= {"series": series_of(raw, Sport.CRICKET), "match_type": parsing.text(unique.get("name"), 60)}
    return {name: value for name, value in found.items() if value not in (None, "")}
