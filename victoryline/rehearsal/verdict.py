"""What a consumer got of a match, held against what was recorded of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from victoryline.rehearsal.recording import BallRecord, Recording

ENDED = ("completed", "abandoned")
MOST_TOLD = 12  # sentences a match


@dataclass
class Verdict:
    """Counts of balls and wickets; and in words whatever else differs."""

    name: str
    expected: int = 0
    present: int = 0
    missing: int = 0
    doubled: int = 0
    wrong: int = 0
    overs: int = 0
    corrections: int = 0  # that consumers saw on the way
    differences: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        return not self.differences and not (self.missing or self.doubled or self.wrong)

    def tell(self, words: str) -> None:
        if len(self.differences) < MOST_TOLD:
            self.differences.append(words)


def judge(recording: Recording, match: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Verdict:
    """`match` and `rows`: the match and its whole event feed, as the API gives them."""
    verdict = Verdict(recording.name, corrections=sum(row["action"] != "add" for row in rows))
    standing = followed(rows)
    _judge_balls(verdict, recording, standing)
    _judge_wickets(verdict, recording, standing)
    _judge_overs(verdict, recording, standing)
    _judge_innings(verdict, recording, match)
    _judge_end(verdict, recording, match)
    return verdict


def followed(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The events that a consumer has who did what every row of the feed said."""
    known: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if row["action"] == "retract":
            known.pop(row["event_id"], None)
        else:
            known[row["event_id"]] = row
    return list(known.values())


def _by_slot(standing: Iterable[Mapping[str, Any]], prefix: str) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in standing:
        if row["slot"].startswith(prefix):
            found.setdefault(row["slot"], []).append(row)
    return found


def _judge_balls(verdict: Verdict, recording: Recording, standing: Sequence[Mapping[str, Any]]) -> None:
    told = _by_slot(standing, "b:")
    for ball in recording.balls:
        verdict.expected += 1
        rows = told.pop(ball.slot, [])
        if not rows:
            verdict.missing += 1
            verdict.tell(f"{ball.slot} ({ball.label}) is missing")
            continue
        verdict.present += 1
        verdict.doubled += len(rows) - 1
        if problem := _wrong_ball(ball, rows[0]):
            verdict.wrong += 1
            verdict.tell(f"{ball.slot}: {problem}")
    for slot in told:
        verdict.wrong += 1
        verdict.tell(f"{slot} was never bowled")
    unnamed = [row for row in standing if not row["slot"] and row["over"] and row["kind"] != "review"]
    verdict.doubled += len(unnamed)
    if unnamed:
        verdict.tell(f"{len(unnamed)} events have no place in the match, the first at {unnamed[0]['over']}")


def _wrong_ball(ball: BallRecord, row: Mapping[str, Any]) -> str:
    told = {"runs": row["runs"], "over": row["over"], "score": row["detail"].get("score")}
    real = {"runs": ball.runs, "over": ball.label, "score": ball.score}
    return ", ".join(f"{name} is {told[name]}, not {real[name]}" for name in real if told[name] != real[name])


def _judge_wickets(verdict: Verdict, recording: Recording, standing: Sequence[Mapping[str, Any]]) -> None:
    told = _by_slot(standing, "w:")
    real = {
        f"w:{number}:{wicket}"
        for number, innings in enumerate(recording.innings, start=1)
        for wicket in range(1, innings.wickets + 1)
    }
    verdict.expected += len(real)
    verdict.present += len(real & told.keys())
    verdict.missing += len(real - told.keys())
    verdict.wrong += len(told.keys() - real)
    verdict.doubled += sum(len(rows) - 1 for rows in told.values())
    for slot in sorted(real ^ told.keys()):
        verdict.tell(f"{slot} is {'missing' if slot in real else 'no wicket'}")


def _judge_overs(verdict: Verdict, recording: Recording, standing: Sequence[Mapping[str, Any]]) -> None:
    """The score after every over, as the last ball of it tells it."""
    told, real = _after_overs(standing), _real_overs(recording)
    verdict.overs = len(real)
    for over, score in real.items():
        if told.get(over) != score:
            verdict.tell(f"after over {over} the score is {told.get(over)}, not {score}")


def _real_overs(recording: Recording) -> dict[str, str]:
    return {ball.slot.rpartition(":")[0]: ball.score for ball in recording.balls}


def _after_overs(standing: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    last: dict[str, tuple[int, Any]] = {}
    for row in standing:
        if row["slot"].startswith("b:"):
            over, _, index = row["slot"].rpartition(":")
            last[over] = max(
                last.get(over, (0, None)), (int(index), row["detail"].get("score")), key=lambda one: one[0]
            )
    return {over: score for over, (_, score) in last.items()}


def _judge_innings(verdict: Verdict, recording: Recording, match: Mapping[str, Any]) -> None:
    told = [(one["runs"], one["wickets"]) for one in match["innings"]]
    real = [(one.runs, one.wickets) for one in recording.innings]
    if told != real:
        verdict.tell(f"the innings are {told}, not {real}")


def _judge_end(verdict: Verdict, recording: Recording, match: Mapping[str, Any]) -> None:
    outcome, result = recording.outcome, str(match["result"])
    is_off = outcome.get("result") == "no result"
    expected = "abandoned" if is_off else "completed"
    if match["status"] != expected:
        verdict.tell(f"the match is {match['status']}, not {expected}")
    for word in expected_words(recording):
        if word.casefold() not in result.casefold():
            verdict.tell(f"the result is {result!r}, without {word!r}")


def expected_words(recording: Recording) -> list[str]:
    """What the sentence about the result has to say, whichever source's it is."""
    outcome = recording.outcome
    if outcome.get("result") in ("draw", "tie"):
        return ["drawn" if outcome["result"] == "draw" else "tied"]
    if outcome.get("result") == "no result" or not outcome.get("winner"):
        return []
    by = outcome.get("by") or {}
    return [f"{by[unit]} {unit.rstrip('s')}" for unit in ("runs", "wickets") if unit in by] or ["won"]
