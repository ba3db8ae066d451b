"""Compares scores and times of events with the ground truth of the stadium."""

from __future__ import annotations

import random
import re
import urllib.error
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.stadium_process import StadiumProcess

Score = tuple[int, int, str] | None  # runs, wickets, overs; None for a side that has not batted
PRINTED_SCORE = re.compile(r"(\d+)/(\d+)\((\d+\.\d+)")
STEPS = 8
EventLatencies = tuple[dict[str, list[float]], int]  # seconds by kind, and how many events were not written
EVENT_KINDS = {"ball": "ball", "wicket": "dismissal"}  # by the stadium's word


@dataclass(frozen=True)
class ObservedScore:
    """The scores of one match, read between two times (unix seconds)."""

    key: str
    asked_at: float
    read_at: float
    scores: tuple[Score, Score]


def wrong_scores(
    seen: Sequence[ObservedScore], stadium: StadiumProcess, *, sample: int, seed: int = 7
) -> tuple[int, list[str]]:
    """Checks a sample; returns its size, and a message for each score that was never true in its time span."""
    chosen = random.Random(seed).sample(list(seen), min(sample, len(seen)))
    return len(chosen), [problem for one in chosen if (problem := _problem(one, stadium))]


def _problem(one: ObservedScore, stadium: StadiumProcess) -> str:
    span = one.read_at - one.asked_at
    truths = []
    for step in range(STEPS + 1):  # from the newest moment back to the oldest
        try:
            response = stadium.truth("crex", one.key, at=f"{one.read_at - span * step / STEPS:.3f}")
        except urllib.error.HTTPError as error:
            return f"{one.key}: the stadium returned {error.code} for the ground truth"
        truths.append(scores_of(response["score"]))
        if truths[-1] == one.scores:
            return ""
    return f"{one.key}: read {one.scores}, expected {truths[0]}"


def event_latencies(
    truth: Sequence[Mapping[str, Any]], written: Mapping[str, datetime], *, since: datetime, until: datetime
) -> EventLatencies:
    """Returns the seconds from an event to its write, by kind, and how many events of this time were not written.

    `truth`: the events of a match by the stadium. `written`: when an event was written, by its id.
    """
    seconds: dict[str, list[float]] = {kind: [] for kind in EVENT_KINDS.values()}
    missing = 0
    for event in truth:
        happened = datetime.fromisoformat(event["happened_at"])
        if event["kind"] not in EVENT_KINDS or not since <= happened < until:
            continue
        if (at := written.get(event["id"])) is None:
            missing += 1
        else:
            seconds[EVENT_KINDS[event["kind"]]].append((at - happened).total_seconds())
    return seconds, missing


def scores_of(score: dict[str, dict[str, int | str | None] | None]) -> tuple[Score, Score]:
    """Returns the scores of a payload or of the ground truth; both have the same order of teams."""
    first, second = (_side(score.get(name)) for name in ("team_a", "team_b"))
    return first, second


def _side(side: dict[str, int | str | None] | None) -> Score:
    if not side or side.get("overs") is None:
        return None
    return int(side["runs"] or 0), int(side["wickets"] or 0), str(side["overs"])


def printed_score(text: str) -> Score:
    """As the site prints it: `92/10(14.4`, without the closing bracket; empty for a side that has not batted."""
    found = PRINTED_SCORE.match(text)
    return (int(found[1]), int(found[2]), found[3]) if found else None
