"""Match details from the page, and the payload that is assembled from details, live state and ball feed.

Names, venue, series and start time are on the page only; the live response has team keys. A direct read therefore
carries the HTML of the last visit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from parsel import Selector

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import (
    Innings,
    MatchState,
    Payload,
    Phase,
    Sport,
    Status,
    Team,
    Teams,
    Toss,
    score_of,
)
from scraping.sources import parsing
from scraping.sources.base import RefInfo
from scraping.sources.crex import ball_feed, schemas, site, texts
from scraping.sources.crex.ball_feed import Item
from scraping.sources.crex.live import LiveState, innings_of, is_limited, is_long, merged_totals, totals_on_scorecard
from scraping.sources.crex.schemas import PageResponse, ScorecardInnings, scorecard_innings
from scraping.sources.crex.texts import flag_key, toss_of

_MATCH = "match-"
SOURCE = "crex"


@dataclass(frozen=True)
class MatchDetails:
    """The facts of a match that do not change while it is played."""

    team_keys: frozenset[str] = frozenset()
    teams: Mapping[str, Team] = field(default_factory=dict)  # by key
    venue: str = ""
    series: str = ""
    series_key: str = ""
    start_time: datetime | None = None
    match_type: str = ""
    round: str = ""
    toss: Toss | None = None
    document_id: str = ""
    result: str = ""  # valid however old the page
    series_names: Mapping[str, str] = field(default_factory=dict)  # by key
    people: Mapping[str, str] = field(default_factory=dict)  # names of players by key
    order: tuple[str, ...] = ()  # team keys in batting order
    first_innings: str = ""  # its score, as printed
    innings_seen: int = 0  # how many innings had begun when the page was made
    target: int | None = None  # of the innings that was current then
    card: tuple[ScorecardInnings, ...] = ()  # the scorecard, where the page carries one


@lru_cache(maxsize=512)  # a page is some 100 kB and the same one is parsed at every direct poll of its match
def details_in_page(body: bytes, match_key: str) -> MatchDetails:
    """Returns the details in a page's embedded state, if any; raises PayloadRejected for another match's page."""
    html = body.decode("utf-8", errors="replace")
    state = site.page_state(html)
    if state is None:
        return MatchDetails()
    details = details_in_state(state, match_key)
    return details if details.toss else replace(details, toss=_rendered_toss(html, details.teams))


def details_in_state(state: Mapping[str, Any], match_key: str) -> MatchDetails:
    """Raises SchemaBreak where the page's entry of the match does not match the schema."""
    meta = _meta(state, match_key)
    live = parsing.mapping(site.embedded_response(state, site.LIVE))
    details = MatchDetails(
        team_keys=frozenset(filter(None, (_meta_key(meta, "team1"), _meta_key(meta, "team2")))),
        teams=_meta_teams(meta),
        venue=parsing.text(meta.get("v")),
        series_key=parsing.text(meta.get("sf") or live.get("sf"), 20),
        start_time=parsing.iso_moment(meta.get("t")) or parsing.moment(meta.get("t"), per_second=1000),
        match_type=parsing.text(live.get("fo") or live.get("mt"), 40),
        round=parsing.text(meta.get("mn") or live.get("mn"), 60),
        document_id=parsing.text(meta.get("dt"), 60),
        result=texts.first_result(live.get("comment1"), live.get("res"), live.get("result")),
        order=tuple(filter(None, parsing.text(live.get("a"), 40).split("."))),
        first_innings=parsing.text(live.get("j"), 40),
        innings_seen=max((parsing.integer(live.get("h")) or 0) + 1, parsing.integer(live.get("inning")) or 0),
        target=parsing.integer(live.get("target")) or None,
        card=scorecard_innings(site.embedded_response(state, site.SCORECARD)) or (),
    )
    details = replace(details, teams=_rendered_teams(live, details.teams))
    for response in site.embedded_responses(state, site.MAPPING):
        details = with_mapping(details, response)
    return replace(details, toss=_embedded_toss(state, live, details.teams))


