"""Matches in the formats of the two sites, new for every test, which may change them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from scraping.payloads import Parsed
from scraping.sources.base import Document, Reading, ReadMode, RefInfo

START = datetime(2026, 5, 2, 14, 0, tzinfo=UTC)
DURING = datetime(2026, 5, 2, 16, 30, tzinfo=UTC)
BEFORE = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)

CREX_BASE = "http://site.test/crex"
CREX = RefInfo("9XA", f"{CREX_BASE}/cricket-live-score/orc-vs-pel-4th-match-lantern-cup-match-updates-9XA")
SOFA_BASE = "http://site.test/sofascore"
SOFA = RefInfo("7001", f"{SOFA_BASE}/en/football/match/alder-birch/AbCd#id:7001")


def document(name: str, body: Any, status: int = 200, url: str = "") -> Document:
    """A JSON answer, or an HTML one if the body is text."""
    is_html = isinstance(body, str | bytes)
    raw = (body if isinstance(body, bytes) else body.encode()) if is_html else json.dumps(body).encode()
    return Document(
        name, url or f"http://site.test/{name}", status, "text/html" if is_html else "application/json", raw
    )


def reading(
    ref: RefInfo, *documents: Document, mode: ReadMode = ReadMode.VISIT, captured_at: datetime = DURING
) -> Reading:
    return Reading(ref, mode, captured_at, {one.name: one for one in documents})


def broken(read: Parsed) -> dict[str, int]:
    """Returns how often each part was left out, by its path."""
    return {part.path: part.count for part in read.integrity.broken_parts}


def live(**changes: Any) -> dict[str, Any]:
    """A chase: Orchard made 151 all out, Pelican are 88 for 2."""
    return {
        "a": "OR.PE", "j": "151/10(19.2", "k": "88/2(10.3", "B": "4", "A": "1.4.4", "fo": "T20", "h": "1",
        "l": "9:0.1.0.2.0.1", "m": "10:1.1.0.0.4.1", "n": "8:0.0.0.1.0.0", "ms": 0, "st": "27", "status": 1,
        "dt_id": "5150", "sf": "LC",
    } | changes  # fmt: skip


def ball(number: int, code: str = "1", **changes: Any) -> dict[str, Any]:
    return {
        "id": 1_777_734_000_000 + number * 30_000, "mfkey": "9XA", "type": "b", "fv": 2, "inning": 1, "b": code,
        "o": "10.3", "on": 10, "s": "88/2", "c1": "Ada Reed to Bo Finch", "c2": "<b>Driven</b> past cover",
        "pf": "P1", "bf": "B1", "delivery": number, "ball_db_id": f"77-{number}",
    } | changes  # fmt: skip


def feed() -> list[dict[str, Any]]:
    """Newest first: an over's end, a four, a wicket with its card, a no-ball."""
    card = {
        "id": 1_777_734_000_000 + 178 * 30_000 + 3_000, "mfkey": "9XA", "type": "w", "fv": 64, "inning": 1, "o": "9.6",
        "player_fullname": "Cy Moss", "r": 31, "b": 22, "wicketDesc": "c Reed b Vale", "dismissal": 2, "wn": 2,
    }  # fmt: skip
    over = {
        "id": 1_777_734_000_000 + 180 * 30_000 + 4_000, "mfkey": "9XA", "type": "o", "fv": 32, "inning": 1, "o": 10,
        "runs": 7, "s": "83/2", "team": "Pelican Town", "bowler": "Ada Reed",
    }  # fmt: skip
    return [ball(181, "4", fv=8), over, ball(179, "1nb", o="9.6"), card, ball(178, "W", o="9.6")]


def state(**changes: Any) -> dict[str, Any]:
    """Returns the page's state blob; its team1 is the batting side."""
    rendered = live(
        team1="PEL", team1_f_n="Pelican Town", team1short="PEL", team1flag="/flags/PE.png",
        team2="ORC", team2_f_n="Orchard City", team2short="ORC", team2flag="/flags/OR.png",
        comment1="PEL need 64 runs in 57 balls", inning=2, target=152, score1="88-2", over1="10.3",
    )  # fmt: skip
    return {
        "match-9XA": {
            "fkey": "9XA", "mn": "4", "t": "2026-05-02T14:00:00.000Z", "v": "Lantern Field, Orchard", "sf": "LC",
            "dt": 5150, "team1": {"name": "Orchard City", "fkey": "OR"},
            "team2": {"name": "Pelican Town", "fkey": "PE"},
        },
        "https://live.test/api/v3/getSV3?key=9XA": rendered,
        "https://feeds.test/commentary/v2/getBallFeeds": feed(),
        "https://names.test/mapping/getHomeMapDataliveparsing": {
            "t": [{"f_key": "OR", "n": "Orchard City", "sn": "ORC"}, {"f_key": "PE", "n": "Pelican Town", "sn": "PEL"}],
            "s": [{"f_key": "ZZ", "n": "Another Cup"}, {"f_key": "LC", "n": "Lantern Cup & Shield"}],
        },
    } | changes  # fmt: skip


