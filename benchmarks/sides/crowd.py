"""Asks an API at a fixed rate, whether it answers quickly or not, as many consumers do who know nothing of each other.

The plan says when each question is due; its time runs from then, so a server that stalls is not spared what it kept
from being asked. A question that finds no free connection opens one. A process of its own: reads what to do as one JSON
object from stdin (`Orders`), prints one JSON object at the end.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks.sides import wire

PATIENCE_SECONDS = 10.0
CONNECTIONS = 8
# How often each is asked, in percent: match reads with and without the ETag that was had last, and all the rest.
SHARES = {
    "match": 35.0,
    "match_again": 35.0,
    "list": 15.0,
    "events": 5.0,
    "delta": 5.0,
    "usage": 2.5,
    "health": 1.5,
    "status": 1.0,
}
GOOD = (200, 304)
UNLOGGED = ("health", "status")  # open to everybody: no consumer, no line in the access log


@dataclass(frozen=True)
class Orders:
    host: str
    port: int
    matches: list[int]
    tokens: list[str]
    rate: float
    seconds: float
    seed: int = 7


@dataclass(frozen=True, slots=True)
class Question:
    kind: str
    path: str
    match: int
    planned_at: float


@dataclass
class Seen:
    milliseconds: dict[str, list[float]] = field(default_factory=dict)  # by kind
    statuses: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)
    logged: int = 0  # answers that the access log must know
    late_ms: list[float] = field(default_factory=list)  # how late we were ourselves


class Crowd:
    def __init__(self, orders: Orders) -> None:
        self.orders, self.seen = orders, Seen()
        self._host = f"{orders.host}:{orders.port}"
        self._random = random.Random(orders.seed)
        self._etags: dict[str, str] = {}
        self._sequences: dict[int, int] = {}
        self._since: dict[int, int] = {}

    def run(self) -> None:
        lines = wire.Lines((self.orders.host, self.orders.port), CONNECTIONS)
        try:
            self._meet(lines)
            self._keep_asking(lines)
        finally:
            lines.close()

    def _meet(self, lines: wire.Lines) -> None:
        """Every match once, one after the other and not measured: from here on we have something to go on from."""
        line = lines.free[0]
        for match in self.orders.matches:
            question = Question("match", f"/api/v1/matches/{match}", match, time.perf_counter())
            line.ask(self._bytes(question), tag=question)
            while not (answers := [answer for _, answer in lines.answers(PATIENCE_SECONDS)]):
                pass
            if isinstance(answers[0], OSError):
                raise answers[0]
            self._learn(question, answers[0])
            self.seen.logged += 1

    def _keep_asking(self, lines: wire.Lines) -> None:
        orders, number, under_way = self.orders, 0, 0
        total = int(orders.rate * orders.seconds)
        heard_at = began = time.perf_counter()
        while number < total or under_way:
            due = began + number / orders.rate
            for line, answer in lines.answers(due - time.perf_counter() if number < total else 1.0):
                heard_at = time.perf_counter()
                under_way -= 1
                self._note(line.tag, answer, heard_at)
                if not isinstance(answer, OSError):
                    lines.free.append(line)
            if number >= total and under_way and time.perf_counter() - heard_at > PATIENCE_SECONDS:
                self.seen.errors.append(f"{under_way} were never answered")
                return
            while number < total and (now := time.perf_counter()) >= began + number / orders.rate:
                question = self._next(began + number / orders.rate)
                line = lines.free.pop() if lines.free else lines.add()
                self.seen.late_ms.append((now - question.planned_at) * 1000)
                line.ask(self._bytes(question), tag=question)
                number += 1
                under_way += 1

    def _next(self, planned_at: float) -> Question:
        kind = self._random.choices(list(SHARES), list(SHARES.values()))[0]
        match = self._random.choice(self.orders.matches)
        return Question(kind, self._path(kind, match), match, planned_at)

    def _path(self, kind: str, match: int) -> str:
        plain = f"/api/v1/matches/{match}"
        return {
            "match": plain,
            "match_again": plain,
            "list": "/api/v1/matches?status=live&limit=50",
            "events": f"{plain}/events?since={self._since.get(match, 0)}",
            "delta": f"{plain}/delta?since={self._sequences.get(match, 0)}",
            "usage": "/api/v1/usage",
            "health": "/health",
            "status": "/status",
        }[kind]

    def _bytes(self, question: Question) -> bytes:
        token = "" if question.kind in UNLOGGED else self._random.choice(self.orders.tokens)
        etag = self._etags.get(question.path, "") if question.kind == "match_again" else ""
        return wire.request(self._host, question.path, token=token, etag=etag)

    def _note(self, question: Question, answer: wire.Answer | OSError, now: float) -> None:
        seen = self.seen
        if isinstance(answer, OSError):
            seen.statuses[type(answer).__name__] += 1
            seen.errors.append(f"{question.path}: {answer!r}")
            return
        seen.milliseconds.setdefault(question.kind, []).append((now - question.planned_at) * 1000)
        seen.statuses[str(answer.status)] += 1
        seen.logged += question.kind not in UNLOGGED
        if answer.status not in GOOD:
            seen.errors.append(f"{question.path}: {answer.status} {answer.body[:200].decode(errors='replace')}")
            return
        self._learn(question, answer)
        if question.kind in {"match", "match_again"} and (age := answer.header("X-Data-Age-Seconds")):
            seen.ages.append(float(age))

    def _learn(self, question: Question, answer: wire.Answer) -> None:
        """What the next question about this match begins with."""
        if answer.status != 200:
            return
        if question.kind in {"match", "match_again"}:
            self._etags[question.path] = answer.header("ETag")
            self._sequences[question.match] = json.loads(answer.body)["sequence"]
        elif question.kind == "events":
            self._since[question.match] = json.loads(answer.body)["next_since"]


def main() -> None:
    crowd = Crowd(Orders(**json.load(sys.stdin)))
    crowd.run()
    seen = crowd.seen
    found: dict[str, Any] = {
        "milliseconds": {kind: [round(value, 3) for value in values] for kind, values in seen.milliseconds.items()},
        "statuses": seen.statuses,
        "errors": seen.errors[:20],
        "error_count": len(seen.errors),
        "ages": seen.ages,
        "logged": seen.logged,
        "late_ms": [round(value, 3) for value in seen.late_ms],
        "cpu_seconds": time.process_time(),
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
