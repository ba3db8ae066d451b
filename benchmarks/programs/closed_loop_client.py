"""Sends requests as fast as the server responds: the next one on a connection after each response.

Runs as its own process. Reads a `RequestPlan` as JSON from stdin and prints one JSON object at the end. Requests of the
warm-up are counted (`asked`) but not measured.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks.programs import http_connections

SAMPLES = 40
WAIT_SECONDS = 10.0


@dataclass(frozen=True)
class RequestPlan:
    host: str
    port: int
    paths: list[str]
    tokens: list[str]
    seconds: float
    warm_seconds: float = 0.5
    connections: int = 8
    is_conditional: bool = False  # sends the last ETag of the address


@dataclass
class Counts:
    """Counts of all responses, and of those in the measured time."""

    asked: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    measured: Counter[str] = field(default_factory=Counter)
    received_bytes: int = 0
    samples: list[dict[str, Any]] = field(default_factory=list)


class ClosedLoopClient:
    def __init__(self, plan: RequestPlan) -> None:
        self.plan, self.counts = plan, Counts()
        self._host = f"{plan.host}:{plan.port}"
        self._etags: dict[str, str] = {}
        self._number = 0
        self._warm_count = max(len(plan.paths), len(plan.tokens)) + plan.connections  # each is used once
        self._prepared = [] if plan.is_conditional else self._prepare()

    def run(self) -> None:
        connections = http_connections.Connections((self.plan.host, self.plan.port), self.plan.connections)
        try:
            for connection in connections.free:
                self._send_next(connection)
            self._run_until_end(connections)
        finally:
            connections.close()

    def _run_until_end(self, connections: http_connections.Connections) -> None:
        """Runs until the time is over and no request is open."""
        plan, pending = self.plan, len(connections.free)
        last_response_at = began = time.perf_counter()
        begin = end = math.inf
        while pending:
            for connection, response in connections.responses(1.0):
                last_response_at = now = time.perf_counter()
                self._count(connection, response, now, is_measured=begin <= connection.sent_at and now <= end)
                pending -= 1
                if now < end:
                    self._send_next(connections.add() if isinstance(response, OSError) else connection)
                    pending += 1
                if begin == math.inf and now - began >= plan.warm_seconds and self.counts.asked >= self._warm_count:
                    begin, end = now, now + plan.seconds
            if time.perf_counter() - last_response_at > WAIT_SECONDS:
                raise SystemExit(f"no response within {WAIT_SECONDS:g} s")

    def _prepare(self) -> list[tuple[str, bytes]]:
        paths, tokens = self.plan.paths, self.plan.tokens or [""]
        count = len(paths) * len(tokens)  # 7919 is a prime: every token requests many paths
        pairs = ((paths[number % len(paths)], tokens[(number * 7919) % len(tokens)]) for number in range(count))
        return [(path, http_connections.request(self._host, path, token=token)) for path, token in pairs]

    def _send_next(self, connection: http_connections.Connection) -> None:
        number, self._number = self._number, self._number + 1
        if self._prepared:
            path, request_bytes = self._prepared[number % len(self._prepared)]
        else:
            path = self.plan.paths[number % len(self.plan.paths)]
            token = self.plan.tokens[(number * 7919) % len(self.plan.tokens)]
            request_bytes = http_connections.request(self._host, path, token=token, etag=self._etags.get(path, ""))
        connection.send(request_bytes, tag=path)

    def _count(
        self,
        connection: http_connections.Connection,
        response: http_connections.Response | OSError,
        now: float,
        *,
        is_measured: bool,
    ) -> None:
        counts = self.counts
        counts.asked += 1
        status = type(response).__name__ if isinstance(response, OSError) else str(response.status)
        counts.statuses[status] += 1
        if is_measured:
            counts.measured[status] += 1
            counts.milliseconds.append((now - connection.sent_at) * 1000)
        if isinstance(response, OSError):
            return
        counts.received_bytes += len(response.body)
        if self.plan.is_conditional and response.status == 200:
            self._etags[connection.tag] = response.header("ETag")
        if is_measured and len(counts.samples) < SAMPLES:
            text = response.body[:300].decode(errors="replace")
            counts.samples.append(
                {"status": response.status, "headers": response.headers(), "path": connection.tag, "body": text}
            )


def main() -> None:
    plan = RequestPlan(**json.load(sys.stdin))
    client = ClosedLoopClient(plan)
    client.run()
    counts, times = client.counts, time.process_time()
    result = {
        "asked": counts.asked,
        "statuses": counts.statuses,
        "measured": counts.measured,
        "milliseconds": [round(value, 3) for value in counts.milliseconds],
        "received_bytes": counts.received_bytes,
        "samples": counts.samples,
        "cpu_seconds": times,
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
