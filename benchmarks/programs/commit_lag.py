"""Measures the time from the commit of a new match state to the first API response that has it.

PostgreSQL stores the commit time of each row (`track_commit_timestamp`), in microseconds and by the same clock as this
process. New snapshots are found every POLL_SECONDS; then their match is read until the response has that state or a
later one. The lag ends with the arrival of that response, so it is rather too long than too short. Reads a
`RequestPlan` as JSON from stdin and prints one JSON object at the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import psycopg2

from benchmarks.programs import http_connections

POLL_SECONDS = 0.005
TIMEOUT_SECONDS = 30.0
NEW_SNAPSHOTS = """
    SELECT id, match_id, sequence, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8
    FROM live_match_data WHERE created_at > now() - interval '5 seconds'
"""


@dataclass(frozen=True)
class RequestPlan:
    host: str
    port: int
    token: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Change:
    match: int
    sequence: int
    committed_at: float


@dataclass
class CommitLags:
    """New snapshots, and the lags of those that were served."""

    known: set[int] = field(default_factory=set)
    waiting: list[Change] = field(default_factory=list)
    lags_ms: list[float] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    asked: int = 0

    def add(self, rows: list[tuple[int, int, int, float]]) -> None:
        for key, match, sequence, committed_at in rows:
            if key not in self.known:
                self.known.add(key)
                self.waiting.append(Change(match, sequence, committed_at))

    def served(self, match: int, sequence: int, now: float) -> None:
        """Takes a response with this state, which includes all earlier ones."""
        for change in [each for each in self.waiting if each.match == match and each.sequence <= sequence]:
            self.waiting.remove(change)
            self.lags_ms.append((now - change.committed_at) * 1000)

    def time_out(self, now: float) -> None:
        for change in [each for each in self.waiting if now - each.committed_at > TIMEOUT_SECONDS]:
            self.waiting.remove(change)
            self.never.append(f"match {change.match} #{change.sequence}")


class MatchReader:
    """Reads the matches with waiting snapshots, each over its own connection."""

    def __init__(self, plan: RequestPlan, lags: CommitLags) -> None:
        self._orders, self.lags = plan, lags
        self._connections = http_connections.Connections((plan.host, plan.port), 2)
        self._pending: set[int] = set()

    def read(self) -> None:
        for match in {change.match for change in self.lags.waiting} - self._pending:
            path = f"/api/v1/matches/{match}"
            request_bytes = http_connections.request(
                f"{self._orders.host}:{self._orders.port}", path, token=self._orders.token
            )
            connection = self._connections.free.pop() if self._connections.free else self._connections.add()
            connection.send(request_bytes, tag=match)
            self._pending.add(match)
        for connection, response in self._connections.responses(POLL_SECONDS):
            self._pending.discard(connection.tag)
            self.lags.asked += 1
            if isinstance(response, OSError):
                continue
            self._connections.free.append(connection)
            if response.status == 200:
                self.lags.served(connection.tag, json.loads(response.body)["sequence"], time.time())

    def close(self) -> None:
        self._connections.close()


def main() -> None:
    plan, lags = RequestPlan(**json.load(sys.stdin)), CommitLags()
    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    connection.autocommit = True
    reader = MatchReader(plan, lags)
    with connection.cursor() as cursor:
        cursor.execute(NEW_SNAPSHOTS)
        lags.known.update(row[0] for row in cursor.fetchall())
        end = time.monotonic() + plan.seconds
        while time.monotonic() < end or lags.waiting:
            if time.monotonic() < end:
                cursor.execute(NEW_SNAPSHOTS)
                lags.add(cursor.fetchall())
            reader.read()
            lags.time_out(time.time())
    connection.close()
    reader.close()
    result: dict[str, Any] = {"lags_ms": lags.lags_ms, "never": lags.never, "asked": lags.asked}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
