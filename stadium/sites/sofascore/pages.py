"""HTML pages of the site. They contain little data: their script requests it from the API."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from stadium.matches.programme import Match
from stadium.matches.teams import slug


def document(head: str, title: str, content: str, data: dict[str, Any]) -> str:
    blob = json.dumps({"props": {"pageProps": data}}, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
{head}
<link rel="icon" href="data:,"><link rel="stylesheet" href="/sofascore/assets/style.css"></head>
<body><header><img alt="logo" src="/sofascore/assets/logo.png"></header><main id="__next">{content}</main>
<script id="__NEXT_DATA__" type="application/json">{blob}</script>
<script src="/sofascore/assets/app.js" defer></script></body></html>"""


def match_page(head: str, match: Match, event: dict[str, Any]) -> str:
    home, away = match.teams
    home_score, away_score = (event[side].get("display", "-") for side in ("homeScore", "awayScore"))
    content = f"""<div class="match-header" data-event-id="{event["id"]}">
<h1>{escape(home.name)} - {escape(away.name)}</h1>
<div class="tournament">{escape(match.series[0])}</div><div class="status">{event["status"]["description"]}</div>
<div class="score"><span class="home" data-testid="left_score">{home_score}</span> -
<span class="away" data-testid="right_score">{away_score}</span></div>
<div class="venue">{escape(match.venue)}</div></div><ol class="incidents"></ol>"""
    return document(head, f"{home.name} vs {away.name} live score", content, {"event": event})


def home_page(head: str, sport: str, links: list[str], date: str, tournaments: list[int]) -> str:
    """`tournaments` are the ids whose events of the day the page's script requests."""
    cards, name = "".join(f"<!--card-->{link}" for link in links), sport.capitalize()
    content = f'<h1>{name}</h1><div class="events" data-date="{date}">{cards}<!--/cards--></div>'
    return document(head, f"{name} live scores", content, {"date": date, "tournaments": tournaments})


def link(match: Match, path: str, score: str, phase: str) -> str:
    teams = " - ".join(team.name for team in match.teams)
    return (
        f'<a class="event-link" data-id="{match.key}" href="{path}"><span class="teams">'
        f'{escape(teams)}</span> <span class="score">{score}</span> '
        f'<span class="status">{slug(phase)}</span></a>'
    )
