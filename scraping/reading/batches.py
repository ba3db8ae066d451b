"""Reads many matches concurrently and returns the results in batches, as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from scraping.errors import AuthExpired, Blocked, Drift, Gone, ResourceLost, ScrapingError
from scraping.payloads import Payload
from scraping.reading.read_modes import ReadModes
from scraping.reading.targets import BatchResult, ModeUsed, ReadPlan, StartOnLoop, Target
from scraping.readings import Reading, evidence_from

# Errors after which a visit is tried. Only the page itself can say that a match is gone.
FALLS_BACK = (AuthExpired, Blocked, Drift, Gone)


def start_unsupported(coroutine: Coroutine[Any, Any, None]) -> object:
    coroutine.close()
    raise RuntimeError("this reader reads one match at a time")


@dataclass(frozen=True)
class _Arrival:
    number: int
    used: ModeUsed
    reading: Reading | None
    error: Exception | None = None


class BatchReader:
    """Called by the task threads; the reads run on the loop thread."""

    def __init__(self, modes: ReadModes, start: StartOnLoop, parse: Callable[[Target, Reading], Payload]) -> None:
        self._modes = modes
        self._start = start
        self._parse = parse
        self._running: set[asyncio.Task[None]] = set()  # the loop holds tasks only weakly

    def read(self, targets: Sequence[Target], contexts: Sequence[Context]) -> Iterator[list[BatchResult]]:
        """Yields the results that have arrived, so that none waits for the slowest.

        Each target is read within its context, as `Reader.scorecard` reads it.
        """
        arrivals: SimpleQueue[_Arrival] = SimpleQueue()
        plans = [self._modes.plan(target) for target in targets]
        self._start(self._read_all(targets, plans, contexts, arrivals))
        waiting = len(targets)
        while waiting:
            batch = []
            for one in self._take_all(arrivals):
                target, context = targets[one.number], contexts[one.number]
                outcome = context.run(self._parsed, target, one)
                if isinstance(outcome, str):  # the reason for a visit
                    context.run(self._start, self._read_one(one.number, target, ReadPlan(outcome), arrivals))
                else:
                    batch.append(BatchResult(one.number, *outcome))
            waiting -= len(batch)
            if batch:
                yield batch

    @staticmethod
    def _take_all(arrivals: SimpleQueue[_Arrival]) -> list[_Arrival]:
        found = [arrivals.get()]
        with suppress(Empty):
            while True:
                found.append(arrivals.get_nowait())
        return found

    def _parsed(self, target: Target, one: _Arrival) -> tuple[Reading | None, Payload | None, Exception | None] | str:
        """Returns reading, payload and error; or the reason for a visit after another mode failed."""
        try:
            if one.reading is None:
                assert one.error is not None
                raise one.error
            with evidence_from(one.reading):
                return one.reading, self._parse(target, one.reading), None
        except FALLS_BACK as error:
            if not one.used.is_visit:
                try:
                    return self._modes.fall_back(target, error)
                except ScrapingError as refusal:
                    return one.reading, None, refusal
            return one.reading, None, error
        except Exception as error:  # noqa: BLE001 - a failure concerns its own task only
            return one.reading, None, error

    async def _read_all(
        self,
        targets: Sequence[Target],
        plans: Sequence[ReadPlan],
        contexts: Sequence[Context],
        arrivals: SimpleQueue[_Arrival],
    ) -> None:
        loop = asyncio.get_running_loop()
        for number, (target, plan, context) in enumerate(zip(targets, plans, contexts, strict=True)):
            reading = self._read_one(number, target, plan, arrivals)
            # A copy: the task thread continues in the context itself.
            self._running.add(task := loop.create_task(reading, context=context.copy()))
            task.add_done_callback(self._running.discard)

    async def _read_one(self, number: int, target: Target, plan: ReadPlan, arrivals: SimpleQueue[_Arrival]) -> None:
        used = ModeUsed()
        try:
            arrivals.put(_Arrival(number, used, await self._modes.read(target, plan, used)))
        except BaseException as error:
            failure = error if isinstance(error, Exception) else ResourceLost("the worker is stopping")
            arrivals.put(_Arrival(number, used, None, failure))
            if not isinstance(error, Exception):
                raise
