"""The pages of the site: the list of matches, and one match."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from stadium.crex import blob, parts
from stadium.crex.details import meta, named_meta, post_match
from stadium.crex.listing import match_name, match_path, names
from stadium.crex.live import live, series_key
from stadium.crex.readable import comment, drawn_score, latest, readable
from stadium.crex.scorecard import scorecard
from stadium.crex.squads import squads
from stadium.cricket.state import CricketState
from stadium.people import slug
from stadium.programme import Match
from stadium.world import iso


@dataclass(frozen=True, slots=True)
class Frame:
    """What every page needs besides its content."""

    base: str  # the absolute address of the site, without a slash at the end
    nonce: str


def document(frame: Frame, title: str, content: str, state: dict[str, Any], view: str) -> str:
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="cx-n" content="{frame.nonce}"><link rel="icon" href="data:,">
<link rel="stylesheet" href="/crex/assets/style.css">
<link rel="preload" as="font" href="/crex/assets/font.woff2" crossorigin></head>
<body data-view="{view}"><app-root><header><img alt="logo" src="/crex/assets/logo.png"></header>
{content}
</app-root><script id="app-root-state" type="application/json">{blob.encode(state)}</script>
<script src="/crex/assets/app.js" defer></script></body></html>"""


def match_page(
    frame: Frame, match: Match, state: CricketState, start_wall: float, feed: list[dict[str, Any]], *, tab: str = "live"
) -> str:
    first, second = match.teams
    content = match_content(match, state, start_wall, readable(match, state), feed)
    title = f"{first.short} vs {second.short} live score, {match_name(match)} {match.format}"
    told = match_state(frame, match, state, start_wall, feed)
    if tab != "live":
        told = tab_state(told, frame, match, state, tab)
    return document(frame, title, content, told, "match")


def match_content(
    match: Match, state: CricketState, start_wall: float, fields: dict[str, Any], feed: list[dict[str, Any]]
) -> str:
    first, second = match.teams
    return f"""<div class="match-info"><h1 class="name-wrapper">
<span>{escape(first.name)} vs {escape(second.name)}</span></h1>
<div class="s-name">{escape(match.series[0])}</div><div class="match-date">{iso(start_wall)}</div>
<div class="match-venue">{escape(match.venue)}</div><div class="toss-wrap"><p>{escape(state.toss)}</p></div></div>
{parts.eleven(match, state)}
{parts.header(match, state, fields)}
{parts.players(fields)}
{parts.overs_strip(fields)}
{parts.commentary(feed)}"""


def match_state(
    frame: Frame, match: Match, state: CricketState, start_wall: float, feed: list[dict[str, Any]]
) -> dict[str, Any]:
    first, second = match.teams
    sides = {"team1": {"name": first.name, "fkey": first.key}, "team2": {"name": second.name, "fkey": second.key}}
    told = {
        f"{frame.base}/live/getMatchMetaData": [named_meta(match, start_wall)],
        f"match-{match.key}": meta(match, start_wall) | sides | {"fkey": match.key},
        f"{frame.base}/api/v3/getSV3": live(match, state) | readable(match, state),
        f"{frame.base}/commentary/v2/getBallFeeds": feed,
        f"{frame.base}/mapping/getHomeMapDataliveparsing": names([match]),
    }
    if state.toss_winner is not None:
        told[f"{frame.base}/i/live/getPostMatchDataV2"] = [post_match(state)]
    if has_more_innings(state):
        told[f"{frame.base}/api/v3/getSC4"] = scorecard(state)
    return told


def has_more_innings(state: CricketState) -> bool:
    """Than the live state has room for."""
    return len(state.innings) > 2


def tab_state(told: dict[str, Any], frame: Frame, match: Match, state: CricketState, tab: str) -> dict[str, Any]:
    """What the other tabs of a match's page carry besides."""
    if tab in ("match-details", "info"):
        return told | {f"{frame.base}/api/v3/getIV4": squads(match, state)}
    return told | {f"{frame.base}/api/v3/getSC4": scorecard(state)}


def list_page(frame: Frame, rows: list[tuple[Match, CricketState]], listing: dict[str, Any]) -> str:
    cards = "".join(f"<!--card-->{card(match, state)}" for match, state in rows)
    content = f'<h1>Cricket live score</h1><div class="live-cards">{cards}<!--/cards--></div>'
    state = {
        f"{frame.base}/api/v3/getLiveMatches": listing,
        f"{frame.base}/mapping/getHomeMapDataliveparsing": names([match for match, _ in rows]),
    }
    return document(frame, "Cricket live score", content, state, "list")


def schedule_page(frame: Frame, rows: list[dict[str, Any]], named: dict[str, Any]) -> str:
    """What is to come. Its fixtures are in its state only."""
    told = {
        f"{frame.base}/fixture/getFixture": rows,
        f"{frame.base}/mapping/getHomeMapDatafixture": named,
    }
    return document(frame, "Cricket schedule", "<h1>Cricket schedule</h1>", told, "list")


def card(match: Match, state: CricketState) -> str:
    tag = {"live": "Live", "upcoming": "Upcoming"}.get(state.status, "Finished")
    sides = "".join(_card_side(match, state, number) for number in (0, 1))
    return f"""<div class="live-card" data-key="{match.key}"><div class="live-card-top">
<a href="/crex/series/{slug(match.series[0])}-{series_key(match)}">
<div class="live"><div class="ce-data"><div id="circle"></div><span class="liveTag"> {tag} </span>
<div class="br-right"></div>
<div class="snameTag"> {escape(match.series[1])} </div></div></div></a></div>
<a href="{match_path(match)}"><div class="live-card-middle middleContentHeight">
<div class="match-number"> {match_name(match).removesuffix(" match")} {match.format}<span>, </span>
<span>{escape(match.venue)}</span></div>
<div class="d-flex"><div class="live-c-w">{sides}</div></div>
<span class="comment">{escape(comment(match, state))} </span><div class="comment"> </div></div></a></div>"""


def _card_side(match: Match, state: CricketState, number: int) -> str:
    team, innings = match.teams[number], latest(state, number)
    score = drawn_score(innings)
    overs = innings.overs_text if innings else ""
    return (
        f'<div class="team-score"><img loading="lazy" width="45" height="45" src="/crex/assets/flag/{team.key}.png" '
        f'title="{team.short}" alt="{team.short} flag"><span class="team-name">{team.short}</span>'
        f'<span> {score} </span><span class="match-over"> {overs} </span></div>'
    )
