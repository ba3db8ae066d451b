"""Small invented Cricsheet files: `match(innings("India", "1 4 W 2wd"), ...)`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TEAMS = ("India", "Sri Lanka")
ELEVENS = {team: [f"{team[0]} Player{number}" for number in range(1, 12)] for team in TEAMS}
EXTRAS = {"wd": "wides", "nb": "noballs", "b": "byes", "lb": "legbyes", "pen": "penalty"}


def other(team: str) -> str:
    return TEAMS[1 - TEAMS.index(team)]


def delivery(text: str, team: str, pair: list[str], bowler: str) -> dict[str, Any]:
    """`4` off the bat, `2wd`, `1+1nb` off the bat and a no-ball, `1nb+4b`, `W`, `1W` for a run out with a run."""
    batter, extras = 0, {}
    out = text.endswith("W")
    for part in filter(None, text.removesuffix("W").split("+")):
        code = part.lstrip("0123456789")
        if code:
            extras[EXTRAS[code]] = int(part.removesuffix(code))
        else:
            batter = int(part)
    given = sum(extras.values())
    ball: dict[str, Any] = {
        "batter": pair[0],
        "bowler": bowler,
        "non_striker": pair[1],
        "runs": {"batter": batter, "extras": given, "total": batter + given},
    }
    if extras:
        ball["extras"] = extras
    if out:
        kind = "run out" if batter else "bowled"
        ball["wickets"] = [{"player_out": pair[0], "kind": kind}]
    return ball


def innings(team: str, *overs: str, **fields: Any) -> dict[str, Any]:
    """One text for each over, with one code for each ball. The next batter replaces one who is out."""
    pair, coming = ELEVENS[team][:2], 2
    rows = []
    for number, text in enumerate(overs):
        balls = []
        for code in text.split():
            balls.append(delivery(code, team, list(pair), ELEVENS[other(team)][5 + number % 2]))
            if code.endswith("W") and coming < 11:
                pair[0], coming = ELEVENS[team][coming], coming + 1
        rows.append({"over": number, "deliveries": balls})
    return {"team": team, "overs": rows, **fields}


def document(*parts: dict[str, Any], **info: Any) -> dict[str, Any]:
    outcome = info.pop("outcome", {"result": "draw"})
    return {
        "meta": {"data_version": "1.1.0", "created": "2024-01-01", "revision": 1},
        "info": {
            "teams": list(TEAMS), "dates": ["2024-01-01"], "match_type": "T20", "gender": "male", "overs": 20,
            "balls_per_over": 6, "outcome": outcome, "toss": {"winner": TEAMS[1], "decision": "field"},
            "venue": "Lantern Park", "city": "Ashgrove", "players": ELEVENS,
            "event": {"name": "Lantern Cup", "match_number": 2},
            "registry": {"people": {name: f"id-{name}" for names in ELEVENS.values() for name in names}},
            **info,
        },
        "innings": list(parts),
    }  # fmt: skip


def write(folder: Path, content: dict[str, Any] | str, name: str = "900001") -> Path:
    path = folder / f"{name}.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path
