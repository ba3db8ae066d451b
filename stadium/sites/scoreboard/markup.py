"""Markup of a match and of the list of matches, in the layouts that the fault `layout` switches between."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from stadium.cricket.innings import BatterLine, BowlerLine
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.simulation import iso
from stadium.matches.teams import ordinal, slug

BALLS_SHOWN = 12
STATES = {"upcoming": "Upcoming", "live": "Live", "completed": "Result", "abandoned": "Abandoned"}
NOTES = {
    "scheduled": "",
    "toss": "Toss",
    "in_play": "In play",
    "innings_break": "Innings break",
    "rain": "Rain stops play",
    "postponed": "Postponed",
}
CODES = {"w": "OUT", "o": "END"}  # of the entries between the balls
REDESIGNED, FOREIGN = 2, 0  # values of the fault `layout`; any other value is the default layout


@dataclass(frozen=True, slots=True)
class Layout:
    """The attributes that identify the parts of a page and the balls."""

    number: int
    tag: str
    ball_id: str
    ball_number: str

    def mark(self, part: str) -> str:
        if self.number == REDESIGNED:
            return f'class="css-{zlib.crc32(part.encode()):x}" data-part="{part}"'
        if self.number == FOREIGN:
            return f'class="z{zlib.crc32(part[::-1].encode()):x}"'
        return f'class="sb-{part}"'

    def number_ball(self, identity: int, delivery: int | None) -> str:
        if self.number == FOREIGN:
            return ""
        counted = f' {self.ball_number}="{delivery}"' if delivery else ""
        return f'{self.ball_id}="{identity}"{counted}'


DEFAULT = Layout(1, "p", "data-id", "data-n")
_CHANGED = {
    REDESIGNED: Layout(REDESIGNED, "div", "data-ball", "data-no"),
    FOREIGN: Layout(FOREIGN, "section", "", ""),
}


def layout_for(fault_value: float | None) -> Layout:
    """Returns the layout for the value of a `layout` fault; None if there is no such fault."""
    return DEFAULT if fault_value is None else _CHANGED.get(int(fault_value), DEFAULT)


def match_path(match: Match) -> str:
    first, second = match.teams
    return f"/board/match/{slug(f'{first.short} v {second.short} {match.format}')}-{match.key}"


def page(title: str, content: str, clock: str, *, live: str = "") -> str:
    """`live` is the key of the match whose page updates itself."""
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/board/assets/style.css"></head>
<body data-live="{live}"><header><img alt="" src="/board/assets/logo.png"></header>
<main id="b">{content}</main><footer id="c">{clock}</footer>
<script src="/board/assets/app.js" defer></script></body></html>"""


def clock(layout: Layout, wall: float) -> str:
    """The time of the page's last update, with or without changes."""
    return f'<time {layout.mark("as-of")} datetime="{iso(wall)}">{iso(wall)[11:19]}</time>'


def scoreboard(
    layout: Layout, match: Match, state: CricketState, start_wall: float, balls: Sequence[dict[str, Any]]
) -> str:
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
    lines = [_part(layout, name, text) for name, text in parts.items()]
    lines.append(f'<time {layout.mark("start")} datetime="{iso(start_wall)}">{iso(start_wall)[:10]}</time>')
    lines += [_side(layout, match, state, number) for number in (0, 1)]
    lines += [_crease(layout, state), _balls(layout, balls)]
    if len(balls) == BALLS_SHOWN:
        lines.append(f'<a {layout.mark("older")} href="{match_path(match)}?before={balls[-1]["id"]}">Earlier balls</a>')
    return "\n".join(lines)


def _part(layout: Layout, name: str, text: str) -> str:
    return f"<{layout.tag} {layout.mark(name)}>{escape(text)}</{layout.tag}>"


def _side(layout: Layout, match: Match, state: CricketState, number: int) -> str:
    team, side = match.teams[number], "ab"[number]
    innings = state.innings[number] if number < len(state.innings) else None
    total = f"{innings.score} ({innings.overs_text} ov)" if innings else ""
    return (
        f'<div {layout.mark(f"side-{side}")}><img alt="" src="/board/assets/flag/{team.key}.png">'
        f"<b {layout.mark(f'name-{side}')}>{escape(team.name)}</b> <i {layout.mark(f'short-{side}')}>{team.short}</i> "
        f"<span {layout.mark(f'total-{side}')}>{total}</span></div>"
    )


def _crease(layout: Layout, state: CricketState) -> str:
    innings = state.current
    if innings is None or not innings.overs:
        return ""
    batters = "".join(_batter(layout, innings.batters[player.key]) for player in innings.crease)
    return f"<ul>{batters}</ul>{_bowler(layout, innings.bowlers[innings.overs[-1].bowler.key])}"


def _batter(layout: Layout, line: BatterLine) -> str:
    return f"<li {layout.mark('batter')}>{escape(line.player.name)} {line.runs} ({line.balls})</li>"


def _bowler(layout: Layout, line: BowlerLine) -> str:
    figures = f"{line.wickets}-{line.runs} ({line.overs})"
    return f"<{layout.tag} {layout.mark('bowler')}>{escape(line.player.name)} {figures}</{layout.tag}>"


def _balls(layout: Layout, items: Sequence[dict[str, Any]]) -> str:
    return "".join(["<div>", *(_ball(layout, item) for item in items), "</div>"])


def _ball(layout: Layout, item: dict[str, Any]) -> str:
    """One item of the ball feed, as text."""
    code = CODES.get(item["type"], "")
    if item["type"] == "b":
        code, text = item["b"], f"{item['c1']}, {item['c2']}"
    elif item["type"] == "w":
        text = f"{item['player_fullname']} {item['wicketDesc']} {item['r']} ({item['b']})"
    else:
        text = f"End of over {item['o']}: {item['team']} {item['s']}"
    return (
        f"<article {layout.mark('ball')} {layout.number_ball(item['id'], item.get('delivery'))}>"
        f"<span {layout.mark('innings')}>{item['inning'] + 1}</span> <span {layout.mark('over')}>{item['o']}</span> "
        f"<b {layout.mark('code')}>{code}</b> <q {layout.mark('said')}>{text}</q></article>"
    )


def cards(layout: Layout, rows: Sequence[tuple[Match, CricketState]]) -> str:
    listed = "".join(f"<!--card-->{_card(layout, match, state)}" for match, state in rows)
    return f"<h1>Scoreboards</h1><div {layout.mark('list')}>{listed}<!--/cards--></div>"


def _card(layout: Layout, match: Match, state: CricketState) -> str:
    first, second = match.teams
    return (
        f'<div {layout.mark("card")}><a {layout.mark("link")} href="{match_path(match)}">'
        f"{escape(first.name)} v {escape(second.name)}</a> <em {layout.mark('state')}>{STATES[state.status]}</em></div>"
    )