def with_mapping(details: MatchDetails, response: Any) -> MatchDetails:
    """Returns the details with the names of a getHomeMapData response added."""
    names = parsing.mapping(response)
    teams = dict(details.teams)
    for row in parsing.rows(names.get("t")):
        key, name = parsing.text(row.get("f_key"), 20), parsing.text(row.get("n"), 120)
        if key and name:
            teams[key] = Team(name=name, short_name=parsing.text(row.get("sn"), 24))
    series = {parsing.text(row.get("f_key"), 20): parsing.text(row.get("n")) for row in parsing.rows(names.get("s"))}
    people = {
        parsing.text(row.get("f_key"), 20): parsing.text(row.get("n"), 120) for row in parsing.rows(names.get("p"))
    }
    return replace(
        details,
        teams=teams,
        series=details.series or series.get(details.series_key, ""),
        series_names={**details.series_names, **series},
        people={**details.people, **people},
    )


def _meta(state: Mapping[str, Any], match_key: str) -> Mapping[str, Any]:
    """Returns the `match-{key}` entry, completed from getMatchMetaData."""
    others = [name for name in state if name.startswith(_MATCH) and name != _MATCH + match_key]
    own = parsing.mapping(state.get(_MATCH + match_key))
    stated = parsing.text(own.get("fkey"), 20)
    if (not own and others) or (stated and stated != match_key):
        raise PayloadRejected(f"the page is about another match: {stated or others[0]} instead of {match_key}")
    if own:
        parsing.validated(PageResponse, {"match": own}, schema=schemas.PAGE)
    listed = site.embedded_response(state, site.MATCH_META)
    first = next(iter(parsing.rows(listed)), parsing.mapping(listed))
    return {**first, **own}


def _meta_key(meta: Mapping[str, Any], side: str) -> str:
    return parsing.text(parsing.mapping(meta.get(side)).get("fkey"), 20)


def _meta_teams(meta: Mapping[str, Any]) -> dict[str, Team]:
    teams = {}
    for side in ("team1", "team2"):
        key, name = _meta_key(meta, side), parsing.text(parsing.mapping(meta.get(side)).get("name"), 120)
        if key and name:
            teams[key] = Team(name=name)
    return teams


def _rendered_teams(live: Mapping[str, Any], known: Mapping[str, Team]) -> dict[str, Team]:
    """Adds short names of the display fields. Their team1 is the batting side: flag or name identify the team."""
    teams = dict(known)
    by_name = {team.name: key for key, team in known.items()}
    for side in ("team1", "team2"):
        name = parsing.text(live.get(f"{side}_f_n"), 120)
        short = parsing.text(live.get(f"{side}short") or live.get(side), 24)
        key = flag_key(parsing.text(live.get(f"{side}flag"))) or by_name.get(name, "")
        if key and (name or key in known):
            teams[key] = Team(name=name or known[key].name, short_name=short)
    return teams


def _embedded_toss(state: Mapping[str, Any], live: Mapping[str, Any], teams: Mapping[str, Team]) -> Toss | None:
    after = site.embedded_response(state, site.POST_MATCH)
    row = next(iter(parsing.rows(after)), parsing.mapping(after))
    winner = parsing.text(row.get("toss_team"), 120)
    if winner:
        chose = parsing.integer(row.get("chose_to"))
        return Toss(winner=winner, decision="" if chose is None else "bat" if chose == 1 else "field")
    return toss_of(parsing.plain(live.get("comment1")), teams)


def _rendered_toss(html: str, teams: Mapping[str, Team]) -> Toss | None:
    """Returns the toss that the info tab shows: the embedded state has it only until the second innings."""
    shown = Selector(text=html, type="html").css(".toss-wrap p")
    return toss_of(parsing.plain(shown[0].get()), teams) if shown else None


