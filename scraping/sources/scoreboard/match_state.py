"""The match state from the texts of a scoreboard page."""

import re
from collections.abc import Sequence

from pydantic import ValidationError

from scraping.errors import SchemaBreak
from scraping.payloads import (
    Event,
    Innings,
    MatchState,
    Phase,
    Sport,
    Status,
    Team,
    Teams,
    score_of,
)
from scraping.sources import broken_parts, cricket, parsing
from scraping.sources.extract import Extracted

STATES = {
    "upcoming": Status.UPCOMING,
    "live": Status.LIVE,
    "result": Status.COMPLETED,
    "abandoned": Status.ABANDONED,
}
_TOTAL = re.compile(r"(\d{1,4})/(\d{1,2})\s*\((\d{1,3})\.(\d{1,2})\s*ov\)", re.ASCII)
_CARDS = {"OUT": "dismissal", "END": "over_complete"}


def state_of(found: Extracted, events: Sequence[Event]) -> MatchState:
    team_a, team_b = (
        Team(name=found.text(f"name_{side}", 120), short_name=found.text(f"short_{side}", 24)) for side in "ab"
    )
    printed = found.text("state", 40)
    status = STATES.get(printed.lower())
    if status is None:
        raise SchemaBreak(f"the board's state is {printed!r}; known are: {', '.join(STATES)}")
    phase = Phase.SCHEDULED if status is Status.UPCOMING else Phase.FINISHED
    if status is Status.UPCOMING and cricket.POSTPONED.search(found.text("note")):
        phase = Phase.POSTPONED
    innings = _innings(found) if status is not Status.UPCOMING else ()
    metadata = {"series": found.text("series", 200), "match_type": found.text("format", 40)}
    if status is Status.LIVE:
        phase = cricket.phase_in(found.text("note")) or Phase.PLAY
        metadata |= {"batters": "; ".join(found.texts("batters")[:2])[:200], "bowler": found.text("bowler", 120)}
    return MatchState(
        sport=Sport.CRICKET,
        title=found.text("title") or f"{team_a.name} v {team_b.name}",
        status=status,
        phase=phase,
        teams=Teams(team_a=team_a, team_b=team_b),
        score=score_of(innings),
        innings=innings,
        current_innings=len(innings) or None,
        toss=cricket.toss_in(found.text("toss"), (team_a, team_b)),
        venue=found.text("venue"),
        start_time=parsing.iso_moment(found.text("start", 40)),
        last_event=events[0].as_last_event() if events else None,
        result=found.text("outcome"),
        metadata={name: value for name, value in metadata.items() if value},
    )


def events_of(found: Extracted) -> tuple[Event, ...]:
    """Returns the events, newest first, each id once; a ball that cannot be read costs itself and is noted."""
    try:
        rows = found.rows("balls")
    except SchemaBreak as error:
        broken_parts.note("balls", str(error))
        return ()
    events: dict[str, Event] = {}
    for row in rows:
        try:
            events[row.get("id", "")] = _event_of(row)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            broken_parts.note(f"balls[].{broken_parts.path_of(first['loc'])}", first["msg"])
    return tuple(events.values())


def _event_of(row: dict[str, str]) -> Event:
    code, number = row.get("code", ""), parsing.integer(row.get("number"))
    kind, runs = (_CARDS[code], None) if code in _CARDS else cricket.read_code(code, adds_no_ball=True)[:2]
    return Event(
        id=row.get("id", "")[:120],
        kind=kind,
        innings=parsing.integer(row.get("innings")),
        over=row.get("over", "")[:10] or None,
        ordinal=number if number is not None and number >= 1 else None,
        runs=runs,
        is_critical=kind not in ("over_complete", "other"),
        description=row.get("said", ""),
        happened_at=parsing.moment(row.get("id"), per_second=1000),
        detail={"ball": code} if code not in _CARDS else {},
    )


def _innings(found: Extracted) -> tuple[Innings, ...]:
    innings: list[Innings] = []
    for side, name in (("team_a", "total_a"), ("team_b", "total_b")):
        text = found.text(name)
        if not text:
            continue
        total = _TOTAL.fullmatch(text)
        if total is None:
            raise SchemaBreak(f"the total of {side} is {text[:40]!r}, not like 123/4 (14.2 ov)")
        runs, wickets, overs, balls = (int(part) for part in total.groups())
        fields = {"number": len(innings) + 1, "team": side, "runs": runs, "wickets": wickets}
        innings.append(Innings.model_validate({**fields, "overs": f"{overs}.{balls}"}))
    return tuple(innings)
