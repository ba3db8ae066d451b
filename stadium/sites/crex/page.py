"""HTML pages of the site, and the state blob that Angular embeds in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.simulation import iso
from stadium.matches.teams import slug
from stadium.sites.crex.ball_codes import code
from stadium.sites.crex.details import meta, named_meta, post_match
from stadium.sites.crex.display_fields import comment, display_fields, latest_innings, score_with_dash
from stadium.sites.crex.listing import match_name, match_path, names
from stadium.sites.crex.live import live, series_key
from stadium.sites.crex.scorecard import scorecard, squads

_STATE_ESCAPES = (("&", "&a;"), ('"', "&q;"), ("'", "&s;"), ("<", "&l;"), (">", "&g;"))


@dataclass(frozen=True, slots=True)
class PageContext:
    """The parameters that all pages share."""

    base: str  # absolute URL of the site, without trailing slash
    nonce: str
    token: str = ""  # for the page's script, in a page that contains one


def document(context: PageContext, title: str, content: str, state: dict[str, Any], view: str) -> str:
    token = f'<meta name="cx-t" content="{escape(context.token)}">' if context.token else ""
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="cx-n" content="{context.nonce}"><link rel="icon" href="data:,">
<link rel="stylesheet" href="/crex/assets/style.css">
<link rel="preload" as="font" href="/crex/assets/font.woff2" crossorigin>{token}</head>
<body data-view="{view}"><app-root><header><img alt="logo" src="/crex/assets/logo.png"></header>
{content}
</app-root><script id="app-root-state" type="application/json">{encode_state(state)}</script>
<script src="/crex/assets/app.js" defer></script></body></html>"""


def match_page(
    context: PageContext,
    match: Match,
    state: CricketState,
    start_wall: float,
    feed: list[dict[str, Any]],
    *,
    tab: str = "live",
) -> str:
    first, second = match.teams
    content = match_content(match, state, start_wall, display_fields(match, state), feed)
    title = f"{first.short} vs {second.short} live score, {match_name(match)} {match.format}"
    blob = match_state(context, match, state, start_wall, feed)
    if tab != "live":
        blob = tab_state(blob, context, match, state, tab)
    return document(context, title, content, blob, "match")


def match_content(
    match: Match, state: CricketState, start_wall: float, fields: dict[str, Any], feed: list[dict[str, Any]]
) -> str:
    first, second = match.teams
    return f"""<div class="match-info"><h1 class="name-wrapper">
<span>{escape(first.name)} vs {escape(second.name)}</span></h1>
<div class="s-name">{escape(match.series[0])}</div><div class="match-date">{iso(start_wall)}</div>
<div class="match-venue">{escape(match.venue)}</div><div class="toss-wrap"><p>{escape(state.toss)}</p></div></div>
{_header(state, fields)}
{_commentary(feed)}"""


def _header(state: CricketState, fields: dict[str, Any]) -> str:
    """Class names and order of the spans are those of the real site: the second team has them in reverse order."""
    return f"""<div class="team-header">
<div class="team-inning"><div class="team-img pdl-0"><img alt="team important image" src="{fields["team1flag"]}"></div>
<div class="team-content"><div class="team-name team-1"> {escape(fields["team1"])} <span class="inning-f"> </span></div>
<div class="team-score"><div class="runs f-runs">
<span>{fields["score1"]}</span><span>{_overs(fields["over1"])}</span></div></div></div></div>
<div class="team-result"><div class="result-box">
<span class="font3 font4"> {escape(_result_box(state))} </span></div></div>
<div class="team-inning second-inning"><div class="team-content second-team">
<div class="team-name team-2 text-right"><span class="inning-f"> </span><div> {escape(fields["team2"])}</div></div>
<div class="team-score text-right"><div class="runs second-innings">
<span>{_overs(fields["over2"])}</span><span>{fields["score2"]} </span></div></div></div>
<div class="final-result blinking2 des-none"> {escape(comment(state))} </div>
<div class="team-img m-none"><img alt="team image" src="{fields["team2flag"]}"></div></div></div>"""


def _overs(text: str) -> str:
    return f"({text})" if text else ""


def _result_box(state: CricketState) -> str:
    if state.is_over:
        return f"{state.result_long} 🏆" if " won " in state.result_long else state.result_long
    if state.is_paused and state.notice:
        return state.notice.text
    return code(state.last_ball) if state.last_ball else ""


