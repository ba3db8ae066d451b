"""Procrastinate's program of the journal bench; runs in its own virtual environment and imports nothing of VictoryLine.

The same protocol as benchmarks/programs/journal.py. Its tasks are empty coroutines, deferred in batches and run by its
own worker. Finished jobs are kept, as in ours.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import time
from argparse import ArgumentParser
from typing import Any

import procrastinate

BATCH = 500


def make_app(url: str, connections: int) -> procrastinate.App:
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=connections, max_size=connections)
    app = procrastinate.App(connector=connector)

    @app.task(name="nothing")
    async def nothing() -> None:
        pass

    return app


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=10)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    go: Any = [context.Queue() for _ in range(options.processes)]
    done: Any = context.Queue()
    asyncio.run(prepare(options.url))
    workers = [
        context.Process(target=work, args=(options.url, options.concurrency, each, done), daemon=True) for each in go
    ]
    for worker in workers:
        worker.start()
    for _ in workers:
        done.get(timeout=60)
    asyncio.run(serve(options.url, go, done))
    for each in go:
        each.put(False)
    for worker in workers:
        worker.join(timeout=10)


async def prepare(url: str) -> None:
    app = make_app(url, 1)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def serve(url: str, go: Any, done: Any) -> None:
    app = make_app(url, 2)
    async with app.open_async():
        print(json.dumps({"ready": True}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await run(app, int(line.split()[1]), go, done)), flush=True)


async def run(app: procrastinate.App, number: int, go: Any, done: Any) -> dict[str, Any]:
    """Runs one round: defers every job, then waits until all are done."""
    began = time.perf_counter()
    for start in range(0, number, BATCH):
        await app.tasks["nothing"].batch_defer_async(*[{}] * min(BATCH, number - start))
    opened = time.perf_counter()
    for each in go:
        each.put(True)
    for _ in go:
        await asyncio.to_thread(done.get)
    seconds = time.perf_counter() - began
    rows = await app.connector.execute_query_all_async(
        "SELECT count(*) AS stored FROM procrastinate_jobs WHERE status = 'succeeded'"
    )
    return {"tasks": number, "seconds": seconds, "open_seconds": opened - began, "stored": rows[0]["stored"]}


def work(url: str, concurrency: int, go: Any, done: Any) -> None:
    asyncio.run(run_jobs(url, concurrency, go, done))


async def run_jobs(url: str, concurrency: int, go: Any, done: Any) -> None:
    app = make_app(url, concurrency + 2)
    async with app.open_async():
        done.put(True)
        while await asyncio.to_thread(go.get):
            await app.run_worker_async(
                concurrency=concurrency, wait=False, listen_notify=False, install_signal_handlers=False
            )
            done.put(True)


if __name__ == "__main__":
    main()
