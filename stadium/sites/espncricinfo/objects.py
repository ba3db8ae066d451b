"""Teams, players, series and matches in the format of all pages. Each has an internal and a public number."""

from __future__ import annotations

import zlib
from typing import Any

from stadium.cricket.innings import Innings
from stadium.cricket.script import CricketScript
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation, iso
from stadium.matches.teams import Player, Team, ordinal, plural, slug

BAT, FIELD = 1, 2
RESULT, NO_RESULT = 1, 5
_STATES = {"upcoming": ("PRE", "SCHEDULED"), "live": ("LIVE", "RUNNING")}
_STATUSES = {
    "in_play": "Live", "innings_break": "Innings break", "drinks": "Drinks", "lunch": "Lunch", "tea": "Tea",
    "stumps": "Stumps", "rain": "Match delayed by rain", "finished": "RESULT", "abandoned": "NO RESULT",
    "postponed": "Match postponed",
}  # fmt: skip


def team(one: Team) -> dict[str, Any]:
    return {
        "id": 5_000 + one.number, "objectId": 300_000 + one.number, "slug": one.slug, "name": one.short,
        "longName": one.name, "abbreviation": one.short, "isCountry": False,
    }  # fmt: skip


def player(one: Player) -> dict[str, Any]:
    return {
        "id": one.number, "objectId": 400_000 + one.number, "name": one.short, "longName": one.name,
        "mobileName": one.name.rpartition(" ")[2], "battingName": one.short, "slug": one.slug,
        "playingRoles": [one.position] if one.position else [],
    }  # fmt: skip


def series(match: Match) -> dict[str, Any]:
    name, short = match.series
    number = 1_100_000 + zlib.crc32(name.encode()) % 400_000
    return {
        "id": number - 1_000_000, "objectId": number, "slug": slug(name), "name": name, "longName": name,
        "alternateName": short, "season": "2026",
    }  # fmt: skip


def match_path(match: Match, tab: str = "live-cricket-score") -> str:
    of = series(match)
    return f"/{match.site}/series/{of['slug']}-{of['objectId']}/{match_slug(match)}-{match.key}/{tab}"


def match_slug(match: Match) -> str:
    first, second = match.teams
    return slug(f"{first.name} vs {second.name} {title(match)}")


def title(match: Match) -> str:
    script = match.script
    fixture = script.fixture if isinstance(script, CricketScript) else None
    return fixture.title if fixture else f"{ordinal(match.turn + 1)} {match.format}"


def list_entry(simulation: Simulation, match: Match, state: CricketState) -> dict[str, Any]:
    """The match in the format of the lists."""
    stage_state, stage = _STATES.get("" if state.phase == "postponed" else state.status, ("POST", "FINISHED"))
    name, text = status(match, state)
    start = iso(simulation.start_wall(match))
    number = int(match.key)
    return {
        "_uid": number - 1_000_000, "id": number - 1_000_000, "objectId": number, "scribeId": number,
        "slug": match_slug(match), "stage": stage, "state": stage_state, "season": "2026", "title": title(match),
        "startDate": start, "startTime": start, "timePublished": True,
        "isCancelled": False, "status": name, "statusText": text, "statusEng": name,
        "winnerTeamId": team(state.winner)["id"] if state.winner else None,
        "tossWinnerTeamId": team(state.toss_winner)["id"] if state.toss_winner else None,
        "tossWinnerChoice": (BAT if state.toss_bats else FIELD) if state.toss_winner else None,
        "resultStatus": {"completed": RESULT, "abandoned": NO_RESULT}.get(state.status),
        "liveInning": len(state.innings) or None, "liveOvers": _live_overs(state), "liveBalls": _live_balls(state),
        "ballsPerOver": state.script.balls_per_over, "series": series(match), "ground": ground(match),
        "teams": [side(state, one) for one in match.teams], "dayType": "SINGLE", "format": match.format,
        "isSuperOver": any(one.is_super_over for one in state.innings),
        "hasMatchPlayers": state.toss_winner is not None, "hasCommentary": bool(state.innings),
        "hasScorecard": bool(state.innings), "languages": [], "generatedAt": iso(simulation.clock.wall()),
    }  # fmt: skip


def match_object(simulation: Simulation, match: Match, state: CricketState) -> dict[str, Any]:
    """The match in the format of its own pages."""
    return list_entry(simulation, match, state) | {
        "scheduledOvers": state.script.overs or None, "liveDay": state.day, "liveSession": 1, "umpires": [],
        "endTime": iso(simulation.clock.wall_at(match.ends_at)) if state.is_over else None,
    }  # fmt: skip


def ground(match: Match) -> dict[str, Any]:
    name, _, town = match.venue.partition(", ")
    number = 200 + match.slot.number
    place = {"id": number, "objectId": 50_000 + number, "name": town or name, "area": None, "timezone": "UTC"}
    return {
        "id": number, "objectId": 56_000 + number, "name": name, "smallName": name, "longName": name,
        "slug": slug(name), "town": place if town else None,
    }  # fmt: skip


def status(match: Match, state: CricketState) -> tuple[str, str]:
    """Returns status and text. The page's script would replace the placeholders in braces."""
    if state.status == "upcoming" and state.phase in ("scheduled", "toss"):
        text = state.toss or "Match starts in {{MATCH_START_HOURS}} {{MATCH_START_MINS}}"
        return "{{MATCH_START_TIME}}", text
    if state.is_over or state.phase == "postponed":
        return _STATUSES[state.phase], state.result or _STATUSES[state.phase]
    return _STATUSES.get(state.phase, "Live"), _chase_text(state)


def _chase_text(state: CricketState) -> str:
    now = state.current
    if now is None or now.target is None:
        return state.toss
    left = max(now.target - now.runs, 0)
    return f"{now.batting.short} need {plural(left, 'run')} to win"


def _live_overs(state: CricketState) -> float | None:
    """In the notation with all balls: 19.06 is the sixth ball of the twentieth over."""
    ball = state.last_ball
    return None if ball is None else round(ball.over + ball.index / 100, 2)


def _live_balls(state: CricketState) -> int | None:
    return state.current.legal_balls if state.current else None


def side(state: CricketState, one: Team) -> dict[str, Any]:
    innings = [inning for inning in state.innings if inning.batting == one and not inning.is_super_over]
    return {
        "team": team(one), "isHome": one == state.script.teams[0],
        "isLive": bool(state.status == "live" and state.current and state.current.batting == one),
        "score": " & ".join(map(_total, innings)) or None, "scoreInfo": _score_info(state, innings),
        "inningNumbers": [inning.number + 1 for inning in innings], "points": None,
    }  # fmt: skip


def _total(inning: Innings) -> str:
    """The score of a side that is all out has no wickets."""
    wickets = "" if inning.wickets >= 10 else f"/{inning.wickets}"
    return f"{inning.runs}{wickets}{'d' * inning.is_declared}"


def _score_info(state: CricketState, innings: list[Innings]) -> str | None:
    if not innings or innings[-1] is not state.current:
        return None
    overs = innings[-1].overs_text.removesuffix(".0")
    limit = f"/{state.script.overs}" if state.script.overs and not state.is_over else ""
    target = f", T:{innings[-1].target}" if innings[-1].target else ""
    return f"{overs}{limit} ov{target}"
