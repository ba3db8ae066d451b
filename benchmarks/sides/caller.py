"""Asks a server as fast as it answers: some connections, on each the next question when the last one is answered.

A process of its own. Reads what to do as one JSON object from stdin (`Orders`), prints one JSON object at the end. What
was asked while warming up is answered and counted (`asked`), but not measured.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks.sides import wire

SAMPLES = 40
WAIT_SECONDS = 10.0


@dataclass(frozen=True)
class Orders:
    host: str
    port: int
    paths: list[str]
    tokens: list[str]
    seconds: float
    warm_seconds: float = 0.5
    connections: int = 8
    is_conditional: bool = False  # with the ETag that this address had last, as a client that polls


@dataclass
class Seen:
    """Of all answers, and of those in the measured time."""

    asked: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    measured: Counter[str] = field(default_factory=Counter)
    received_bytes: int = 0
    samples: list[dict[str, Any]] = field(default_factory=list)


class Caller:
    def __init__(self, orders: Orders) -> None:
        self.orders, self.seen = orders, Seen()
        self._host = f"{orders.host}:{orders.port}"
        self._etags: dict[str, str] = {}
        self._number = 0
        self._warm_count = max(len(orders.paths), len(orders.tokens)) + orders.connections  # each was there once
        self._prepared = [] if orders.is_conditional else self._prepare()

    def run(self) -> None:
        lines = wire.Lines((self.orders.host, self.orders.port), self.orders.connections)
        try:
            for line in lines.free:
                self._ask(line)
            self._go_on(lines)
        finally:
            lines.close()

    def _go_on(self, lines: wire.Lines) -> None:
        """Until the time is over and nothing is under way any more."""
        orders, under_way = self.orders, len(lines.free)
        heard_at = began = time.perf_counter()
        begin = end = math.inf
        while under_way:
            for line, answer in lines.answers(1.0):
                heard_at = now = time.perf_counter()
                self._note(line, answer, now, is_measured=begin <= line.asked_at and now <= end)
                under_way -= 1
                if now < end:
                    self._ask(lines.add() if isinstance(answer, OSError) else line)
                    under_way += 1
                if begin == math.inf and now - began >= orders.warm_seconds and self.seen.asked >= self._warm_count:
                    begin, end = now, now + orders.seconds
            if time.perf_counter() - heard_at > WAIT_SECONDS:
                raise SystemExit(f"no answer within {WAIT_SECONDS:g} s")

    def _prepare(self) -> list[tuple[str, bytes]]:
        paths, tokens = self.orders.paths, self.orders.tokens or [""]
        count = len(paths) * len(tokens)  # 7919 is a prime: every token asks for many paths
        pairs = ((paths[number % len(paths)], tokens[(number * 7919) % len(tokens)]) for number in range(count))
        return [(path, wire.request(self._host, path, token=token)) for path, token in pairs]

    def _ask(self, line: wire.Line) -> None:
        number, self._number = self._number, self._number + 1
        if self._prepared:
            path, question = self._prepared[number % len(self._prepared)]
        else:
            path = self.orders.paths[number % len(self.orders.paths)]
            token = self.orders.tokens[(number * 7919) % len(self.orders.tokens)]
            question = wire.request(self._host, path, token=token, etag=self._etags.get(path, ""))
        line.ask(question, tag=path)

    def _note(self, line: wire.Line, answer: wire.Answer | OSError, now: float, *, is_measured: bool) -> None:
        seen = self.seen
        seen.asked += 1
        status = type(answer).__name__ if isinstance(answer, OSError) else str(answer.status)
        seen.statuses[status] += 1
        if is_measured:
            seen.measured[status] += 1
            seen.milliseconds.append((now - line.asked_at) * 1000)
        if isinstance(answer, OSError):
            return
        seen.received_bytes += len(answer.body)
        if self.orders.is_conditional and answer.status == 200:
            self._etags[line.tag] = answer.header("ETag")
        if is_measured and len(seen.samples) < SAMPLES:
            text = answer.body[:300].decode(errors="replace")
            seen.samples.append({"status": answer.status, "headers": answer.headers(), "path": line.tag, "body": text})


def main() -> None:
    orders = Orders(**json.load(sys.stdin))
    caller = Caller(orders)
    caller.run()
    seen, times = caller.seen, time.process_time()
    found = {
        "asked": seen.asked,
        "statuses": seen.statuses,
        "measured": seen.measured,
        "milliseconds": [round(value, 3) for value in seen.milliseconds],
        "received_bytes": seen.received_bytes,
        "samples": seen.samples,
        "cpu_seconds": times,
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
