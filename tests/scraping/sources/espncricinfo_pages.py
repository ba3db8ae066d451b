"""Matches in the format of ESPNcricinfo's pages, new for every test, which may change them."""

from __future__ import annotations

import json
from typing import Any

from scraping.payloads import Payload
from scraping.sources.base import Document, Reading, ReadMode, RefInfo
from scraping.sources.espncricinfo.adapter import EspncricinfoAdapter
from tests.scraping.sources import builders as build

ADAPTER = EspncricinfoAdapter()
BASE = "http://site.test/espncricinfo"
URL = f"{BASE}/series/lantern-cup-2026-700100/orchard-city-vs-pelican-town-4th-match-800200/live-cricket-score"
REF = RefInfo("800200", URL)
ORCHARD = {"id": 51, "objectId": 9051, "name": "ORC", "longName": "Orchard City", "abbreviation": "ORC"}
PELICAN = {"id": 52, "objectId": 9052, "name": "PEL", "longName": "Pelican Town", "abbreviation": "PEL"}
ADA, BO, CY = (
    {"id": number, "objectId": 70_000 + number, "longName": name, "playingRoles": [role]}
    for number, name, role in ((1, "Ada Reed", "bowler"), (2, "Bo Finch", "opening batter"), (3, "Cy Moss", "batter"))
)


def match(**changes: Any) -> dict[str, Any]:
    """A chase: Orchard made 151 all out, Pelican are 88 for 2."""
    return {
        "id": 4200, "objectId": 800200, "slug": "orchard-city-vs-pelican-town-4th-match", "stage": "RUNNING",
        "state": "LIVE", "title": "4th Match", "startTime": "2026-05-02T14:00:00.000Z", "isCancelled": False,
        "status": "Live", "statusText": "PEL need 64 runs to win", "statusEng": "Live", "winnerTeamId": None,
        "tossWinnerTeamId": 52, "tossWinnerChoice": 2, "resultStatus": None, "liveInning": 2, "liveOvers": 10.04,
        "format": "T20", "isSuperOver": False,
        "series": {"id": 77, "objectId": 700100, "slug": "lantern-cup-2026", "name": "LC", "longName": "Lantern Cup"},
        "ground": {"name": "Lantern Field", "town": {"name": "Orchard", "timezone": "UTC"}},
        "teams": [side(ORCHARD, "151", None, [1]), side(PELICAN, "88/2", "10.3/20 ov, T:152", [2])],
    } | changes  # fmt: skip


def side(team: dict[str, Any], score: str | None, info: str | None = None, numbers: Any = ()) -> dict[str, Any]:
    return {"team": team, "isHome": team is ORCHARD, "score": score, "scoreInfo": info, "inningNumbers": list(numbers)}


def inning(number: int, team: dict[str, Any], runs: int, wickets: int, overs: float, **changes: Any) -> dict[str, Any]:
    return {
        "inningNumber": number, "team": team, "isBatted": True, "isCurrent": False, "runs": runs, "wickets": wickets,
        "overs": overs, "target": 0, "inningBatsmen": [], "inningBowlers": [], "inningOvers": [],
    } | changes  # fmt: skip


def ball(index: int, total: int = 1, *, over: int = 10, legal: int | None = None, **changes: Any) -> dict[str, Any]:
    """Returns the index-th delivery of an over; `legal`: the number in its label after wides."""
    number = index if legal is None else legal
    return {
        "id": 9_000_000 + over * 100 + index, "inningNumber": 2, "overNumber": over + 1, "ballNumber": index,
        "oversUnique": round(over + index / 100, 2), "oversActual": round(over + number / 10, 1), "totalRuns": total,
        "batsmanRuns": total, "isFour": total == 4, "isSix": total == 6, "isWicket": False, "dismissalType": None,
        "byes": 0, "legbyes": 0, "wides": 0, "noballs": 0, "penalties": 0,
        "timestamp": f"2026-05-02T16:{over:02d}:{index * 5:02d}.000Z", "batsmanPlayerId": 2, "bowlerPlayerId": 1,
        "outPlayerId": None, "totalInningRuns": 80 + index, "totalInningWickets": 2,
    } | changes  # fmt: skip


def comment(raw: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The same in the commentary."""
    words = {
        "title": "Ada Reed to Bo Finch", "commentTextItems": [{"type": "HTML", "html": "<b>Driven</b> past cover"}],
        "dismissalText": None, "over": None,
    }  # fmt: skip
    return raw | words | changes


def wicket(index: int = 2, **changes: Any) -> dict[str, Any]:
    text = {"short": "caught", "long": "c Vale b Reed", "commentary": "Cy Moss c Vale b Reed"}
    out = ball(index, 0, isWicket=True, dismissalType=1, outPlayerId=3, totalInningWickets=3)
    return comment(out | {"batsmanPlayerId": 3}, dismissalText=text) | changes


def content(*comments: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Newest first, as the site lists them."""
    squads = [
        {"type": "PLAYING", "team": PELICAN, "players": [squad_player(BO, "C"), squad_player(CY, "WK")]},
        {"type": "PLAYING", "team": ORCHARD, "players": [squad_player(ADA)]},
    ]
    return {
        "matchPlayers": {"teamPlayers": squads},
        "innings": [
            inning(1, ORCHARD, 151, 10, 19.2),
            inning(2, PELICAN, 88, 2, 10.3, isCurrent=True, target=152),
        ],
        "superOverInnings": [],
        "recentBallCommentary": {"ballComments": list(comments) or [comment(ball(*at)) for at in ((3, 4), (2,), (1,))]},
    } | changes  # fmt: skip


def squad_player(player: dict[str, Any], role: str = "P", **changes: Any) -> dict[str, Any]:
    return {"playerRoleType": role, "player": player, "isWithdrawn": False} | changes


def html(data: Any) -> str:
    blob = json.dumps({"props": {"appPageProps": {"data": data}}}).replace("<", "\\u003c")
    return (
        "<!doctype html><html><head><title>ORC vs PEL</title></head><body>"
        f'<script id="__NEXT_DATA__" type="application/json" crossorigin="anonymous">{blob}</script></body></html>'
    )


def page(
    of: dict[str, Any] | None = None, inside: dict[str, Any] | None = None, *, name: str = "page", **changes: Any
) -> Document:
    """The live page; `changes` are the match's."""
    data = {"match": (of or match()) | changes, "content": content() if inside is None else inside}
    return build.document(name, html(data), url=URL)


def read(document: Document) -> Reading:
    return build.reading(REF, document, mode=ReadMode.DIRECT)


def parse(of: dict[str, Any] | None = None, inside: dict[str, Any] | None = None, **changes: Any) -> Payload:
    """Returns the parsed live page; arguments as in `page`."""
    return ADAPTER.parse(read(page(of, inside, **changes)))


NO_PLAY: dict[str, Any] = {"teams": [side(ORCHARD, None), side(PELICAN, None)]}