def encode(blob: dict[str, Any]) -> str:
    text = json.dumps(blob)
    for character, escape in (("&", "&a;"), ('"', "&q;"), ("'", "&s;"), ("<", "&l;"), (">", "&g;")):
        text = text.replace(character, escape)
    return text


def page_html(blob: dict[str, Any] | None, body: str = "") -> str:
    script = f'<script id="app-root-state" type="application/json">{encode(blob)}</script>' if blob is not None else ""
    return f"<!doctype html><html><head><title>ORC vs PEL</title></head><body>{body}{script}</body></html>"


HEADER = """
<div class="team-inning"><div class="team-content"><div class="team-name team-1"> PEL <span> </span></div>
<div class="team-score"><div class="runs f-runs"><span>88-2</span><span>(10.3)</span></div></div></div></div>
<div class="team-result"><div class="result-box"><span> {said} </span></div></div>
<div class="team-inning second-inning"><div class="team-content"><div class="team-name team-2"><div> ORC</div></div>
<div class="team-score"><div class="runs"><span>(19.2)</span><span>151-10 </span></div></div></div></div>
<div class="cm-b-roundcard"><span class="cm-b-over"> 10.3 </span><span class="cm-b-ballupdate"> 4 </span>
<span class="cm-b-comment-c1">Ada Reed to Bo Finch</span></div>
"""


def page(blob: dict[str, Any] | None = None, body: str = "", name: str = "page") -> Document:
    return document(name, page_html(state() if blob is None else blob, body), url=CREX.url)


def event(**changes: Any) -> dict[str, Any]:
    """Alder 2, Birch 1, in the second half since 16:00."""
    return {
        "id": 7001, "slug": "alder-birch", "customId": "AbCd", "startTimestamp": int(START.timestamp()),
        "status": {"code": 7, "type": "inprogress", "description": "2nd half"},
        "homeTeam": {"id": 1, "name": "Alder Athletic", "nameCode": "ALD", "shortName": "Alder"},
        "awayTeam": {"id": 2, "name": "Birch Rovers", "nameCode": "BIR"},
        "homeScore": {"current": 2, "display": 2, "period1": 1, "normaltime": 2},
        "awayScore": {"current": 1, "display": 1, "period1": 1, "normaltime": 1},
        "time": {
            "currentPeriodStartTimestamp": int(datetime(2026, 5, 2, 16, 0, tzinfo=UTC).timestamp()),
            "initial": 2700, "max": 5400, "extra": 540,
        },
        "tournament": {
            "name": "Copse League", "category": {"name": "Wood", "sport": {"slug": "football"}},
            "uniqueTournament": {"id": 9, "name": "Copse League"},
        },
        "season": {"id": 3, "year": "2026"}, "roundInfo": {"round": 5},
        "venue": {"name": "Alder Park", "city": {"name": "Copse"}},
    } | changes  # fmt: skip


def incidents(*more: dict[str, Any]) -> dict[str, Any]:
    """Newest first: goals at 70, 40 and 12, with what lies between."""

    def goal(number: int, minute: int, is_home: bool, score: tuple[int, int], kind: str = "regular") -> dict[str, Any]:
        return {
            "incidentType": "goal", "incidentClass": kind, "id": number, "time": minute, "isHome": is_home,
            "homeScore": score[0], "awayScore": score[1], "player": {"name": "Rowan Elm", "shortName": "R. Elm"},
            "footballPassingNetworkAction": [{"x": 1}] * 50,
        }  # fmt: skip

    return {
        "incidents": [
            *more,
            {"incidentType": "period", "text": "Second half", "isLive": True, "time": 90, "addedTime": 999},
            goal(503, 70, True, (2, 1), "penalty"),
            {"incidentType": "substitution", "incidentClass": "regular", "id": 604, "time": 60, "isHome": True,
             "playerIn": {"name": "Ash Dell"}, "playerOut": {"name": "Rowan Elm"}},
            {"incidentType": "period", "text": "HT", "isLive": False, "time": 45, "addedTime": 999,
             "homeScore": 1, "awayScore": 1},
            {"incidentType": "injuryTime", "length": 2, "time": 45, "addedTime": 0},
            goal(502, 40, False, (1, 1), "ownGoal"),
            {"incidentType": "card", "incidentClass": "yellow", "id": 601, "time": 33, "isHome": False,
             "playerName": "Moss Fern", "player": {"name": "Moss Fern"}, "reason": "Foul", "rescinded": False},
            goal(501, 12, True, (1, 0)),
        ]
    }  # fmt: skip
