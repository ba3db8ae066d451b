"""The balls and scores of a recorded match (Cricsheet JSON).

Read without the stadium's code, which plays the same file: otherwise an error in the stadium's conversion would be
compared with itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NO_WICKET = frozenset({"retired hurt", "retired not out"})
NO_BALLS_DELIVERED = ("wides", "noballs")


class InvalidRecordingError(Exception):
    """The file is not a recorded match; the message names it."""


@dataclass(frozen=True)
class BallRecord:
    """One delivery. `slot` is the system's key of it: innings, over and place in the over."""

    slot: str
    label: str  # "11.5"
    runs: int
    is_wicket: bool
    score: str  # of the innings after the ball: "96/3"


@dataclass(frozen=True)
class InningsRecord:
    team: str
    runs: int
    wickets: int
    balls: tuple[BallRecord, ...]


@dataclass(frozen=True)
class Recording:
    name: str
    teams: tuple[str, str]
    innings: tuple[InningsRecord, ...]
    outcome: dict[str, Any]

    @property
    def balls(self) -> tuple[BallRecord, ...]:
        return tuple(ball for innings in self.innings for ball in innings.balls)


def load(path: Path) -> Recording:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        info = data["info"]
        innings = tuple(_innings(number, one) for number, one in enumerate(data.get("innings") or (), start=1))
        first, second = info["teams"]
        return Recording(path.stem, (first, second), innings, info.get("outcome") or {})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRecordingError(f"{path.name} is no recorded match: {error!r}") from error


def _innings(number: int, data: dict[str, Any]) -> InningsRecord:
    penalty = data.get("penalty_runs") or {}
    start = int(penalty.get("pre") or 0)
    balls = tuple(_balls(number, data.get("overs") or (), start))
    runs, wickets = map(int, balls[-1].score.split("/")) if balls else (start, 0)
    return InningsRecord(data["team"], runs + int(penalty.get("post") or 0), wickets, balls)


def _balls(number: int, overs: Any, runs: int) -> Iterator[BallRecord]:
    wickets = 0
    for over in overs:
        legal = 0
        for index, delivery in enumerate(over["deliveries"], start=1):
            added = int(delivery["runs"]["total"])
            fallen = sum(one["kind"] not in NO_WICKET for one in delivery.get("wickets") or ())
            runs, wickets = runs + added, wickets + fallen
            yield BallRecord(
                slot=f"b:{number}:{over['over']}:{index}",
                label=f"{over['over']}.{legal + 1}",
                runs=added,
                is_wicket=fallen > 0,
                score=f"{runs}/{wickets}",
            )
            extras = delivery.get("extras") or {}
            legal += not any(name in extras for name in NO_BALLS_DELIVERED)
