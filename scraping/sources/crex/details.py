"""Match details from the page: names, venue, series and start time, which the live response does not have.

A direct read therefore carries the HTML of the last visit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from scraping.errors import PayloadRejected
from scraping.payloads import BrokenPart, Team, Toss
from scraping.sources import broken_parts, cricket, markup, parsing
from scraping.sources.base import Reading
from scraping.sources.crex import schemas, site, texts
from scraping.sources.crex.schemas import MAX_TARGET, MatchMeta, ScorecardInnings, readable_innings

_MATCH = "match-"


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
    has_play: bool = False  # a ball had been bowled when the page was made
    is_details_tab: bool = False
    innings_seen: int = 0  # how many innings had begun when the page was made
    target: int | None = None  # of the innings that was current then
    card: Mapping[int, ScorecardInnings] = field(default_factory=dict)  # the scorecard, where the page carries one
    broken: tuple[BrokenPart, ...] = ()  # what could not be read of the page


def details_of(reading: Reading) -> MatchDetails:
    """Returns the details of this visit's page, else of the last successful visit's, which the reader carries along."""
    details = MatchDetails()
    for page in filter(None, map(reading.document, ("page", "static_page"))):
        details = details_in_page(page.body, reading.ref.source_event_id)
        for part in details.broken:
            broken_parts.note(part.path, part.expected, part.count)
        if details.teams:
            break
    mapping = site.json_of(reading.document("mapping"))
    return details if mapping is None else with_mapping(details, mapping)


@lru_cache(maxsize=512)  # a page is some 100 kB and the same one is parsed at every direct poll of its match
def details_in_page(body: bytes, match_key: str) -> MatchDetails:
    """Returns the details in a page's embedded state, if any.

    Raises PayloadRejected for another match's page, SchemaBreak where its entry of the match has another shape.
    """
    with broken_parts.noting() as broken:
        details = _details_in(body, match_key)
    return replace(details, broken=tuple(broken))


def _details_in(body: bytes, match_key: str) -> MatchDetails:
    html = body.decode("utf-8", errors="replace")
    state = site.page_state(html)
    if state is None:
        return MatchDetails()
    meta = _meta(state, match_key)
    live = parsing.mapping(site.embedded_response(state, site.LIVE))
    teams = {
        key: Team(name=name)
        for side in ("team1", "team2")
        if (key := parsing.text(parsing.mapping(meta.get(side)).get("fkey"), 20))
        and (name := parsing.text(parsing.mapping(meta.get(side)).get("name"), 120))
    }
    target = parsing.integer(live.get("target"))
    details = MatchDetails(
        team_keys=frozenset(teams),
        teams=_with_short_names(teams, live),
        venue=parsing.text(meta.get("v")),
        series_key=parsing.text(meta.get("sf") or live.get("sf"), 20),
        start_time=parsing.iso_moment(meta.get("t")) or parsing.moment(meta.get("t"), per_second=1000),
        match_type=parsing.text(live.get("fo") or live.get("mt"), 40),
        round=parsing.text(meta.get("mn") or live.get("mn"), 60),
        document_id=parsing.text(meta.get("dt"), 60),
        result=texts.first_result(live.get("comment1"), live.get("res"), live.get("result")),
        order=tuple(filter(None, parsing.text(live.get("a"), 40).split("."))),
        first_innings=parsing.text(live.get("j"), 40),
        has_play=texts.has_score(live.get("j")),
        is_details_tab=site.embedded_response(state, site.SQUADS) is not None,
        innings_seen=max((parsing.integer(live.get("h")) or 0) + 1, parsing.integer(live.get("inning")) or 0),
        target=target if target in range(1, MAX_TARGET + 1) else None,
        card=readable_innings(site.embedded_response(state, site.SCORECARD)),
    )
    details = with_mapping(details, *site.embedded_responses(state, site.MAPPING))
    return replace(details, toss=_toss(state, live, html, details.teams))


def with_mapping(details: MatchDetails, *responses: Any) -> MatchDetails:
    teams, series, people = dict(details.teams), dict(details.series_names), dict(details.people)
    for names in map(parsing.mapping, responses):
        for row in parsing.rows(names.get("t")):
            key, name = parsing.text(row.get("f_key"), 20), parsing.text(row.get("n"), 120)
            if key and name:
                teams[key] = Team(name=name, short_name=parsing.text(row.get("sn"), 24))
        for kind, named in (("s", series), ("p", people)):
            for row in parsing.rows(names.get(kind)):
                named[parsing.text(row.get("f_key"), 20)] = parsing.text(row.get("n"), 120)
    title = details.series or series.get(details.series_key, "")
    return replace(details, teams=teams, series=title, series_names=series, people=people)


def _meta(state: Mapping[str, Any], match_key: str) -> Mapping[str, Any]:
    """Returns the `match-{key}` entry, completed from getMatchMetaData."""
    others = [name for name in state if name.startswith(_MATCH) and name != _MATCH + match_key]
    own = parsing.mapping(state.get(_MATCH + match_key))
    stated = parsing.text(own.get("fkey"), 20)
    if (not own and others) or (stated and stated != match_key):
        raise PayloadRejected(f"the page is about another match: {stated or others[0]} instead of {match_key}")
    if own:
        parsing.validated(MatchMeta, own, schema=schemas.PAGE, path="match")
    return {**_first_row(site.embedded_response(state, site.MATCH_META)), **own}


def _first_row(response: Any) -> Mapping[str, Any]:
    return next(iter(parsing.rows(response)), parsing.mapping(response))


def _with_short_names(known: Mapping[str, Team], live: Mapping[str, Any]) -> dict[str, Team]:
    """Adds short names of the display fields. Their team1 is the batting side: flag or name identify the team."""
    teams = dict(known)
    by_name = {team.name: key for key, team in known.items()}
    for side in ("team1", "team2"):
        name = parsing.text(live.get(f"{side}_f_n"), 120)
        short = parsing.text(live.get(f"{side}short") or live.get(side), 24)
        key = texts.flag_key(parsing.text(live.get(f"{side}flag"))) or by_name.get(name, "")
        if key and (name or key in known):
            teams[key] = Team(name=name or known[key].name, short_name=short)
    return teams


def _toss(state: Mapping[str, Any], live: Mapping[str, Any], html: str, teams: Mapping[str, Team]) -> Toss | None:
    """Returns the toss of the embedded state, which has it until the second innings, else that of the info tab."""
    row = _first_row(site.embedded_response(state, site.POST_MATCH))
    winner = parsing.text(row.get("toss_team"), 120)
    if winner:
        chose = parsing.integer(row.get("chose_to"))
        return Toss(winner=winner, decision="" if chose is None else "bat" if chose == 1 else "field")
    toss = cricket.toss_in(parsing.plain(live.get("comment1")), teams.values())
    if toss is not None:
        return toss
    shown = markup.tree_of(html).css(".toss-wrap p")
    return cricket.toss_in(parsing.plain(shown[0].get()), teams.values()) if shown else None
