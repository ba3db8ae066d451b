"""The state of a cricket match, from its event, its list of innings and its balls."""

from __future__ import annotations

from collections.abc import Sequence

from scraping.payloads import Event, Innings, LastEvent, MatchState, Phase, Sport, Status, Toss, score_of
from scraping.sources import cricket, parsing
from scraping.sources.sofascore.batting_order import decision_of
from scraping.sources.sofascore.event import metadata_of, status_by_type, teams_of, title_of, venue_of, winner_of
from scraping.sources.sofascore.schemas import BriefStatus, CricketEvent


def status_and_phase(status: BriefStatus, note: str = "") -> tuple[Status, Phase]:
    """Checks the note for a result first: it changes before the status does, except for a tie, which is not final."""
    judged, phase = status_by_type(status)
    is_ended = judged is Status.COMPLETED or (
        judged is Status.LIVE and bool(cricket.result_in(note, is_tie_final=False))
    )
    if is_ended:
        return (Status.ABANDONED if cricket.is_called_off(note) else Status.COMPLETED), Phase.FINISHED
    if judged is not Status.LIVE:
        return judged, phase
    if status.type == "willcontinue":
        return judged, Phase.STUMPS
    said = filter(None, (cricket.phase_in(status.description), cricket.phase_in(note)))
    return judged, next(said, phase)


def state_of(event: CricketEvent, innings: Sequence[Innings], events: Sequence[Event]) -> MatchState:
    """Returns the state of the match; `events` are newest first."""
    note = parsing.text(event.note)
    status, phase = status_and_phase(event.status, note)
    teams = teams_of(event)
    last = next((event for event in events if event.kind != "dismissal"), None)
    # the balls may be a second ahead of the score
    current = max(len(innings), (last.innings or 0) if last else 0) or None
    winner = (event.tossWin or "").strip()
    result = ""
    if status is Status.ABANDONED:
        result = note or event.status.description[:60] or "Abandoned"
    elif status is Status.COMPLETED:
        won = winner_of(event, teams)
        result = note or (f"{won} won" if won else "")
    return MatchState(
        sport=Sport.CRICKET,
        title=title_of(event),
        status=status,
        phase=phase,
        teams=teams,
        score=score_of(innings),
        innings=tuple(innings),
        current_innings=None if status is Status.UPCOMING else current,
        toss=Toss(winner=winner[:120], decision=decision_of(event)) if winner else None,
        venue=venue_of(event),
        start_time=parsing.moment(event.startTimestamp),
        last_event=LastEvent(type=last.kind, description=last.description) if last else None,
        result=result,
        metadata=metadata_of(event, Sport.CRICKET),
    )
