"""Many matches read at once: each comes when it comes, and whoever takes them takes what is there, in waves."""

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
from scraping.reading.target import Brought, Plan, StartOnLoop, Target, Way
from scraping.reading.ways import Ways
from scraping.readings import Reading, evidence_from

# What a visit may make good. Only the page itself can say that a match is gone.
FALLS_BACK = (AuthExpired, Blocked, Drift, Gone)


def unable(coroutine: Coroutine[Any, Any, None]) -> object:
    coroutine.close()
    raise RuntimeError("this reader reads one match at a time")


@dataclass(frozen=True)
class _Arrived:
    number: int
    way: Way
    reading: Reading | None
    error: Exception | None = None


class Waves:
    """Asked by the task threads; the reading itself happens on the loop thread."""

    def __init__(self, ways: Ways, start: StartOnLoop, parse: Callable[[Target, Reading], Payload]) -> None:
        self._ways = ways
        self._start = start
        self._parse = parse
        self._under_way: set[asyncio.Task[None]] = set()  # the loop itself holds tasks only weakly

    def read(self, targets: Sequence[Target], contexts: Sequence[Context]) -> Iterator[list[Brought]]:
        """Many matches at once, each within its context; what has come meanwhile is handed out together.

        Nobody waits for the slowest: a wave is what is there. Each is read as `scorecard` reads it.
        """
        arrived: SimpleQueue[_Arrived] = SimpleQueue()
        plans = [self._ways.plan(target) for target in targets]
        self._start(self._read_each(targets, plans, contexts, arrived))
        waiting = len(targets)
        while waiting:
            wave = []
            for one in self._take_all(arrived):
                target, context = targets[one.number], contexts[one.number]
                outcome = context.run(self._parsed, target, one)
                if isinstance(outcome, str):  # the direct way did not work: why the page is visited now
                    context.run(self._start, self._read_one(one.number, target, Plan(None, outcome), arrived))
                else:
                    wave.append(Brought(one.number, *outcome))
            waiting -= len(wave)
            if wave:
                yield wave

    @staticmethod
    def _take_all(arrived: SimpleQueue[_Arrived]) -> list[_Arrived]:
        found = [arrived.get()]
        with suppress(Empty):
            while True:
                found.append(arrived.get_nowait())
        return found

    def _parsed(self, target: Target, one: _Arrived) -> tuple[Reading | None, Payload | None, Exception | None] | str:
        try:
            if one.reading is None:
                assert one.error is not None
                raise one.error
            with evidence_from(one.reading):
                return one.reading, self._parse(target, one.reading), None
        except FALLS_BACK as error:
            if one.way.is_short:
                try:
                    return self._ways.fall_back(target, error)
                except ScrapingError as refusal:
                    return one.reading, None, refusal
            return one.reading, None, error
        except Exception as error:  # noqa: BLE001 - every failure belongs to its own task, not to its neighbours'
            return one.reading, None, error

    async def _read_each(
        self,
        targets: Sequence[Target],
        plans: Sequence[Plan],
        contexts: Sequence[Context],
        arrived: SimpleQueue[_Arrived],
    ) -> None:
        loop = asyncio.get_running_loop()
        for number, (target, plan, context) in enumerate(zip(targets, plans, contexts, strict=True)):
            reading = self._read_one(number, target, plan, arrived)
            # A copy: whoever asked goes on in the context itself, on another thread.
            self._under_way.add(task := loop.create_task(reading, context=context.copy()))
            task.add_done_callback(self._under_way.discard)

    async def _read_one(self, number: int, target: Target, plan: Plan, arrived: SimpleQueue[_Arrived]) -> None:
        way = Way()
        try:
            arrived.put(_Arrived(number, way, await self._ways.read(target, plan, way)))
        except BaseException as error:
            told = error if isinstance(error, Exception) else ResourceLost("the worker is stopping")
            arrived.put(_Arrived(number, way, None, told))
            if not isinstance(error, Exception):
                raise
