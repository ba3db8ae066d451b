"""Matches in the format of ESPN's API, new for every test, which may change them."""

from __future__ import annotations

from typing import Any

from scraping.sources.base import RefInfo

BASE = "http://site.test/espn"
CRICKET = RefInfo("1500001", f"{BASE}/apis/site/v2/sports/cricket/8100/summary?event=1500001")
SOCCER_BASE = "http://site.test/espnsoccer"
SOCCER = RefInfo("740001", f"{SOCCER_BASE}/apis/site/v2/sports/soccer/bra.1/scoreboard?dates=20260501-20260502#740001")


def team(number: str, name: str, short: str) -> dict[str, Any]:
    return {"id": number, "displayName": name, "abbreviation": short, "name": name}


ORC, PEL = team("11", "Orchard &amp; City", "ORC"), team("12", "Pelican Town", "PEL")


def line(
    period: int, *, bats: bool, runs: int = 0, wickets: int = 0, overs: float = 0.0, **more: Any
) -> dict[str, Any]:
    return {
        "period": period, "runs": runs, "wickets": wickets, "overs": overs, "isBatting": bats, "isCurrent": 0,
        "description": "", "target": 0, "score": f"{runs}/{wickets}" if bats else "",
    } | more  # fmt: skip


def status(state: str = "in", description: str = "Live", summary: str = "", **kind: Any) -> dict[str, Any]:
    return {"period": 2, "summary": summary, "type": {"state": state, "description": description} | kind}


def competition(**changes: Any) -> dict[str, Any]:
    """A chase: Orchard & City made 151 all out, Pelican Town are 88 for 2."""
    home = [line(1, bats=True, runs=151, wickets=10, overs=19.2, description="all out", score="151"),
            line(2, bats=False, overs=10.3)]  # fmt: skip
    away = [line(1, bats=False, overs=19.2), line(2, bats=True, runs=88, wickets=2, overs=10.3, target=152)]
    return {
        "id": "1500001",
        "date": "2026-05-02T14:00Z",
        "status": status(),
        "class": {"eventType": "T20", "generalClassCard": "Twenty20"},
        "limitedOvers": True,
        "description": "4th Match",
        "note": "",
        "competitors": [
            {"homeAway": "home", "team": ORC, "winner": "false", "score": "151", "linescores": home},
            {"homeAway": "away", "team": PEL, "winner": "false", "score": "88/2 (10.3 ov)", "linescores": away},
        ],
    } | changes


def summary(notes: list[dict[str, Any]] | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "notes": notes or [{"type": "toss", "text": "Pelican Town , elected to field first"}],
        "gameInfo": {"venue": {"fullName": "Lantern Field, Orchard"}},
        "rosters": [roster("11", 3100), roster("12", 3200)],
        "header": {
            "id": "1500001",
            "league": {"id": "8100", "name": "Lantern Cup &amp; Shield"},
            "competitions": [competition(**changes)],
        },
    }


def roster(number: str, first: int) -> dict[str, Any]:
    players = [
        {
            "starter": place < 11,
            "captain": place == 0,
            "athlete": {"id": str(first + place), "displayName": f"Player {first + place}"},
            "position": {"abbreviation": "BT"},
        }
        for place in range(12)
    ]
    return {"team": {"id": number}, "roster": players}


def play(index: int = 1, over: int = 10, period: int = 2, **changes: Any) -> dict[str, Any]:
    """A single off the bat; `over`: completed overs before it."""
    own = changes.pop("in_over", {})
    return {
        "id": f"{period}{over * 100 + index}0",
        "date": "2026-5-2 14:00:00",
        "playType": {"id": "1", "description": "run"},
        "team": PEL,
        "period": period,
        "shortText": "Vale to Moss, 1 run",
        "homeScore": "88/2",
        "awayScore": "0",
        "scoreValue": 1,
        "sequence": period * 100_000 + over * 100 + index,
        "bowler": {"athlete": {"displayName": "Ada Vale"}},
        "batsman": {"athlete": {"displayName": "Cy Moss"}},
        "innings": {"runs": 88, "wickets": 2, "totalRuns": 1},
        "over": {
            "number": over + 1, "ball": index, "overs": over + index / 10, "actual": over + index / 10,
            "unique": over + index / 100, "wide": 0, "noBall": 0, "runs": 5,
        } | own,
        "dismissal": {"dismissal": False, "type": "", "text": ""},
        "bbbTimestamp": 0,
    } | changes  # fmt: skip


