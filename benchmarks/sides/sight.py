"""How long after its commit a new state of a match is served: watches the table of snapshots, then asks the API.

PostgreSQL knows when each row was committed (`track_commit_timestamp`), to the microsecond and by the same clock as
ours. A new snapshot is found within POLL_SECONDS, then its match is read until that state, or a later one, is in the
answer; the lag runs from the commit to the arrival of that answer, so it is too long rather than too short.
Reads what to do as one JSON object from stdin (`Orders`), prints one JSON object at the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import psycopg2

from benchmarks.sides import wire

POLL_SECONDS = 0.005
GIVE_UP_SECONDS = 30.0
NEW = """
    SELECT id, match_id, sequence, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8
    FROM scraping_snapshot WHERE created_at > now() - interval '5 seconds'
"""


@dataclass(frozen=True)
class Orders:
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
class Watch:
    """Snapshots that came, and which of them have been seen in an answer."""

    known: set[int] = field(default_factory=set)
    waiting: list[Change] = field(default_factory=list)
    lags_ms: list[float] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    asked: int = 0

    def found(self, rows: list[tuple[int, int, int, float]]) -> None:
        for key, match, sequence, committed_at in rows:
            if key not in self.known:
                self.known.add(key)
                self.waiting.append(Change(match, sequence, committed_at))

    def shown(self, match: int, sequence: int, now: float) -> None:
        """An answer with this state has come: it shows all that came before it, too."""
        for change in [each for each in self.waiting if each.match == match and each.sequence <= sequence]:
            self.waiting.remove(change)
            self.lags_ms.append((now - change.committed_at) * 1000)

    def give_up(self, now: float) -> None:
        for change in [each for each in self.waiting if now - each.committed_at > GIVE_UP_SECONDS]:
            self.waiting.remove(change)
            self.never.append(f"match {change.match} #{change.sequence}")


class Looker:
    """Reads the matches of all that waits, each over a connection of its own: none waits for another's answer."""

    def __init__(self, orders: Orders, watch: Watch) -> None:
        self._orders, self.watch = orders, watch
        self._lines = wire.Lines((orders.host, orders.port), 2)
        self._under_way: set[int] = set()

    def look(self) -> None:
        for match in {change.match for change in self.watch.waiting} - self._under_way:
            path = f"/api/v1/matches/{match}"
            question = wire.request(f"{self._orders.host}:{self._orders.port}", path, token=self._orders.token)
            line = self._lines.free.pop() if self._lines.free else self._lines.add()
            line.ask(question, tag=match)
            self._under_way.add(match)
        for line, answer in self._lines.answers(POLL_SECONDS):
            self._under_way.discard(line.tag)
            self.watch.asked += 1
            if isinstance(answer, OSError):
                continue
            self._lines.free.append(line)
            if answer.status == 200:
                self.watch.shown(line.tag, json.loads(answer.body)["sequence"], time.time())

    def close(self) -> None:
        self._lines.close()


def main() -> None:
    orders, watch = Orders(**json.load(sys.stdin)), Watch()
    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    connection.autocommit = True
    looker = Looker(orders, watch)
    with connection.cursor() as cursor:
        cursor.execute(NEW)
        watch.known.update(row[0] for row in cursor.fetchall())
        end = time.monotonic() + orders.seconds
        while time.monotonic() < end or watch.waiting:
            if time.monotonic() < end:
                cursor.execute(NEW)
                watch.found(cursor.fetchall())
            looker.look()
            watch.give_up(time.time())
    connection.close()
    looker.close()
    found: dict[str, Any] = {"lags_ms": watch.lags_ms, "never": watch.never, "asked": watch.asked}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
