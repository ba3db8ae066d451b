"""The pages of the site. They carry little data: the script fetches it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import Any

from stadium.people import slug
from stadium.programme import Match


@dataclass(frozen=True)
class Part:
    """Football or cricket: where it stands, and the cookie that its script works out."""

    sport: str
    base: str
    cookie: str


FOOTBALL = Part("football", "/sofascore", "sfclr")
CRICKET = Part("cricket", "/sofascorecricket", "sfcclr")


@dataclass(frozen=True)
class Row:
    """A match on the home page."""

    key: str
    path: str
    teams: str
    score: str
    phase: str


@dataclass(frozen=True)
class Home:
    part: Part
    date: str
    tournaments: tuple[int, ...]  # whose day the script asks for


def document(nonce: str, title: str, content: str, data: dict[str, Any], part: Part = FOOTBALL) -> str:
    blob = json.dumps({"props": {"pageProps": data}}, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="sf-n" content="{nonce}"><meta name="sf-part" content="{part.sport} {part.base} {part.cookie}">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/sofascore/assets/style.css"></head>
<body><header><img alt="logo" src="/sofascore/assets/logo.png"></header><main id="__next">{content}</main>
<script id="__NEXT_DATA__" type="application/json">{blob}</script>
<script src="/sofascore/assets/app.js" defer></script></body></html>"""


def match_page(nonce: str, match: Match, event: dict[str, Any], scores: tuple[str, str], part: Part = FOOTBALL) -> str:
    home, away = match.teams
    content = f"""<div class="match-header" data-event-id="{event["id"]}">
<h1>{escape(home.name)} - {escape(away.name)}</h1>
<div class="tournament">{escape(match.series[0])}</div><div class="status">{event["status"]["description"]}</div>
<div class="score"><span class="home" data-testid="left_score">{scores[0]}</span> -
<span class="away" data-testid="right_score">{scores[1]}</span></div>
<div class="venue">{escape(match.venue)}</div></div><ol class="incidents"></ol>"""
    return document(nonce, f"{home.name} vs {away.name} live score", content, {"event": event}, part)


def home_page(nonce: str, rows: list[Row], home: Home) -> str:
    cards = "".join(f"<!--card-->{_link(row)}" for row in rows)
    name = home.part.sport.capitalize()
    content = f'<h1>{name}</h1><div class="events" data-date="{home.date}">{cards}<!--/cards--></div>'
    data = {"date": home.date, "tournaments": list(home.tournaments)}
    return document(nonce, f"{name} live scores", content, data, home.part)


def _link(row: Row) -> str:
    return (
        f'<a class="event-link" data-id="{row.key}" href="{row.path}"><span class="teams">'
        f'{escape(row.teams)}</span> <span class="score">{row.score}</span> '
        f'<span class="status">{slug(row.phase)}</span></a>'
    )