def out(kind: str = "caught", *, retired: str = "") -> dict[str, Any]:
    return {
        "dismissal": True, "type": kind, "text": f"Cy Moss {kind}", "retiredText": retired,
        "batsman": {"athlete": {"displayName": "Cy Moss"}},
    }  # fmt: skip


def page(items: list[dict[str, Any]], number: int = 1, pages: int = 1, count: int | None = None) -> dict[str, Any]:
    counted = len(items) if count is None else count
    return {"commentary": {"count": counted, "pageIndex": number, "pageSize": 25, "pageCount": pages, "items": items}}


def detail(
    text: str = "Goal", minute: str = "14'", side: str = "21", who: str = "Bo Finch", **flags: Any
) -> dict[str, Any]:
    athletes = [
        {"id": str(900 + place), "displayName": name} for place, name in enumerate(filter(None, who.split("|")))
    ]
    return {
        "type": {"id": "70", "text": text}, "clock": {"value": 840.0, "displayValue": minute}, "team": {"id": side},
        "scoringPlay": False, "yellowCard": False, "redCard": False, "penaltyKick": False, "ownGoal": False,
        "shootout": False, "athletesInvolved": athletes,
    } | flags  # fmt: skip


def participants(who: str) -> list[dict[str, Any]]:
    names = enumerate(filter(None, who.split("|")))
    return [{"athlete": {"id": str(900 + place), "displayName": name}} for place, name in names]


def summary_detail(minute: str, who: str, side: str = "21", **flags: Any) -> dict[str, Any]:
    """A detail in the header of a summary: no type, and `participants`."""
    return {
        "clock": {"value": 840.0, "displayValue": minute}, "team": {"id": side}, "participants": participants(who),
        "scoringPlay": False, "yellowCard": False, "redCard": False, "penaltyKick": False, "ownGoal": False,
        "shootout": False,
    } | flags  # fmt: skip


def key_event(text: str, minute: str, who: str, side: str | None = "21", **flags: Any) -> dict[str, Any]:
    team = {"team": {"id": side}} if side else {}
    return {
        "id": f"{text} {minute}", "type": {"id": "1", "text": text, "type": text.lower().replace(" ", "-")},
        "clock": {"value": 0.0, "displayValue": minute}, "scoringPlay": False, "shootout": False,
        "participants": participants(who),
    } | team | flags  # fmt: skip


def soccer_status(name: str = "STATUS_SECOND_HALF", state: str = "in", **more: Any) -> dict[str, Any]:
    kind = {"name": name, "state": state, "completed": False, "detail": "2nd"}
    clock = more.pop("clock", "67'")
    return {"clock": 0.0, "displayClock": clock, "period": 2, "type": kind | more}


def soccer_event(
    goals: tuple[str, str] = ("1", "0"), details: list[dict[str, Any]] | None = None, **changes: Any
) -> dict[str, Any]:
    extra = changes.pop("competitors", ({}, {}))
    sides = (("home", team("21", "Alder FC", "ALD")), ("away", team("22", "Birch SC", "BIR")))
    competitors = [
        {"homeAway": side, "score": score, "winner": False, "team": who} | more
        for (side, who), score, more in zip(sides, goals, extra, strict=True)
    ]
    standing = changes.pop("status", soccer_status())
    found = {
        "date": "2026-05-02T00:30Z",
        "venue": {"fullName": "Estádio Alder", "address": {"city": "Alder"}},
        "competitors": competitors,
        "details": [detail(scoringPlay=True)] if details is None else details,
        "status": standing,
    }
    return {
        "id": "740001",
        "date": "2026-05-02T00:30Z",
        "season": {"year": 2026},
        "status": standing,
        "competitions": [found],
    } | changes


def board(*events: dict[str, Any]) -> dict[str, Any]:
    return {"leagues": [{"id": "630", "name": "Brazilian Série A", "slug": "bra.1"}], "events": list(events)}
