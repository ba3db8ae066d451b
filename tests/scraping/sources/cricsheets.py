"""Small matches in the Cricsheet format with rare events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TEAMS = ("Alder Oaks", "Birch Elms")
PLAYERS = {team: [f"{team[0]}{number} {team.split()[1]}{number}" for number in range(1, 12)] for team in TEAMS}
_EXTRAS = {"wd": "wides", "nb": "noballs", "b": "byes", "lb": "legbyes", "pen": "penalty"}


def delivery(team: str, runs: int = 0, pair: tuple[int, int] = (0, 1), out: str = "", **extras: int) -> dict[str, Any]:
    """`pair`: places of striker and partner in the batting order; `out`: how the striker goes."""
    batting, bowling = PLAYERS[team], PLAYERS[TEAMS[1 - TEAMS.index(team)]]
    given = sum(extras.values())
    delivery: dict[str, Any] = {
        "batter": batting[pair[0]], "non_striker": batting[pair[1]], "bowler": bowling[8],
        "runs": {"batter": runs, "extras": given, "total": runs + given},
    }  # fmt: skip
    if extras:
        delivery["extras"] = {_EXTRAS[name]: number for name, number in extras.items()}
    if out:
        delivery["wickets"] = [{"player_out": batting[pair[0]], "kind": out}]
    return delivery


def innings(team: str, *overs: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"team": team, "overs": [{"over": n, "deliveries": list(one)} for n, one in enumerate(overs)], **more}


def plain(team: str, *runs: int) -> list[dict[str, Any]]:
    return [delivery(team, one) for one in runs]


def match(kind: str, parts: list[dict[str, Any]], outcome: dict[str, Any], overs: int | None = None) -> dict[str, Any]:
    people = {name: f"{place:08x}" for place, name in enumerate(name for team in PLAYERS.values() for name in team)}
    dates = ["2026-05-02"] if overs else ["2026-05-02", "2026-05-03"]
    info = {
        "teams": TEAMS, "dates": dates, "match_type": kind, "outcome": outcome, "balls_per_over": 6,
        "toss": {"winner": TEAMS[1], "decision": "field"}, "players": PLAYERS, "venue": "Copse Ground",
        "event": {"name": "Copse Cup", "match_number": 4},
        "registry": {"people": people},
    }  # fmt: skip
    return {"meta": {"data_version": "1.1.0"}, "info": info | ({"overs": overs} if overs else {}), "innings": parts}


def oddities(team: str) -> list[list[dict[str, Any]]]:
    """Every kind of delivery, and overs of seven and of five balls."""
    return [
        [
            delivery(team, wd=1), delivery(team, wd=5), delivery(team, nb=1), delivery(team, 1, nb=1),
            delivery(team, 6, nb=1), delivery(team, 5, nb=1), delivery(team, nb=1, b=2), delivery(team, nb=1, lb=4),
            delivery(team, b=4), delivery(team, lb=1), delivery(team, 3), delivery(team, 4), delivery(team, 6),
            delivery(team, 1, pen=5),
        ],
        [
            delivery(team, out="bowled"), delivery(team, 1, (2, 1), "run out"),
            delivery(team, 0, (3, 1), "run out", nb=1),
            delivery(team, 0, (4, 1), "stumped", wd=1), delivery(team, 2, (5, 1), "run out", lb=2),
            delivery(team, 0, (6, 1), "retired hurt"), delivery(team, 1, (7, 1)), delivery(team, 0, (7, 1), "lbw"),
            delivery(team, 0, (8, 1)),
        ],
        [delivery(team, 1, (8, 1)) for _ in range(7)],
        [delivery(team, 2, (8, 1)) for _ in range(5)],
        [delivery(team, 0, (8, 1), "obstructing the field"), *(delivery(team, 1, (6, 1)) for _ in range(5))],
    ]  # fmt: skip


def long_match() -> dict[str, Any]:
    """A declaration, a follow-on, penalty runs, miscounted overs."""
    first, second = TEAMS
    many = [plain(first, 4, 4, 6, 6, 1, 2)] * 8
    counted = {"2": {"balls": 7}, "3": {"balls": 5}}
    parts = [
        innings(first, *many, declared=True, penalty_runs={"post": 5}),
        innings(second, *oddities(second), miscounted_overs=counted),
        innings(second, *([plain(second, 1, 0, 4, 2, 0, 1)] * 20)),
        innings(first, plain(first, 1, 0, 0, 0, 2, 0)),
    ]
    return match("Test", parts, {"result": "draw"})


def tied_match() -> dict[str, Any]:
    """Two super overs, the first of them tied as well."""
    first, second = TEAMS
    even = [plain(first, 1, 1, 4, 0, 0, 0)] * 2
    parts = [
        innings(first, *even),
        innings(second, *([plain(second, 1, 1, 4, 0, 0, 0)] * 2)),
        innings(second, plain(second, 4, 0, 0, 0, 0, 1), super_over=True),
        innings(first, plain(first, 1, 4, 0, 0, 0, 0), super_over=True),
        innings(first, [delivery(first, 6), delivery(first, wd=1), *plain(first, 0, 0, 0, 1, 0)], super_over=True),
        innings(second, plain(second, 6, 6), super_over=True),
    ]
    return match("T20", parts, {"result": "tie", "eliminator": second}, overs=2)


def rained_on_match() -> dict[str, Any]:
    """A target that rain has changed."""
    first, second = TEAMS
    parts = [
        innings(first, *([plain(first, 1, 1, 4, 0, 0, 0)] * 20)),
        innings(second, *([plain(second, 1, 1, 4, 1, 0, 0)] * 10), target={"overs": 10, "runs": 70}),
    ]
    return match("T20", parts, {"winner": second, "by": {"wickets": 10}, "method": "D/L"}, overs=20)


def write(folder: Path, **matches: dict[str, Any]) -> Path:
    for name, delivery in matches.items():
        (folder / f"{name}.json").write_text(json.dumps(delivery))
    return folder
