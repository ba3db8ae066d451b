"""The pages of the site. They carry little data: the script fetches it."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from stadium.football.state import FootballState
from stadium.people import slug
from stadium.programme import Match
from stadium.sofascore.event import match_path


def document(nonce: str, title: str, content: str, data: dict[str, Any]) -> str:
    blob = json.dumps({"props": {"pageProps": data}}, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="sf-n" content="{nonce}"><link rel="icon" href="data:,">
<link rel="stylesheet" href="/sofascore/assets/style.css"></head>
<body><header><img alt="logo" src="/sofascore/assets/logo.png"></header><main id="__next">{content}</main>
<script id="__NEXT_DATA__" type="application/json">{blob}</script>
<script src="/sofascore/assets/app.js" defer></script></body></html>"""


def match_page(nonce: str, match: Match, state: FootballState, event: dict[str, Any]) -> str:
    home, away = match.teams
    goals = [str(number) for number in state.goals] if state.period else ["-", "-"]
    content = f"""<div class="match-header" data-event-id="{event["id"]}">
<h1>{escape(home.name)} - {escape(away.name)}</h1>
<div class="tournament">{escape(match.series[0])}</div><div class="status">{event["status"]["description"]}</div>
<div class="score"><span class="home" data-testid="left_score">{goals[0]}</span> -
<span class="away" data-testid="right_score">{goals[1]}</span></div>
<div class="venue">{escape(match.venue)}</div></div><ol class="incidents"></ol>"""
    return document(nonce, f"{home.name} vs {away.name} live score", content, {"event": event})


def home_page(nonce: str, rows: list[tuple[Match, FootballState]], date: str) -> str:
    cards = "".join(f"<!--card-->{_link(match, state)}" for match, state in rows)
    content = f'<h1>Football</h1><div class="events" data-date="{date}">{cards}<!--/cards--></div>'
    return document(nonce, "Football live scores", content, {"date": date})


def _link(match: Match, state: FootballState) -> str:
    home, away = match.teams
    goals = " - ".join(str(number) for number in state.goals) if state.period else "-"
    return (
        f'<a class="event-link" data-id="{match.key}" href="{match_path(match)}"><span class="teams">'
        f'{escape(home.name)} - {escape(away.name)}</span> <span class="score">{goals}</span> '
        f'<span class="status">{slug(state.phase)}</span></a>'
    )
