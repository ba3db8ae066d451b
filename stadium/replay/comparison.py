"""Compares a match and its event feed, as the API serves them, with the recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stadium.replay.recording import BallRecord, Recording

ENDED = ("completed", "abandoned")
MAX_DIFFERENCES = 12  # of one match


@dataclass
class ReplayResult:
    """Counts of balls and wickets, and a text for each difference."""

    name: str
    expected: int = 0
    present: int = 0
    missing: int = 0
    doubled: int = 0
    wrong: int = 0
    overs: int = 0
    corrections: int = 0  # that consumers saw during the match
    differences: list[str] = field(default_factory=list)

    @property
    def is_correct(self) -> bool:
        return not self.differences and not (self.missing or self.doubled or self.wrong)

    def add_difference(self, text: str) -> None:
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(text)


def compare(recording: Recording, match: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> ReplayResult:
    """`match` and `rows` are the match and its complete event feed from the API."""
    result = ReplayResult(recording.name, corrections=sum(row["action"] != "add" for row in rows))
    events = current_events(rows)
    _compare_balls(result, recording, events)
    _compare_wickets(result, recording, events)
    _compare_overs(result, recording, events)
    _compare_innings(result, recording, match)
    _compare_outcome(result, recording, match)
    return result


def current_events(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the events of a consumer that applied every row of the feed."""
    known: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if row["action"] == "retract":
            known.pop(row["event_id"], None)
        else:
            known[row["event_id"]] = row
    return list(known.values())


def _by_slot(events: Iterable[Mapping[str, Any]], prefix: str) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in events:
        if row["slot"].startswith(prefix):
            found.setdefault(row["slot"], []).append(row)
    return found


def _compare_balls(result: ReplayResult, recording: Recording, events: Sequence[Mapping[str, Any]]) -> None:
    served = _by_slot(events, "b:")
    for ball in recording.balls:
        result.expected += 1
        rows = served.pop(ball.slot, [])
        if not rows:
            result.missing += 1
            result.add_difference(f"{ball.slot} ({ball.label}) is missing")
            continue
        result.present += 1
        result.doubled += len(rows) - 1
        if problem := _wrong_ball(ball, rows[0]):
            result.wrong += 1
            result.add_difference(f"{ball.slot}: {problem}")
    for slot in served:
        result.wrong += 1
        result.add_difference(f"{slot} was never bowled")
    unnamed = [row for row in events if not row["slot"] and row["over"] and row["kind"] != "review"]
    result.doubled += len(unnamed)
    if unnamed:
        result.add_difference(f"{len(unnamed)} events have no place in the match, the first at {unnamed[0]['over']}")


def _wrong_ball(ball: BallRecord, row: Mapping[str, Any]) -> str:
    served = {"runs": row["runs"], "over": row["over"], "score": row["detail"].get("score")}
    real = {"runs": ball.runs, "over": ball.label, "score": ball.score}
    return ", ".join(f"{name} is {served[name]}, not {real[name]}" for name in real if served[name] != real[name])


def _compare_wickets(result: ReplayResult, recording: Recording, events: Sequence[Mapping[str, Any]]) -> None:
    served = _by_slot(events, "w:")
    real = {
        f"w:{number}:{wicket}"
        for number, innings in enumerate(recording.innings, start=1)
        for wicket in range(1, innings.wickets + 1)
    }
    result.expected += len(real)
    result.present += len(real & served.keys())
    result.missing += len(real - served.keys())
    result.wrong += len(served.keys() - real)
    result.doubled += sum(len(rows) - 1 for rows in served.values())
    for slot in sorted(real ^ served.keys()):
        result.add_difference(f"{slot} is {'missing' if slot in real else 'no wicket'}")


def _compare_overs(result: ReplayResult, recording: Recording, events: Sequence[Mapping[str, Any]]) -> None:
    """Compares the score after every over, which is that of its last ball."""
    real = {ball.slot.rpartition(":")[0]: ball.score for ball in recording.balls}
    balls = sorted(
        (row for row in events if row["slot"].startswith("b:")), key=lambda row: int(row["slot"].split(":")[-1])
    )
    served = {row["slot"].rpartition(":")[0]: row["detail"].get("score") for row in balls}
    result.overs = len(real)
    for over, score in real.items():
        if served.get(over) != score:
            result.add_difference(f"after over {over} the score is {served.get(over)}, not {score}")


def _compare_innings(result: ReplayResult, recording: Recording, match: Mapping[str, Any]) -> None:
    served = [(one["runs"], one["wickets"]) for one in match["innings"]]
    real = [(one.runs, one.wickets) for one in recording.innings]
    if served != real:
        result.add_difference(f"the innings are {served}, not {real}")


def _compare_outcome(result: ReplayResult, recording: Recording, match: Mapping[str, Any]) -> None:
    result_text = str(match["result"])
    expected = "abandoned" if recording.outcome.get("result") == "no result" else "completed"
    if match["status"] != expected:
        result.add_difference(f"the match is {match['status']}, not {expected}")
    for text in expected_in_result(recording):
        if text.casefold() not in result_text.casefold():
            result.add_difference(f"the result is {result_text!r}, without {text!r}")


def expected_in_result(recording: Recording) -> list[str]:
    """Returns texts that the result must contain, whichever source it is of."""
    outcome = recording.outcome
    if outcome.get("result") in ("draw", "tie"):
        return ["drawn" if outcome["result"] == "draw" else "tied"]
    if outcome.get("result") == "no result" or not outcome.get("winner"):
        return []
    by = outcome.get("by") or {}
    return [f"{by[unit]} {unit.rstrip('s')}" for unit in ("runs", "wickets") if unit in by] or ["won"]