def check_identity(live: LiveState, details: MatchDetails, match_key: str) -> None:
    """Raises PayloadRejected for another match: teams and document id must be those of the page."""
    if details.team_keys and details.team_keys != frozenset(live.team_keys):
        played, expected = "/".join(live.team_keys), "/".join(sorted(details.team_keys))
        raise PayloadRejected(f"the live response is about another match: teams {played}, {match_key} has {expected}")
    if live.document_id and details.document_id and live.document_id != details.document_id:
        raise PayloadRejected(
            f"the live response is about another match: {live.document_id}, not {details.document_id}"
        )


def assemble_payload(
    ref: RefInfo,
    captured_at: datetime,
    live: LiveState,
    details: MatchDetails,
    items: Sequence[Item] | None,
    *,
    card: Sequence[ScorecardInnings] = (),
    missing: tuple[str, ...] = (),
    payload_schema: str = schemas.LIVE,
) -> Payload:
    """Raises SchemaBreak where the name of a team is unknown: the next read is then a visit."""
    check_identity(live, details, ref.source_event_id)
    team_a, team_b = (_team(key, details) for key in live.team_keys)
    played = _innings(live, details, card)
    result = _final_result(live.result or details.result, played)
    state_of_play, phase = _status_and_phase(live, details, result, captured_at)
    played = () if state_of_play is Status.UPCOMING else played
    events = ball_feed.events_of(items or ())
    state = MatchState(
        sport=Sport.CRICKET,
        title=title_of(team_a.name, team_b.name, details.round),
        status=state_of_play,
        phase=phase,
        teams=Teams(team_a=team_a, team_b=team_b),
        score=score_of(played),
        innings=played,
        current_innings=played[-1].number if played else None,
        toss=toss_of(live.toss_text, details.teams) or details.toss,
        venue=details.venue,
        start_time=details.start_time,
        last_event=ball_feed.last_event_of(events, live.ball),
        result=result,
        metadata=_metadata(details, live),
    )
    if played and len(played) != played[-1].number:
        missing = (*missing, "innings")
    return Payload(
        source=SOURCE,
        payload_schema=payload_schema,
        captured_at=captured_at,
        source_event_id=ref.source_event_id,
        state=state,
        events=events,
        integrity=parsing.integrity_of(state, has_events=items is not None, also_missing=missing),
    )


def _status_and_phase(live: LiveState, details: MatchDetails, result: str, now: datetime) -> tuple[Status, Phase]:
    return texts.status_and_phase(
        result=result, sentences=live.sentences, has_play=live.has_play, start_time=details.start_time, now=now
    )


def _innings(live: LiveState, details: MatchDetails, card: Sequence[ScorecardInnings]) -> tuple[Innings, ...]:
    known = merged_totals(live.innings, totals_on_scorecard(card or details.card, live.team_keys))
    match_type = details.match_type or live.match_type
    last = max(known, default=0)
    remembered = details.target if details.innings_seen == last else None
    if live.is_reduced and 1 in known and remembered == known[1].total.runs + 1:
        remembered = None  # the page is from before the rain
    return innings_of(
        known,
        is_long=is_long(match_type),
        has_super_overs=is_limited(match_type),
        target=(live.target or remembered) if last % 2 == 0 else None,
        may_compute_target=not live.is_reduced,
    )


def _final_result(result: str, played: Sequence[Innings]) -> str:
    """Returns the result, except a tie while its super over is played."""
    return "" if played and played[-1].is_super_over and texts.is_tie(result) else result


def title_of(team_a: str, team_b: str, match_round: str) -> str:
    if not match_round:
        return f"{team_a} v {team_b}"
    return f"{team_a} v {team_b}, {'match ' if match_round.isdigit() else ''}{match_round}"


def _team(key: str, details: MatchDetails) -> Team:
    try:
        return details.teams[key]
    except KeyError:
        raise SchemaBreak(
            f"no name is known for team {key}; known: {', '.join(sorted(details.teams)) or 'none'}"
        ) from None


def _metadata(details: MatchDetails, live: LiveState) -> dict[str, str | int | float | None]:
    found = {
        "series": details.series,
        "match_type": details.match_type or live.match_type,
        "round": details.round,
        "announcement": live.announcement,
    }
    return {name: value for name, value in found.items() if value}
