"""Facts, live state and feed put together into a payload."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Event, Integrity, MatchState, Payload, Sport, Status, Team, Teams
from scraping.sources.base import RefInfo
from scraping.sources.crex import feed, status
from scraping.sources.crex.facts import Facts, toss_of
from scraping.sources.crex.feed import Item
from scraping.sources.crex.live import LiveState, score_of
from scraping.sources.wanted import missing_in

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
    went_without: tuple[str, ...] = (),
) -> Payload:
    """SchemaBreak where no name is known for a team: a direct read then gives way to a visit."""
    check_identity(live, facts, ref.source_event_id)
    team_a, team_b = (_team(key, facts) for key in live.team_keys)
    result = live.result or facts.result
    state_of_play, phase = status.judge(
        result=result,
        sentences=live.sentences,
        has_play=live.has_play,
        start_time=facts.start_time,
        now=captured_at,
    )
    innings = () if state_of_play is Status.UPCOMING else live.innings
    known_items = list(items or ())
    state = MatchState(
        sport=Sport.CRICKET,
        title=title_of(team_a.name, team_b.name, facts.round),
        status=state_of_play,
        phase=phase,
        teams=Teams(team_a=team_a, team_b=team_b),
        score=score_of(innings),
        innings=innings,
        current_innings=len(innings) or None,
        toss=toss_of(live.toss_text, facts.teams) or facts.toss,
        venue=facts.venue,
        start_time=facts.start_time,
        last_event=feed.last_event_of(known_items, live.ball),
        result=result,
        metadata=_metadata(facts, live),
    )
    missing = went_without + missing_in(state, has_events=items is not None)
    return envelope(ref, captured_at, state, missing, events=feed.events_of(known_items))


def envelope(
    ref: RefInfo,
    captured_at: datetime,
    state: MatchState,
    missing: tuple[str, ...],
    *,
    events: tuple[Event, ...] = (),
    is_partial: bool = False,
) -> Payload:
    return Payload(
        source=SOURCE,
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
    found = {"series": facts.series, "match_type": facts.match_type or live.match_type, "round": facts.round}
    return {name: value for name, value in found.items() if value}
