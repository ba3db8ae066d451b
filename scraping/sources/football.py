"""Football that several sources share: kinds of events, their descriptions, the clock and the result."""

from scraping import event_keys
from scraping.payloads import Phase, Score, Status, Teams

LABELS = {
    "goal": "Goal",
    "penalty_goal": "Penalty goal",
    "own_goal": "Own goal",
    "yellow_card": "Yellow card",
    "red_card": "Red card",
    "substitution": "Substitution",
    "var": "VAR",
    "injury_time": "Added time",
    "penalty_missed": "Penalty missed",
    "shootout_goal": "Shoot-out, scored",
    "shootout_miss": "Shoot-out, missed",
}


GOALS = frozenset({"goal", "penalty_goal", "own_goal"})
KICKS = frozenset({"shootout_goal", "shootout_miss"})


def slot_of(kind: str, side: str, number: int, *, player: str = "", player_out: str = "") -> str:
    """Returns the event key, if any. `number`: the place of a goal or kick among those of its side."""
    if not side:
        return ""
    if kind in GOALS:
        return event_keys.goal(side, number)
    if kind in KICKS:
        return event_keys.shootout_kick(side, number)
    if kind in ("yellow_card", "red_card") and player:
        return event_keys.card(side, kind.partition("_")[0], player)
    return event_keys.substitution(side, player_out) if kind == "substitution" and player_out else ""


def description_of(label: str, minute: str | None, body: str) -> str:
    """Returns a description like "Goal 45+2': Pedro (1-0)"."""
    head = f"{label} {minute}'" if minute else label
    return f"{head}: {body}" if body else head


def clock_text(status: Status, phase: Phase, *, ending: str, minute: str) -> str:
    """Returns the minute being played ("37", "45+2"), HT, PEN or the kind of ending; empty where there is no clock."""
    if status is Status.COMPLETED:
        return ending
    if status is not Status.LIVE or phase is Phase.INTERRUPTED:
        return ""
    return {Phase.HALFTIME: "HT", Phase.PENALTIES: "PEN"}.get(phase, minute)


def result_of(score: Score, winner: str | None, teams: Teams) -> str:
    """Returns a sentence like "Santos won 4-2 on penalties after 1-1"; without a stated winner the score decides."""
    pairs = [(score.team_a.goals, score.team_b.goals), (score.team_a.penalties, score.team_b.penalties)]
    leads = [a - b for a, b in pairs if a is not None and b is not None]
    if winner is None and (lead := next(filter(None, leads), 0)):
        winner = teams.team_a.name if lead > 0 else teams.team_b.name
    goals, shootout = (sorted((a, b), reverse=True) if a is not None and b is not None else [] for a, b in pairs)
    printed = "-".join(map(str, goals))
    if winner is None:
        return f"Draw {printed}".strip()
    if any(shootout):
        return f"{winner} won {'-'.join(map(str, shootout))} on penalties after {printed}"
    return f"{winner} won {printed}".strip()
