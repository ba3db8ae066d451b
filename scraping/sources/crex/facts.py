"""What does not change while a match is played: names, venue, series, start. Only the page has it, the live answer has
team keys alone. A direct read carries the HTML of the last visit along for this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from parsel import Selector

from scraping.errors import PayloadRejected
from scraping.payloads import Team, Toss
from scraping.sources import parsing
from scraping.sources.crex import blob, schemas, status
from scraping.sources.crex.innings import flag_key
from scraping.sources.crex.schemas import InningsCard, PageAnswer

_MATCH = "match-"


@dataclass(frozen=True)
class Facts:
    """The static part of a match."""

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
    result: str = ""  # a result once printed stays true, however old the page
    series_names: Mapping[str, str] = field(default_factory=dict)  # by key
    people: Mapping[str, str] = field(default_factory=dict)  # names of players by key
    order: tuple[str, ...] = ()  # team keys in batting order
    first_innings: str = ""  # its score, as printed
    innings_seen: int = 0  # how many innings had begun when the page was made
    target: int | None = None  # of the innings then at hand
    card: tuple[InningsCard, ...] = ()  # the scorecard, where the page carries one


@lru_cache(maxsize=512)  # a page is some 100 kB and the same one is parsed at every direct poll of its match
def facts_of_page(body: bytes, match_key: str) -> Facts:
    """The facts in a page's blob; empty where it has none. PayloadRejected where it is another match's page."""
    html = body.decode("utf-8", errors="replace")
    state = blob.page_state(html)
    if state is None:
        return Facts()
    facts = facts_of_state(state, match_key)
    return facts if facts.toss else replace(facts, toss=_drawn_toss(html, facts.teams))


def facts_of_state(state: Mapping[str, Any], match_key: str) -> Facts:
    """SchemaBreak where the page's own entry of the match is not what we know."""
    meta = _meta(state, match_key)
    live = parsing.mapping(blob.answer(state, blob.LIVE))
    facts = Facts(
        team_keys=frozenset(filter(None, (_meta_key(meta, "team1"), _meta_key(meta, "team2")))),
        teams=_meta_teams(meta),
        venue=parsing.text(meta.get("v")),
        series_key=parsing.text(meta.get("sf") or live.get("sf"), 20),
        start_time=parsing.iso_moment(meta.get("t")) or parsing.moment(meta.get("t"), per_second=1000),
        match_type=parsing.text(live.get("fo") or live.get("mt"), 40),
        round=parsing.text(meta.get("mn") or live.get("mn"), 60),
        document_id=parsing.text(meta.get("dt"), 60),
        result=status.first_result(live.get("comment1"), live.get("res"), live.get("result")),
        order=tuple(filter(None, parsing.text(live.get("a"), 40).split("."))),
        first_innings=parsing.text(live.get("j"), 40),
        innings_seen=max((parsing.integer(live.get("h")) or 0) + 1, parsing.integer(live.get("inning")) or 0),
        target=parsing.integer(live.get("target")) or None,
        card=card_in(blob.answer(state, blob.SCORECARD)) or (),
    )
    facts = replace(facts, teams=_ssr_teams(live, facts.teams))
    for answer in blob.answers(state, blob.MAPPING):
        facts = with_mapping(facts, answer)
    return replace(facts, toss=_toss(state, live, facts.teams))


def with_mapping(facts: Facts, answer: Any) -> Facts:
    """The facts with names from a getHomeMapData answer added."""
    names = parsing.mapping(answer)
    teams = dict(facts.teams)
    for row in parsing.rows(names.get("t")):
        key, name = parsing.text(row.get("f_key"), 20), parsing.text(row.get("n"), 120)
        if key and name:
            teams[key] = Team(name=name, short_name=parsing.text(row.get("sn"), 24))
    series = {parsing.text(row.get("f_key"), 20): parsing.text(row.get("n")) for row in parsing.rows(names.get("s"))}
    people = {
        parsing.text(row.get("f_key"), 20): parsing.text(row.get("n"), 120) for row in parsing.rows(names.get("p"))
    }
    return replace(
        facts,
        teams=teams,
        series=facts.series or series.get(facts.series_key, ""),
        series_names={**facts.series_names, **series},
        people={**facts.people, **people},
    )


def card_in(answer: Any) -> tuple[InningsCard, ...] | None:
    """The innings of a getSC4 answer; None where there is none. SchemaBreak where it is of another shape."""
    if answer is None:
        return None
    innings = answer.get("innings") if isinstance(answer, dict) else answer
    card = parsing.validated(schemas.ScorecardAnswer, {"innings": innings}, schema=schemas.SCORECARD)
    return tuple(card.innings)


def _meta(state: Mapping[str, Any], match_key: str) -> Mapping[str, Any]:
    """The `match-{key}` entry, completed from getMatchMetaData."""
    others = [name for name in state if name.startswith(_MATCH) and name != _MATCH + match_key]
    own = parsing.mapping(state.get(_MATCH + match_key))
    stated = parsing.text(own.get("fkey"), 20)
    if (not own and others) or (stated and stated != match_key):
        raise PayloadRejected(f"the page is about another match: {stated or others[0]} instead of {match_key}")
    if own:
        parsing.validated(PageAnswer, {"match": own}, schema=schemas.PAGE)
    listed = blob.answer(state, blob.MATCH_META)
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


def _ssr_teams(live: Mapping[str, Any], known: Mapping[str, Team]) -> dict[str, Team]:
    """Short names out of the rendered copy. Its team1 is the side now batting: told by flag or name, not by place."""
    teams = dict(known)
    by_name = {team.name: key for key, team in known.items()}
    for side in ("team1", "team2"):
        name = parsing.text(live.get(f"{side}_f_n"), 120)
        short = parsing.text(live.get(f"{side}short") or live.get(side), 24)
        key = flag_key(parsing.text(live.get(f"{side}flag"))) or by_name.get(name, "")
        if key and (name or key in known):
            teams[key] = Team(name=name or known[key].name, short_name=short)
    return teams


def _toss(state: Mapping[str, Any], live: Mapping[str, Any], teams: Mapping[str, Team]) -> Toss | None:
    after = blob.answer(state, blob.POST_MATCH)
    row = next(iter(parsing.rows(after)), parsing.mapping(after))
    winner = parsing.text(row.get("toss_team"), 120)
    if winner:
        chose = parsing.integer(row.get("chose_to"))
        return Toss(winner=winner, decision="" if chose is None else "bat" if chose == 1 else "field")
    return toss_of(parsing.plain(live.get("comment1")), teams)


def _drawn_toss(html: str, teams: Mapping[str, Team]) -> Toss | None:
    """The toss as the info tab prints it: the blob speaks of it only until the chase begins."""
    drawn = Selector(text=html, type="html").css(".toss-wrap p")
    return toss_of(parsing.plain(drawn[0].get()), teams) if drawn else None


def toss_of(sentence: str, teams: Mapping[str, Team]) -> Toss | None:
    """The toss that a sentence speaks of, its winner by full name."""
    toss = status.toss_in(sentence)
    if toss is None:
        return None
    full = {team.short_name: team.name for team in teams.values()}
    return toss.model_copy(update={"winner": full.get(toss.winner, toss.winner)})
