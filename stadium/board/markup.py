"""The markup of a match and of the list of matches."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from stadium.board.skins import Skin
from stadium.crex.listing import ordinal
from stadium.cricket.state import BatterLine, BowlerLine, CricketState
from stadium.people import slug
from stadium.programme import Match
from stadium.world import iso

BALLS_SHOWN = 12
STATES = {"upcoming": "Upcoming", "live": "Live", "completed": "Result", "abandoned": "Abandoned"}
NOTES = {
    "scheduled": "",
    "toss": "Toss",
    "in_play": "In play",
    "innings_break": "Innings break",
    "rain": "Rain stops play",
}
CODES = {"w": "OUT", "o": "END"}  # of the cards between the balls


def match_path(match: Match) -> str:
    first, second = match.teams
    return f"/board/match/{slug(f'{first.short} v {second.short} {match.format}')}-{match.key}"


def page(title: str, content: str, clock: str, *, live: str = "") -> str:
    """`live` is the key of the match whose page keeps itself fresh."""
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/board/assets/style.css"></head>
<body data-live="{live}"><header><img alt="" src="/board/assets/logo.png"></header>
<main id="b">{content}</main><footer id="c">{clock}</footer>
<script src="/board/assets/app.js" defer></script></body></html>"""


def clock(skin: Skin, wall: float) -> str:
    """When the page was last told something, if only that nothing is new."""
    return f'<time {skin.mark("as-of")} datetime="{iso(wall)}">{iso(wall)[11:19]}</time>'


def board(skin: Skin, match: Match, state: CricketState, start_wall: float, balls: Sequence[dict[str, Any]]) -> str:
    """`balls` newest first, at most BALLS_SHOWN."""
    first, second = match.teams
    title = f"{first.name} v {second.name}, {ordinal(match.turn + 1)} {match.format}"
    parts = {
        "key": match.key,
        "fixture": title,
        "series": match.series[0],
        "format": match.format,
        "venue": match.venue,
        "state": STATES[state.status],
        "note": NOTES.get(state.phase, ""),
        "toss": state.toss,
        "outcome": state.result_long,
    }
    lines = [_part(skin, name, text) for name, text in parts.items()]
    lines.append(f'<time {skin.mark("start")} datetime="{iso(start_wall)}">{iso(start_wall)[:10]}</time>')
    lines += [_side(skin, match, state, number) for number in (0, 1)]
    lines += [_crease(skin, state), _balls(skin, balls)]
    if len(balls) == BALLS_SHOWN:
        lines.append(f'<a {skin.mark("older")} href="{match_path(match)}?before={balls[-1]["id"]}">Earlier balls</a>')
    return "\n".join(lines)


def _part(skin: Skin, name: str, text: str) -> str:
    return f"<{skin.tag} {skin.mark(name)}>{escape(text)}</{skin.tag}>"


def _side(skin: Skin, match: Match, state: CricketState, number: int) -> str:
    team, side = match.teams[number], "ab"[number]
    innings = state.innings[number] if number < len(state.innings) else None
    total = f"{innings.score} ({innings.overs_text} ov)" if innings else ""
    return (
        f'<div {skin.mark(f"side-{side}")}><img alt="" src="/board/assets/flag/{team.key}.png">'
        f"<b {skin.mark(f'name-{side}')}>{escape(team.name)}</b> <i {skin.mark(f'short-{side}')}>{team.short}</i> "
        f"<span {skin.mark(f'total-{side}')}>{total}</span></div>"
    )


def _crease(skin: Skin, state: CricketState) -> str:
    innings = state.current
    if innings is None or not innings.overs:
        return ""
    batters = "".join(_batter(skin, innings.batters[player.key]) for player in innings.crease)
    return f"<ul>{batters}</ul>{_bowler(skin, innings.bowlers[innings.overs[-1].bowler.key])}"


def _batter(skin: Skin, line: BatterLine) -> str:
    return f"<li {skin.mark('batter')}>{escape(line.player.name)} {line.runs} ({line.balls})</li>"


def _bowler(skin: Skin, line: BowlerLine) -> str:
    figures = f"{line.wickets}-{line.runs} ({line.overs})"
    return f"<{skin.tag} {skin.mark('bowler')}>{escape(line.player.name)} {figures}</{skin.tag}>"


def _balls(skin: Skin, items: Sequence[dict[str, Any]]) -> str:
    return "".join(["<div>", *(_ball(skin, item) for item in items), "</div>"])


def _ball(skin: Skin, item: dict[str, Any]) -> str:
    """One item of the ball feed, in words."""
    code, said = CODES.get(item["type"], ""), ""
    if item["type"] == "b":
        code, said = item["b"], f"{item['c1']}, {item['c2']}"
    elif item["type"] == "w":
        said = f"{item['player_fullname']} {item['wicketDesc']} {item['r']} ({item['b']})"
    else:
        said = f"End of over {item['o']}: {item['team']} {item['s']}"
    return (
        f"<article {skin.mark('ball')} {skin.number_ball(item['id'], item.get('delivery'))}>"
        f"<span {skin.mark('innings')}>{item['inning'] + 1}</span> <span {skin.mark('over')}>{item['o']}</span> "
        f"<b {skin.mark('code')}>{code}</b> <q {skin.mark('said')}>{said}</q></article>"
    )


def cards(skin: Skin, rows: Sequence[tuple[Match, CricketState]]) -> str:
    listed = "".join(f"<!--card-->{_card(skin, match, state)}" for match, state in rows)
    return f"<h1>Scoreboards</h1><div {skin.mark('list')}>{listed}<!--/cards--></div>"


def _card(skin: Skin, match: Match, state: CricketState) -> str:
    first, second = match.teams
    return (
        f'<div {skin.mark("card")}><a {skin.mark("link")} href="{match_path(match)}">'
        f"{escape(first.name)} v {escape(second.name)}</a> <em {skin.mark('state')}>{STATES[state.status]}</em></div>"
    )