def _commentary(feed: list[dict[str, Any]]) -> str:
    """The balls of the feed, newest first."""
    cards = "".join(_ball_card(item) for item in feed if item["type"] == "b")
    return f"<app-match-commentary>{cards}</app-match-commentary>"


def _ball_card(item: dict[str, Any]) -> str:
    text = item["b"]
    return (
        '<div class="cm-b-roundcard d-flex align-items-center flex-coloum"><div class="d-flex align-items-baseline">'
        f'<span class="cm-b-over"> {item["o"]} </span>'
        f'<span class="cm-b-ballupdate cm-o-b-{text.lower()} cm-o-b-all"> {text} '
        f'</span><span class="cm-b-comment-c2">{item["c2"]}</span>'
        f'<span class="cm-b-comment-c1">{escape(item["c1"])}</span></div></div>'
    )


def match_state(
    context: PageContext, match: Match, state: CricketState, start_wall: float, feed: list[dict[str, Any]]
) -> dict[str, Any]:
    first, second = match.teams
    sides = {"team1": {"name": first.name, "fkey": first.key}, "team2": {"name": second.name, "fkey": second.key}}
    blob = {
        f"{context.base}/live/getMatchMetaData": [named_meta(match, start_wall)],
        f"match-{match.key}": meta(match, start_wall) | sides | {"fkey": match.key},
        f"{context.base}/api/v3/getSV3": live(match, state) | display_fields(match, state),
        f"{context.base}/commentary/v2/getBallFeeds": feed,
        f"{context.base}/mapping/getHomeMapDataliveparsing": names([match]),
    }
    if state.toss_winner is not None:
        blob[f"{context.base}/i/live/getPostMatchDataV2"] = [post_match(state)]
    if has_more_innings(state):
        blob[f"{context.base}/api/v3/getSC4"] = scorecard(state)
    return blob


def has_more_innings(state: CricketState) -> bool:
    """True if there are more innings than the live state has fields for."""
    return len(state.innings) > 2


def tab_state(
    blob: dict[str, Any], context: PageContext, match: Match, state: CricketState, tab: str
) -> dict[str, Any]:
    """Adds the state of another tab of a match's page."""
    if tab in ("match-details", "info"):
        return blob | {f"{context.base}/api/v3/getIV4": squads(match, state)}
    return blob | {f"{context.base}/api/v3/getSC4": scorecard(state)}


def list_page(context: PageContext, rows: list[tuple[Match, CricketState]], listing: dict[str, Any]) -> str:
    cards = "".join(f"<!--card-->{card(match, state)}" for match, state in rows)
    content = f'<h1>Cricket live score</h1><div class="live-cards">{cards}<!--/cards--></div>'
    state = {
        f"{context.base}/api/v3/getLiveMatches": listing,
        f"{context.base}/mapping/getHomeMapDataliveparsing": names([match for match, _ in rows]),
    }
    return document(context, "Cricket live score", content, state, "list")


def schedule_page(context: PageContext, rows: list[dict[str, Any]], named: dict[str, Any]) -> str:
    """Coming matches; they are in the state blob only."""
    blob = {
        f"{context.base}/fixture/getFixture": rows,
        f"{context.base}/mapping/getHomeMapDatafixture": named,
    }
    return document(context, "Cricket schedule", "<h1>Cricket schedule</h1>", blob, "list")


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
<span class="comment">{escape(comment(state))} </span><div class="comment"> </div></div></a></div>"""


def _card_side(match: Match, state: CricketState, number: int) -> str:
    team, innings = match.teams[number], latest_innings(state, number)
    score = score_with_dash(innings)
    overs = innings.overs_text if innings else ""
    return (
        f'<div class="team-score"><img loading="lazy" width="45" height="45" src="/crex/assets/flag/{team.key}.png" '
        f'title="{team.short}" alt="{team.short} flag"><span class="team-name">{team.short}</span>'
        f'<span> {score} </span><span class="match-over"> {overs} </span></div>'
    )


def encode_state(state: Mapping[str, object]) -> str:
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    for plain, escaped in _STATE_ESCAPES:
        text = text.replace(plain, escaped)
    return text


def decode_state(text: str) -> dict[str, object]:
    """The ampersand is replaced last, so that a literal escape in a text is not decoded twice."""
    for plain, escaped in reversed(_STATE_ESCAPES):
        text = text.replace(escaped, plain)
    state: dict[str, object] = json.loads(text)
    return state
