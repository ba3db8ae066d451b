"""The payload that is assembled from live state, match details, ball feed and scorecard."""

from collections.abc import Mapping, Sequence
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Event, Innings, MatchState, Payload, Sport, Status, Team, Teams, score_of
from scraping.sources import cricket, parsing
from scraping.sources.base import Adapter, Reading
from scraping.sources.crex import ball_feed, schemas, site, texts
from scraping.sources.crex.details import MatchDetails, details_of
from scraping.sources.crex.live import LiveState, is_limited, is_long, parse_live, totals_on_scorecard
from scraping.sources.crex.schemas import ScorecardInnings, readable_innings
from scraping.sources.crex.texts import Total


def assemble_payload(
    adapter: Adapter,
    reading: Reading,
    data: Mapping[str, Any],
    *,
    url: str = "",
    is_public: bool = False,
    is_copy: bool = False,
) -> Payload:
    """Adds the other documents of the reading to a live response.

    `is_public`: it is the response without a token, which has the score only; the other fields that are known stay as
    they are. `is_copy`: it is the copy in the page. Raises SchemaBreak where the name of a team is unknown: the next
    read is then a visit.
    """
    details = details_of(reading)
    is_early = details.start_time is not None and reading.captured_at < details.start_time
    live = parse_live(data, is_before_start=is_early, url=url)
    card = readable_innings(site.json_of(reading.document("scorecard"))) or details.card
    if reading.mode.is_requested and not is_public:
        _require_scorecard(live, details, card)
    items = None if is_public else ball_feed.items_of(reading)
    _check_identity(live, details, reading.ref.source_event_id)
    events = ball_feed.events_of(items or ())
    state = _state_of(reading, live, details, card, events)
    missing = ("live_answer",) if is_public or is_copy else ()
    if state.innings and len(state.innings) < max(state.innings[-1].number, live.current_innings):
        missing = (*missing, "innings")
    return adapter.payload(
        reading,
        state,
        has_events=items is not None,
        also_missing=missing,
        payload_schema=schemas.PAGE if is_copy else schemas.LIVE,
        events=events,
        is_partial_state=is_public,
    )


def _state_of(
    reading: Reading,
    live: LiveState,
    details: MatchDetails,
    card: Mapping[int, ScorecardInnings],
    events: Sequence[Event],
) -> MatchState:
    teams = Teams(team_a=_team(live.team_keys[0], details), team_b=_team(live.team_keys[1], details))
    innings = innings_of(live, details, card)
    is_super_over = bool(innings) and innings[-1].is_super_over
    result = cricket.result_in(live.result or details.result, is_tie_final=not is_super_over)
    status, phase = texts.status_and_phase(
        result=result,
        sentences=live.sentences,
        has_play=live.has_play,
        start_time=details.start_time,
        now=reading.captured_at,
    )
    innings = () if status is Status.UPCOMING else innings
    metadata = {
        "series": details.series,
        "match_type": details.match_type or live.match_type,
        "round": details.round,
        "announcement": live.announcement,
    }
    return MatchState(
        sport=Sport.CRICKET,
        title=title_of(teams.team_a.name, teams.team_b.name, details.round),
        status=status,
        phase=phase,
        teams=teams,
        score=score_of(innings),
        innings=innings,
        current_innings=innings[-1].number if innings else None,
        toss=cricket.toss_in(live.toss_text, details.teams.values()) or details.toss,
        venue=details.venue,
        start_time=details.start_time,
        last_event=ball_feed.last_event_of(events, live.ball),
        result=result,
        metadata={name: value for name, value in metadata.items() if value},
    )


def _require_scorecard(live: LiveState, details: MatchDetails, card: Mapping[int, ScorecardInnings]) -> None:
    """Raises SchemaBreak once per innings where a direct read needs the scorecard and does not request it.

    The live response has no fields for a third or later innings. The page requests the scorecard then, so the visit
    that follows adds it to the direct reads.
    """
    known = live.innings.keys() | card.keys()
    wanted = range(1, live.current_innings + 1)  # may be any number
    lacks = live.current_innings > 2 and any(number not in known for number in wanted)
    if lacks and details.innings_seen < live.current_innings:
        raise SchemaBreak(f"innings {live.current_innings} is being played, and only the scorecard has all innings")


def _check_identity(live: LiveState, details: MatchDetails, match_key: str) -> None:
    """Raises PayloadRejected for another match: teams and document id must be those of the page."""
    if details.team_keys and details.team_keys != frozenset(live.team_keys):
        played, expected = "/".join(live.team_keys), "/".join(sorted(details.team_keys))
        raise PayloadRejected(f"the live response is about another match: teams {played}, {match_key} has {expected}")
    if live.document_id and details.document_id and live.document_id != details.document_id:
        raise PayloadRejected(
            f"the live response is about another match: {live.document_id}, not {details.document_id}"
        )


def _team(key: str, details: MatchDetails) -> Team:
    if key not in details.teams:
        known = ", ".join(sorted(details.teams)) or "none"
        raise SchemaBreak(f"no name is known for team {key}; known: {known}")
    return details.teams[key]


def title_of(team_a: str, team_b: str, match_round: str = "") -> str:
    if not match_round:
        return f"{team_a} v {team_b}"
    return f"{team_a} v {team_b}, {'match ' if parsing.is_number(match_round) else ''}{match_round}"


def innings_of(live: LiveState, details: MatchDetails, card: Mapping[int, ScorecardInnings]) -> tuple[Innings, ...]:
    match_type = details.match_type or live.match_type
    per_over = cricket.balls_per_over(match_type, details.series)
    totals = merged_totals(live.innings, totals_on_scorecard(card, live.team_keys, per_over))
    last = max(totals, default=0)
    printed = live.target or (details.target if details.innings_seen == last else None)
    if live.target is None and live.is_reduced and 1 in totals and printed == totals[1].runs + 1:
        printed = None  # the page is from before the rain
    found = []
    for number, one in totals.items():
        target = printed if number == last and number % 2 == 0 else None
        if target is None and (number > 2 or not live.is_reduced):
            target = _target_by_scores(totals, number, is_long=is_long(match_type))
        is_super_over = number > 2 and is_limited(match_type)
        found.append(Innings(number=number, is_super_over=is_super_over, target=target, **vars(one)))
    return tuple(found)


def merged_totals(live: Mapping[int, Total], card: Mapping[int, Total]) -> dict[int, Total]:
    """Prefers the live total, except where the scorecard, which is requested a moment later, is further on."""
    both = dict(card)
    for number, one in live.items():
        other = card.get(number)
        is_behind = other is not None and number > 2 and other.progress > one.progress
        if not is_behind:
            both[number] = one
        if other is not None and other.is_declared and not both[number].is_declared:
            both[number] = other
    return dict(sorted(both.items()))


def _target_by_scores(totals: Mapping[int, Total], number: int, *, is_long: bool) -> int | None:
    """Returns the runs that the side needs to win, from the scores before it; None where it is not the last to bat."""
    if not is_long:
        previous = totals.get(number - 1) if number % 2 == 0 else None
        return previous.runs + 1 if previous else None
    if number != 4 or not {1, 2, 3} <= totals.keys():
        return None
    own = totals[4].team
    lead = sum(totals[earlier].runs * (-1 if totals[earlier].team == own else 1) for earlier in (1, 2, 3))
    return max(lead + 1, 0)
