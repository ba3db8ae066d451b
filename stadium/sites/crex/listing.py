"""Lists of matches and names: `getLiveMatches` and `getHomeMapData`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stadium.cricket.script import CricketScript
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.matches.teams import ordinal, slug
from stadium.sites.crex.display_fields import comment
from stadium.sites.crex.live import is_long, match_number, score_text, series_key


def list_item(simulation: Simulation, match: Match) -> dict[str, Any]:
    state, (first, second) = simulation.cricket(match), match.teams
    item: dict[str, Any] = {
        "b": first.key,
        "c": second.key,
        "j": score_text(state, 0),
        "k": score_text(state, 1),
        "l": score_text(state, 2) if is_long(state) else "",
        "m": score_text(state, 3) if is_long(state) else "",
        "res": "" if state.phase == "scheduled" else comment(state),
        "result": state.result,
        "ti": int(simulation.start_wall(match) * 1000),
        "fo": match.format,
        "q": f"^{series_key(match)}",
        "v": venue_key(match),
        "mn": match_number(match),
    }
    if state.phase == "rain":
        item["ac"] = "rain"
    if state.is_over:
        item["finishTime"] = int(simulation.clock.wall_at(match.ends_at) * 1000)
    return item


def venue_key(match: Match) -> str:
    return f"V{match.slot.number}"


def match_path(match: Match) -> str:
    return f"/{match.site}/cricket-live-score/{match_slug(match)}-match-updates-{match.key}"


def match_slug(match: Match) -> str:
    first, second = match.teams
    return slug(f"{first.short} vs {second.short} {match_name(match)} {match.series[0]}")


def match_name(match: Match) -> str:
    """ "36th Match", "Final"."""
    fixture = match.script.fixture if isinstance(match.script, CricketScript) else None
    return fixture.title if fixture and fixture.title else f"{ordinal(match.turn + 1)} match"


def names(matches: Iterable[Match], wanted: dict[str, set[str]] | None = None) -> dict[str, Any]:
    """Returns the names of keys; `wanted` restricts them to some keys by table."""
    people: dict[str, dict[str, Any]] = {}
    teams: dict[str, dict[str, Any]] = {}
    series: dict[str, dict[str, Any]] = {}
    venues: dict[str, dict[str, Any]] = {}
    for match in matches:
        for team in match.teams:
            teams[team.key] = {"f_key": team.key, "n": team.name, "sn": team.short}
            people |= {player.key: {"f_key": player.key, "n": player.name} for player in team.players}
        key = series_key(match)
        series[key] = {"f_key": key, "n": match.series[0], "sn": match.series[1], "tour": 0}
        venues[venue_key(match)] = {"f_key": venue_key(match), "n": match.venue}
    tables = {"p": people, "t": teams, "s": series, "v": venues}
    found: dict[str, Any] = {
        letter: [row for key, row in table.items() if wanted is None or key in wanted.get(letter, set())]
        for letter, table in tables.items()
    }
    return found | {"u": []}
