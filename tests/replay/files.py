"""Small recordings in the Cricsheet format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TEAMS = ("Harbour XI", "Valley XI")
PLAYERS = {team: [f"{team.split()[0]} {number}" for number in range(1, 12)] for team in TEAMS}


def delivery(
    runs: int = 0, *, extras: dict[str, int] | None = None, out: str = "", kind: str = "bowled", **more: Any
) -> Any:
    """A ball of Valley's second bowler to Harbour's openers, unless other players are given."""
    added = sum((extras or {}).values())
    ball: dict[str, Any] = {
        "batter": more.pop("batter", "Harbour 1"),
        "non_striker": more.pop("partner", "Harbour 2"),
        "bowler": more.pop("bowler", "Valley 10"),
        "runs": {"batter": runs, "extras": added, "total": runs + added},
        **more,
    }
    if extras:
        ball["extras"] = extras
    if out:
        ball["wickets"] = [{"player_out": out, "kind": kind}]
    return ball


def innings(team: str, *overs: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "team": team,
        "overs": [{"over": number, "deliveries": balls} for number, balls in enumerate(overs)],
        **more,
    }


def match(*all_innings: dict[str, Any], outcome: dict[str, Any] | None = None, **info: Any) -> dict[str, Any]:
    people = {name: f"{number:08x}" for number, name in enumerate(name for team in TEAMS for name in PLAYERS[team])}
    return {
        "meta": {"data_version": "1.1.0", "created": "2026-01-10", "revision": 1},
        "info": {
            "balls_per_over": 6,
            "dates": ["2026-01-09"],
            "event": {"name": "Coastal Cup", "match_number": 3},
            "gender": "male",
            "match_type": "T20",
            "overs": 20,
            "outcome": {"winner": TEAMS[0], "by": {"runs": 9}} if outcome is None else outcome,
            "players": PLAYERS,
            "registry": {"people": people},
            "season": "2025/26",
            "teams": list(TEAMS),
            "team_type": "club",
            "toss": {"winner": TEAMS[0], "decision": "bat"},
            "venue": "Harbour Oval",
            "city": "Harbour",
            **info,
        },
        "innings": list(all_innings),
    }


def write(folder: Path, name: str, recording: dict[str, Any]) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(recording), encoding="utf-8")
    return path
