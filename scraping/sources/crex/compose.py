"""Facts, live state and feed put together into a payload."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Event, Innings, Integrity, MatchState, Payload, Phase, Sport, Status, Team, Teams
from scraping.sources.base import RefInfo
from scraping.sources.crex import feed, innings, schemas, status
from scraping.sources.crex.facts import Facts, toss_of
from scraping.sources.crex.feed import Item
from scraping.sources.crex.innings import score_of
from scraping.sources.crex.live import LiveState, is_limited, is_long
from scraping.sources.crex.schemas import InningsCard
from scraping.sources.parsing import missing_cricket_fields

SOURCE = "crex"


def check_identity(live: LiveState, facts: Facts, match_key: str) -> None:
    """The live answer does not name its match: its teams and its document id must be those of the page."""
    if facts.team_keys and facts.team_keys != frozenset(live.team_keys):
        played, expected = "/".join(live.team_keys), "/".join(sorted(facts.team_keys))
        raise PayloadRejected(f"the live answer is about another match: teams {played}, {match_key} has {expected}")
    if live.document_id and facts.document_id and live.document_id != facts.document_id:
        raise PayloadRejected(f"the live answer is about another match: {live.document_id}, not {facts.document_id}")


def compose(
    ref: RefInfo,
    captured_at: datetime,
    live: LiveState,
    facts: Facts,
    items: Sequence[Item] | None,
    *,
    card: Sequence[InningsCard] = (),
    went_without: tuple[str, ...] = (),
    payload_schema: str = schemas.LIVE,
) -> Payload:
    """SchemaBreak where no name is known for a team: a direct read then gives way to a visit."""
    check_identity(live, facts, ref.source_event_id)
    team_a, team_b = (_team(key, facts) for key in live.team_keys)
    played = _innings(live, facts, card)
    result = _result(live.result or facts.result, played)
    state_of_play, phase = _standing(live, facts, result, captured_at)
    played = () if state_of_play is Status.UPCOMING else played
    events = feed.events_of(items or ())
    state = MatchState(
        sport=Sport.CRICKET,
        title=title_of(team_a.name, team_b.name, facts.round),
        status=state_of_play,
        phase=phase,
        teams=Teams(team_a=team_a, team_b=team_b),
        score=score_of(played),
        innings=played,
        current_innings=played[-1].number if played else None,
        toss=toss_of(live.toss_text, facts.teams) or facts.toss,
        venue=facts.venue,
        start_time=facts.start_time,
        last_event=feed.last_event_of(events, live.ball),
        result=result,
        metadata=_metadata(facts, live),
    )
    missing = went_without + missing_cricket_fields(state, has_events=items is not None) + _lost_innings(played)
    return envelope(ref, captured_at, state, missing, events=events, payload_schema=payload_schema)


def _standing(live: LiveState, facts: Facts, result: str, now: datetime) -> tuple[Status, Phase]:
    return status.judge(
        result=result, sentences=live.sentences, has_play=live.has_play, start_time=facts.start_time, now=now
    )


def _innings(live: LiveState, facts: Facts, card: Sequence[InningsCard]) -> tuple[Innings, ...]:
    known = innings.merged(live.innings, innings.known_on_card(card or facts.card, live.team_keys))
    match_type = facts.match_type or live.match_type
    last = max(known, default=0)
    remembered = facts.target if facts.innings_seen == last else None
    if live.is_reduced and 1 in known and remembered == known[1].total.runs + 1:
        remembered = None  # the page is from before the rain
    return innings.innings_of(
        known,
        is_long=is_long(match_type),
        has_super_overs=is_limited(match_type),
        target=(live.target or remembered) if last % 2 == 0 else None,
        may_work_out=not live.is_reduced,
    )


def _lost_innings(played: Sequence[Innings]) -> tuple[str, ...]:
    """An innings that nobody told, before one that somebody did."""
    return ("innings",) if played and len(played) != played[-1].number else ()


def _result(result: str, played: Sequence[Innings]) -> str:
    """A tie is not the end while its super over is played."""
    return "" if played and played[-1].is_super_over and status.is_level(result) else result


def envelope(
    ref: RefInfo,
    captured_at: datetime,
    state: MatchState,
    missing: tuple[str, ...],
    *,
    events: tuple[Event, ...] = (),
    is_partial: bool = False,
    payload_schema: str = schemas.LIVE,
) -> Payload:
    return Payload(
        source=SOURCE,
        payload_schema=payload_schema,
        captured_at=captured_at,
        source_event_id=ref.source_event_id,
        state=state,
        events=events,
        is_partial_state=is_partial,
        integrity=Integrity(missing_fields=missing, null_field_rate=round(min(1.0, len(missing) / 9), 4)),
    )


def title_of(team_a: str, team_b: str, match_round: str) -> str:
    if not match_round:
        return f"{team_a} v {team_b}"
    return f"{team_a} v {team_b}, {'match ' if match_round.isdigit() else ''}{match_round}"


def _team(key: str, facts: Facts) -> Team:
    try:
        return facts.teams[key]
    except KeyError:
        raise SchemaBreak(
            f"no name is known for team {key}; known: {', '.join(sorted(facts.teams)) or 'none'}"
        ) from None


def _metadata(facts: Facts, live: LiveState) -> dict[str, str | int | float | None]:
    found = {
        "series": facts.series,
        "match_type": facts.match_type or live.match_type,
        "round": facts.round,
        "announcement": live.announcement,
    }
    return {name: value for name, value in found.items() if value}
