"""A cricket match in the format of the summary and of the lists."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stadium.cricket.generator import dismissal_text
from stadium.cricket.innings import FallOfWicket, Innings
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.matches.teams import Team
from stadium.sites.espn.entities import athlete, league, team, text

SIDES = ("home", "away")
_PAUSES = {
    "innings_break": "Innings break",
    "lunch": "Lunch",
    "tea": "Tea",
    "drinks": "Drinks",
    "stumps": "Stumps",
    "rain": "Match delayed by rain",
}
_LONG = ("TEST", "MDM", "FC")
_CLASSES = {"TEST": "Test", "MDM": "First-class", "ODM": "List A", "IT20": "T20I"}


def summary(simulation: Simulation, match: Match, state: CricketState, closes: list[str]) -> dict[str, Any]:
    notes: list[dict[str, Any]] = [{"text": text(note), "type": "toss"} for note in toss(state)]
    notes += [
        {"date": "", "dayNumber": str(day), "id": 170_000 + day, "text": note, "type": "closeofplay"}
        for day, note in enumerate(closes, start=1)
    ]
    return {
        "notes": notes,
        "gameInfo": {"venue": {"id": str(4_000 + match.slot.number), "fullName": text(match.venue)}},
        "rosters": [_roster(side, place, state) for place, side in enumerate(match.teams)],
        "header": {
            "id": match.key,
            "uid": f"s:200~e:{match.key}",
            "name": text(" v ".join(side.name for side in match.teams)),
            "shortName": " v ".join(side.short for side in match.teams),
            "league": league(match),
            "competitions": [competition(simulation, match, state)],
        },
    }


def event(simulation: Simulation, match: Match, state: CricketState) -> dict[str, Any]:
    return {
        "id": match.key,
        "uid": f"s:200~e:{match.key}",
        "date": minute(simulation.start_wall(match)),
        "name": text(" v ".join(side.name for side in match.teams)),
        "leagueId": league(match)["id"],
        "competitions": [competition(simulation, match, state)],
    }


def competition(simulation: Simulation, match: Match, state: CricketState) -> dict[str, Any]:
    is_long = match.format in _LONG
    return {
        "id": match.key,
        "uid": f"s:200~e:{match.key}~c:{match.key}",
        "date": minute(simulation.start_wall(match)),
        "note": text(state.result_long),
        "limitedOvers": not is_long,
        "class": {
            "internationalClassId": "1" if is_long else "3",
            "generalClassCard": _CLASSES.get(match.format, match.format),
            "eventType": _CLASSES.get(match.format, match.format),
        },
        "venue": {"fullName": text(match.venue)},
        "competitors": [_competitor(match, state, place) for place in (0, 1)],
        "status": status(state),
    }


def status(state: CricketState) -> dict[str, Any]:
    kind, description, detail = _status_texts(state)
    note = state.result_long or state.result or (state.notice.text if state.notice else "")
    return {
        "period": len(state.innings),
        "summary": text(note),
        "session": f"Day {state.day}" if not state.script.overs else "",
        "type": {
            "id": {"pre": "1", "in": "2", "post": "3"}[kind],
            "name": f"STATUS_{detail.upper().replace(' ', '_')}",
            "state": kind,
            "completed": state.status == "completed",
            "description": description,
            "detail": detail,
            "shortDetail": detail,
        },
    }


def toss(state: CricketState) -> list[str]:
    if state.toss_winner is None:
        return []
    return [f"{state.toss_winner.name} , elected to {'bat' if state.toss_bats else 'field'} first"]


def score_text(state: CricketState, side: Team) -> str:
    """ "150 & 130 (50.3 ov)", with the target of a chase."""
    own = [innings for innings in state.innings if innings.batting.key == side.key]
    if not own:
        return ""
    last = own[-1]
    target = f", target {last.target}" if last.target else ""
    return f"{' & '.join(map(_short_score, own))} ({last.overs_text.removesuffix('.0')} ov{target})"


def minute(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%MZ")


def _status_texts(state: CricketState) -> tuple[str, str, str]:
    if state.phase == "postponed":
        return "post", "Postponed", "Postponed"
    if state.status == "upcoming":
        return "pre", _PAUSES.get(state.phase, "Scheduled"), "Scheduled"
    if state.status == "live":
        return "in", _PAUSES.get(state.phase, "Live"), "Live"
    return ("post", "Result", "Final") if state.status == "completed" else ("post", "No result", "Abandoned")


def _competitor(match: Match, state: CricketState, place: int) -> dict[str, Any]:
    side = match.teams[place]
    has_won = state.winner is not None and state.winner.key == side.key
    return {
        "id": team(side)["id"],
        "type": "team",
        "order": place + 1,
        "homeAway": SIDES[place],
        "winner": "true" if has_won else "false",
        "score": text(score_text(state, side)),
        "team": team(side),
        "linescores": [_linescore(innings, side, innings is state.current) for innings in state.innings],
    }


def _linescore(innings: Innings, side: Team, is_current: bool) -> dict[str, Any]:
    """Both sides have one for each innings; that of the fielding side has the overs of the batting side."""
    is_batting = innings.batting.key == side.key
    ended = "declared" if innings.is_declared else "all out" if innings.wickets == 10 else "complete"
    return {
        "period": innings.number + 1,
        "runs": innings.runs if is_batting else 0,
        "wickets": innings.wickets if is_batting else 0,
        "overs": float(innings.overs_text),
        "isBatting": is_batting,
        "isCurrent": int(is_current),
        "description": "" if is_current or not is_batting else ended,
        "target": (innings.target or 0) if is_batting else 0,
        "followOn": False,
        "score": _short_score(innings) if is_batting else "",
        "fow": [_fall(fall) for fall in innings.falls] if is_batting else [],
    }


def _fall(fall: FallOfWicket) -> dict[str, Any]:
    how = " ".join(dismissal_text(fall.ball, fall.wicket)).strip()
    athlete_of = athlete(fall.wicket.out)
    return {
        "wicketNumber": fall.number,
        "athlete": athlete_of,
        "runs": fall.score,
        "outDetails": {"shortText": text(how)},
    }


def _short_score(innings: Innings) -> str:
    if innings.wickets == 10:
        return str(innings.runs)
    return f"{innings.score}{'d' if innings.is_declared else ''}"


def _roster(side: Team, place: int, state: CricketState) -> dict[str, Any]:
    """Empty until the toss."""
    players = [] if state.phase == "scheduled" else side.players
    return {
        "homeAway": SIDES[place],
        "team": team(side),
        "roster": [
            {
                "starter": number < 11,
                "captain": number == 0,
                "athlete": athlete(player),
                "position": {"name": "Batter", "abbreviation": "BT"},
            }
            for number, player in enumerate(players)
        ],
    }
