"""The match state from the texts of a scoreboard page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from scraping.errors import SchemaBreak
from scraping.payloads import (
    Event,
    Innings,
    LastEvent,
    MatchState,
    Payload,
    Phase,
    Score,
    SideScore,
    Sport,
    Status,
    Team,
    Teams,
    Toss,
)
from scraping.readings import RefInfo
from scraping.sources import parsing
from scraping.sources.cricket import ball_kind
from scraping.sources.extract import Extracted

SOURCE = "board"
STATES = {
    "upcoming": Status.UPCOMING,
    "live": Status.LIVE,
    "result": Status.COMPLETED,
    "abandoned": Status.ABANDONED,
}
_PHASES = (
    (re.compile(r"innings break", re.IGNORECASE), Phase.INNINGS_BREAK),
    (re.compile(r"\brain", re.IGNORECASE), Phase.RAIN),
    (re.compile(r"\blunch", re.IGNORECASE), Phase.LUNCH),
    (re.compile(r"\btea\b", re.IGNORECASE), Phase.TEA),
    (re.compile(r"stumps", re.IGNORECASE), Phase.STUMPS),
    (re.compile(r"drinks", re.IGNORECASE), Phase.DRINKS),
)
_TOTAL = re.compile(r"(\d{1,4})/(\d{1,2})\s*\((\d{1,3})\.(\d{1,2})\s*ov\)", re.ASCII)
_TOSS = re.compile(r"(.{1,120}?) opt to (bat|bowl|field)", re.IGNORECASE)
_CARDS = {"OUT": "dismissal", "END": "over_complete"}
_NOT_CRITICAL = frozenset({"over_complete", "other"})
_SIDES = ("team_a", "team_b")


def compose(ref: RefInfo, captured_at: datetime, found: Extracted) -> Payload:
    events = events_of(found)
    state = state_of(found, events)
    return Payload(
        source=SOURCE,
        captured_at=captured_at,
        source_event_id=ref.source_event_id,
        state=state,
        events=events,
        integrity=parsing.integrity_of(state, has_events=bool(events), fallback_selectors=found.fallbacks()),
    )


def state_of(found: Extracted, events: Sequence[Event]) -> MatchState:
    teams = Teams(
        team_a=Team(name=found.text("name_a", 120), short_name=found.text("short_a", 24)),
        team_b=Team(name=found.text("name_b", 120), short_name=found.text("short_b", 24)),
    )
    status = _status(found.text("state", 40))
    innings = _innings(found) if status is not Status.UPCOMING else ()
    latest = {one.team: SideScore(runs=one.runs, wickets=one.wickets, overs=one.overs) for one in innings}
    metadata = {"series": found.text("series", 200), "match_type": found.text("format", 40)}
    return MatchState(
        sport=Sport.CRICKET,
        title=found.text("title") or f"{teams.team_a.name} v {teams.team_b.name}",
        status=status,
        phase=_phase(status, found.text("note")),
        teams=teams,
        score=Score(team_a=latest.get("team_a", SideScore()), team_b=latest.get("team_b", SideScore())),
        innings=innings,
        current_innings=len(innings) or None,
        toss=_toss(found.text("toss"), teams),
        venue=found.text("venue"),
        start_time=parsing.iso_moment(found.text("start", 40)),
        last_event=_last(events),
        result=found.text("outcome"),
        metadata={name: value for name, value in (metadata | _crease(found, status)).items() if value},
    )


def events_of(found: Extracted) -> tuple[Event, ...]:
    """Returns the balls on the page, newest first, without those that have no id."""
    rows = [row for row in found.rows("balls") if row.get("id")]
    return tuple({row["id"]: _event(row) for row in rows}.values())


def _event(row: dict[str, str]) -> Event:
    code, number = row.get("code", ""), parsing.integer(row.get("number"))
    kind, runs = (_CARDS[code], None) if code in _CARDS else ball_kind(code)
    return Event(
        id=row["id"][:120],
        kind=kind,
        innings=parsing.integer(row.get("innings")),
        over=row.get("over", "")[:10] or None,
        ordinal=number if number is not None and number >= 1 else None,
        runs=runs,
        is_critical=kind not in _NOT_CRITICAL,
        description=row.get("said", ""),
        happened_at=parsing.moment(row["id"], per_second=1000),
        detail={"ball": code} if code not in _CARDS else {},
    )


def _last(events: Sequence[Event]) -> LastEvent | None:
    if not events:
        return None
    newest = events[0]
    return LastEvent(type=newest.kind, description=newest.description, timestamp=newest.happened_at)


def _status(text: str) -> Status:
    try:
        return STATES[text.lower()]
    except KeyError:
        raise SchemaBreak(f"the board's state is {text[:40]!r}; known are: {', '.join(STATES)}") from None


def _phase(status: Status, note: str) -> Phase:
    if status is Status.UPCOMING:
        return Phase.SCHEDULED
    if status is not Status.LIVE:
        return Phase.FINISHED
    return next((phase for pattern, phase in _PHASES if pattern.search(note)), Phase.PLAY)


def _innings(found: Extracted) -> tuple[Innings, ...]:
    """Returns the innings; the side that bats first comes first."""
    totals = [
        (side, text) for side, name in zip(_SIDES, ("total_a", "total_b"), strict=True) if (text := found.text(name))
    ]
    return tuple(_one_innings(number, side, text) for number, (side, text) in enumerate(totals, start=1))


def _one_innings(number: int, side: str, text: str) -> Innings:
    total = _TOTAL.fullmatch(text)
    if total is None:
        raise SchemaBreak(f"the total of {side} is {text[:40]!r}, not like 123/4 (14.2 ov)")
    runs, wickets, overs, balls = (int(part) for part in total.groups())
    return Innings.model_validate(
        {"number": number, "team": side, "runs": runs, "wickets": wickets, "overs": f"{overs}.{balls}"}
    )


def _toss(sentence: str, teams: Teams) -> Toss | None:
    found = _TOSS.search(sentence)
    if found is None:
        return None
    full = {team.short_name: team.name for team in (teams.team_a, teams.team_b)}
    decision = "bat" if found[2].lower() == "bat" else "field"
    return Toss.model_validate({"winner": full.get(found[1], found[1]), "decision": decision})


def _crease(found: Extracted, status: Status) -> dict[str, str]:
    """Returns the printed names of batters and bowler."""
    if status is not Status.LIVE:
        return {}
    return {"batters": "; ".join(found.texts("batters")[:2])[:200], "bowler": found.text("bowler", 120)}
