"""Incidents of a cricket match: every ball, newest first."""

from __future__ import annotations

import json
from typing import Any

from stadium.cricket.generator import dismissal_text
from stadium.cricket.innings import Innings
from stadium.cricket.script import Ball, CricketEvent, Dismissal, Wicket
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.teams import Player
from stadium.sites.sofascore.cricket_event import team_id

_LABELS = {"wd": "Wd", "nb": "Nb", "b": "B", "lb": "Lb"}
_EXTRAS = {"wd": "wide", "nb": "no ball", "b": "bye", "lb": "leg bye", "pen": "penalty runs"}
_COLOURS = {0: "noruns", 4: "fours", 6: "sixes"}
DELIVERIES = 8192  # ids reserved for the balls of a match
ROLES = ("BM",) * 6 + ("AR",) * 2 + ("B",) * 3


def incidents(balls: list[str]) -> bytes:
    return f'{{"incidents":[{",".join(reversed(balls))}]}}'.encode()


def incident(match: Match, ball: CricketEvent, state: CricketState, _: int) -> str | None:
    """Returns one ball as JSON, because a response has all balls of the match."""
    if not isinstance(ball, Ball):
        return None
    innings = state.innings[ball.innings]
    label = _label(ball)
    wicket = ball.wicket or next(iter(ball.wickets), None)  # a real wicket before a retirement
    fields: dict[str, Any] = {
        "number": sum(len(over.balls) for over in innings.overs),
        "over": ball.over + 1,
        "ball": ball.number,
        "runs": ball.runs,
        "score": innings.score,
        "scored": ball.runs > 0,
        "wicket": wicket is not None,
        "missed": False,
        "batsman": person(ball.striker, innings.batting.players),
        "bowler": person(ball.bowler, innings.bowling.players),
        "ballDetails": {},
        "commentary": _commentary(ball, wicket),
        "id": 6_000_000 + match.number * DELIVERIES + ball.delivery,
        "time": int(ball.at // 60),
        "inningNumber": ball.innings + 1,
        "battingTeamId": team_id(innings.batting),
        "incidentClassLabel": label,
        "incidentClassColor": "wickets" if label == "W" else _COLOURS.get(ball.total, "runs"),
        "totalRuns": ball.total,
        "incidentClass": label,
        "incidentType": "ball",
    }
    return json.dumps(fields | (_dismissal(innings, wicket) if wicket else {}), separators=(",", ":"))


def _dismissal(innings: Innings, wicket: Wicket) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "bowlDetail": dismissal_name(wicket.kind),
        "dismissedBatsman": person(wicket.out, innings.batting.players),
    }
    return fields | ({"fielder": person(wicket.fielder, innings.bowling.players)} if wicket.fielder else {})


def person(player: Player, team: tuple[Player, ...]) -> dict[str, Any]:
    place = team.index(player) if player in team else len(ROLES) - 1
    role = ROLES[min(place, len(ROLES) - 1)]
    return {
        "name": player.name,
        "slug": player.slug,
        "shortName": player.short,
        "position": role,
        "id": player.number,
    }


def dismissal_name(kind: Dismissal) -> str:
    """The name at the site: Run out, Caught, LBW."""
    plain = {Dismissal.CAUGHT_AND_BOWLED: "Caught", Dismissal.LBW: "LBW"}
    return plain.get(kind, kind.name.replace("_", " ").capitalize())


def _label(ball: Ball) -> str:
    """A wicket hides the extras of the ball; retired hurt is no wicket."""
    if ball.wicket:
        return "W"
    return f"{_LABELS[ball.extra]}{ball.total}" if ball.extra in _LABELS else str(ball.total)


def _commentary(ball: Ball, wicket: Wicket | None) -> str:
    extra = f" ({_EXTRAS[ball.extra]})" if ball.extra else ""
    if wicket is not None:
        text = " ".join(dismissal_text(ball, wicket)).strip()
        return f"{'OUT! ' if wicket.counts else ''}{text}{extra}."
    return f"{'No run' if not ball.total else f'{ball.total} run'}{extra}."
