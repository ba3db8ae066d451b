"""Compares stored data with the stadium's ground truth. Meant for a stadium with a stopped clock."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from tests.faults.database import Database, StoredMatch, document, matches
from tests.stadium_process import StadiumProcess

PHASES = {
    "toss": "scheduled",
    "in_play": "play",
    "first_half": "play",
    "second_half": "play",
    "abandoned": "finished",
}
# The entry of a running half is no event: it changes and is removed.
HEADLINES = frozenset({"period:45:First half", "period:90:Second half"})


def differences(database: Database, stadium: StadiumProcess) -> list[str]:
    """Returns all differences between the stored matches and the truth; empty if nothing was lost or doubled."""
    stored = matches(database)
    rows = Counter(one.name for one in stored)
    found = [f"{name} has {count} rows" for name, count in rows.items() if count > 1]
    for shown in stadium.matches():
        name = (shown["site"], shown["key"])
        if name not in rows:
            found.append(f"{name} has no row")
    for match in stored:
        truth = stadium.truth(match.site, match.key)
        if match.site == next(iter(truth["sites"])):  # other sites are late and use other texts
            words = (*_of_state(match, truth), *_of_events(database, match, truth))
            found += [f"{match.name}: {one}" for one in words]
    return found + _served_twice(database)


def _served_twice(database: Database) -> list[str]:
    """Returns events that were served twice, once from each of two sources."""
    rows = database.rows(
        """SELECT match_id, slot, COUNT(DISTINCT CASE WHEN public_id = '' THEN event_id ELSE public_id END)
           FROM scraping_matchevent WHERE is_served AND slot <> '' GROUP BY match_id, slot"""
    )
    return [f"match {match}: {slot} is served {count} times" for match, slot, count in rows if count > 1]


def _of_state(match: StoredMatch, truth: dict[str, Any]) -> list[str]:
    state = match.payload
    if not state:
        return ["was never read"]
    # in the order of another site, which was read first
    if _named_first(state["teams"]) == truth["teams"]["team_b"]["name"]:
        truth = {**truth, **{name: _swapped(truth[name]) for name in ("teams", "score")}}
    pairs: dict[str, tuple[Any, Any]] = {
        "status": (state["status"], truth["status"]),
        "phase": (state["phase"], PHASES.get(truth["phase"], truth["phase"])),
        "teams": (state["teams"], truth["teams"]),
        "current innings": (state["current_innings"], truth["current_innings"]),
    }
    for side in ("team_a", "team_b"):
        shown = {name: value for name, value in state["score"][side].items() if value is not None}
        pairs[f"score of {side}"] = (shown, truth["score"][side] or {})
    return [f"{what} is {ours}, in truth {real}" for what, (ours, real) in pairs.items() if ours != real]


def _named_first(teams: dict[str, Any]) -> str:
    return str(teams["team_a"]["name"])


def _swapped(sides: dict[str, Any]) -> dict[str, Any]:
    return {"team_a": sides["team_b"], "team_b": sides["team_a"]}


def _of_events(database: Database, match: StoredMatch, truth: dict[str, Any]) -> list[str]:
    rows = database.rows(
        """SELECT e.event_id, e.is_current, e.action FROM scraping_matchevent e
           JOIN scraping_source s ON s.id = e.source_id WHERE e.match_id = %s AND s.key = %s""",
        match.match_id,
        match.site,
    )
    current = Counter(event_id for event_id, is_current, action in rows if is_current and action != "retract")
    retracted = {event_id for event_id, _, action in rows if action == "retract"}
    real = {event["id"] for event in truth["events"]} - HEADLINES
    found = []
    if missing := real - current.keys():
        found.append(f"{len(missing)} of {len(real)} events are missing: {_some(missing)}")
    if unknown := current.keys() - real:
        found.append(f"{len(unknown)} events never happened: {_some(unknown)}")
    if doubled := [event_id for event_id, count in current.items() if count > 1]:
        found.append(f"{len(doubled)} events are doubled: {_some(doubled)}")
    if wavering := retracted & current.keys():
        found.append(f"{len(wavering)} events were taken back and put in again: {_some(wavering)}")
    if match.site == "crex" and (spurious := len(rows) - len(current)):
        found.append(f"{spurious} corrections of balls that were not corrected")
    return found


def _some(ids: Any) -> str:
    return ", ".join(sorted(ids)[:3])


def holes_in_history(database: Database) -> list[str]:
    """Returns matches whose snapshots are not numbered without gaps from 1 to the sequence of the match."""
    sql = """
        SELECT m.id, m.sequence, COUNT(s.id), COALESCE(MAX(s.sequence), 0)
        FROM matches m LEFT JOIN live_match_data s ON s.match_id = m.id
        GROUP BY m.id, m.sequence
    """
    return [
        f"match {match}: sequence {sequence}, {count} snapshots, the last is {last}"
        for match, sequence, count, last in database.rows(sql)
        if not sequence == count == last
    ]


def steps_back(database: Database) -> list[str]:
    """Returns cricket matches whose runs decreased; they never do in the programme."""
    sql = """
        SELECT n.match_id, n.sequence, n.payload FROM live_match_data n
        JOIN matches m ON m.id = n.match_id WHERE m.sport = 'cricket' ORDER BY n.match_id, n.sequence
    """
    shown = [(match, number, _runs(document(payload))) for match, number, payload in database.rows(sql)]
    return [
        f"match {match}: {runs} runs after snapshot {number - 1} had {before}"
        for (earlier, _, before), (match, number, runs) in pairwise(shown)
        if earlier == match and runs < before
    ]


def _runs(state: dict[str, Any]) -> int:
    return sum(int(innings["runs"]) for innings in state["innings"])
