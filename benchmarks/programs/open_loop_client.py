"""Sends requests at a fixed rate, independent of response times, like many independent consumers.

The latency of a request counts from its planned time, so a pause of the server counts for every delayed request. A
request without a free connection opens one. Runs as its own process: reads a `RequestPlan` as JSON from stdin and
prints one JSON object at the end.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks.programs import http_connections

TIMEOUT_SECONDS = 10.0
CONNECTIONS = 8
# Percentage of each kind of request. `match_again` sends the last ETag.
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
UNLOGGED = ("health", "status")  # public: no consumer, no row in the access log


@dataclass(frozen=True)
class RequestPlan:
    host: str
    port: int
    matches: list[int]
    tokens: list[str]
    rate: float
    seconds: float
    seed: int = 7


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    kind: str
    path: str
    match: int
    planned_at: float


@dataclass
class Counts:
    milliseconds: dict[str, list[float]] = field(default_factory=dict)  # by kind
    statuses: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)
    logged: int = 0  # responses that must be in the access log
    late_ms: list[float] = field(default_factory=list)  # delay of this client itself


class OpenLoopClient:
    def __init__(self, plan: RequestPlan) -> None:
        self.plan, self.counts = plan, Counts()
        self._host = f"{plan.host}:{plan.port}"
        self._random = random.Random(plan.seed)
        self._etags: dict[str, str] = {}
        self._sequences: dict[int, int] = {}
        self._since: dict[int, int] = {}

    def run(self) -> None:
        connections = http_connections.Connections((self.plan.host, self.plan.port), CONNECTIONS)
        try:
            self._read_every_match_once(connections)
            self._send_planned_requests(connections)
        finally:
            connections.close()

    def _read_every_match_once(self, connections: http_connections.Connections) -> None:
        """Reads every match once, unmeasured, for the first ETags and sequences."""
        connection = connections.free[0]
        for match in self.plan.matches:
            request = PlannedRequest("match", f"/api/v1/matches/{match}", match, time.perf_counter())
            connection.send(self._bytes(request), tag=request)
            while not (responses := [response for _, response in connections.responses(TIMEOUT_SECONDS)]):
                pass
            if isinstance(responses[0], OSError):
                raise responses[0]
            self._remember(request, responses[0])
            self.counts.logged += 1

    def _send_planned_requests(self, connections: http_connections.Connections) -> None:
        plan, number, pending = self.plan, 0, 0
        total = int(plan.rate * plan.seconds)
        last_response_at = began = time.perf_counter()
        while number < total or pending:
            due = began + number / plan.rate
            for connection, response in connections.responses(due - time.perf_counter() if number < total else 1.0):
                last_response_at = time.perf_counter()
                pending -= 1
                self._count(connection.tag, response, last_response_at)
                if not isinstance(response, OSError):
                    connections.free.append(connection)
            if number >= total and pending and time.perf_counter() - last_response_at > TIMEOUT_SECONDS:
                self.counts.errors.append(f"{pending} got no response")
                return
            while number < total and (now := time.perf_counter()) >= began + number / plan.rate:
                request = self._next(began + number / plan.rate)
                connection = connections.free.pop() if connections.free else connections.add()
                self.counts.late_ms.append((now - request.planned_at) * 1000)
                connection.send(self._bytes(request), tag=request)
                number += 1
                pending += 1

    def _next(self, planned_at: float) -> PlannedRequest:
        kind = self._random.choices(list(SHARES), list(SHARES.values()))[0]
        match = self._random.choice(self.plan.matches)
        return PlannedRequest(kind, self._path(kind, match), match, planned_at)

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

    def _bytes(self, request: PlannedRequest) -> bytes:
        token = "" if request.kind in UNLOGGED else self._random.choice(self.plan.tokens)
        etag = self._etags.get(request.path, "") if request.kind == "match_again" else ""
        return http_connections.request(self._host, request.path, token=token, etag=etag)

    def _count(self, request: PlannedRequest, response: http_connections.Response | OSError, now: float) -> None:
        counts = self.counts
        if isinstance(response, OSError):
            counts.statuses[type(response).__name__] += 1
            counts.errors.append(f"{request.path}: {response!r}")
            return
        counts.milliseconds.setdefault(request.kind, []).append((now - request.planned_at) * 1000)
        counts.statuses[str(response.status)] += 1
        counts.logged += request.kind not in UNLOGGED
        if response.status not in GOOD:
            counts.errors.append(f"{request.path}: {response.status} {response.body[:200].decode(errors='replace')}")
            return
        self._remember(request, response)
        if request.kind in {"match", "match_again"} and (age := response.header("X-Data-Age-Seconds")):
            counts.ages.append(float(age))

    def _remember(self, request: PlannedRequest, response: http_connections.Response) -> None:
        """Stores ETag, sequence and feed position for the next request about this match."""
        if response.status != 200:
            return
        if request.kind in {"match", "match_again"}:
            self._etags[request.path] = response.header("ETag")
            self._sequences[request.match] = json.loads(response.body)["sequence"]
        elif request.kind == "events":
            self._since[request.match] = json.loads(response.body)["next_since"]


def main() -> None:
    client = OpenLoopClient(RequestPlan(**json.load(sys.stdin)))
    client.run()
    counts = client.counts
    result: dict[str, Any] = {
        "milliseconds": {kind: [round(value, 3) for value in values] for kind, values in counts.milliseconds.items()},
        "statuses": counts.statuses,
        "errors": counts.errors[:20],
        "error_count": len(counts.errors),
        "ages": counts.ages,
        "logged": counts.logged,
        "late_ms": [round(value, 3) for value in counts.late_ms],
        "cpu_seconds": time.process_time(),
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
