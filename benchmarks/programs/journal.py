"""Our journal with empty tasks: opened in batches, hinted, claimed, finished.

Workers are processes with threads, as in production. This process does the work of the scheduler (open, find due
tasks, hint) and sends task ids directly to the workers, without a broker.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
import time
from argparse import ArgumentParser
from multiprocessing.queues import Queue
from typing import Any

BATCH = 500
HINT_SIZE = 20  # task ids in one message to a worker process
LEASE_SECONDS = 300.0


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=2000, help="the highest number of tasks in a round")
    options = parser.parse_args()
    import django

    django.setup()
    context = multiprocessing.get_context("spawn")
    due: Queue[list[int] | None] = context.Queue()
    done: Queue[int] = context.Queue()
    workers = [
        context.Process(target=work, args=(due, done, options.threads, number), daemon=True)
        for number in range(options.processes)
    ]
    for worker in workers:
        worker.start()
    refs = prepare(options.tasks)
    for _ in workers:
        done.get(timeout=60)  # each reports once that it is ready
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(int(line.split()[1]), refs, due, done)), flush=True)
    for _ in workers:
        due.put(None)
    for worker in workers:
        worker.join(timeout=10)


def prepare(number: int) -> list[tuple[int, int]]:
    """Creates matches for the tasks and returns (source, ref) of each."""
    from django.utils import timezone

    from scraping.models import Match, MatchRef, Source

    now = timezone.now()
    source = Source.objects.create(key="bench", name="Bench", sport="cricket", base_url="https://bench.example")
    matches = Match.objects.bulk_create(Match(sport="cricket", created_at=now) for _ in range(number))
    MatchRef.objects.bulk_create(
        MatchRef(source=source, match=match, source_event_id=str(index), url="https://bench.example/", created_at=now)
        for index, match in enumerate(matches)
    )
    return list(MatchRef.objects.filter(source=source).values_list("source_id", "pk"))


def run(number: int, refs: list[tuple[int, int]], due: Queue[list[int] | None], done: Queue[int]) -> dict[str, Any]:
    """Runs one round: opens every task, then waits until all are done."""
    from django.utils import timezone

    from scraping import journal
    from scraping.models import ScrapeTask, TaskState
    from scraping.payloads import Resource

    began = time.perf_counter()
    for start in range(0, number, BATCH):
        now = timezone.now()
        journal.open_tasks(
            [
                journal.NewTask(source_id, ref_id, Resource.SCORECARD, 0, run_at=now)
                for source_id, ref_id in refs[start : min(start + BATCH, number)]
            ],
            now=now,
        )
    opened = time.perf_counter()
    hinted = finished = 0
    while finished < number:
        if hinted < number and hinted - finished <= BATCH:  # prepare the next batch while the workers run this one
            hinted += _hint(due)
        else:
            finished += done.get(timeout=120)
    seconds = time.perf_counter() - began
    good = ScrapeTask.objects.filter(state=TaskState.SUCCESS).count()
    return {"tasks": number, "seconds": seconds, "open_seconds": opened - began, "stored": good}


def _hint(due: Queue[list[int] | None]) -> int:
    """Finds due tasks, marks them as hinted and sends their ids, like the hint step of the scheduler."""
    from django.utils import timezone

    from scraping.models import ScrapeTask, TaskState

    now = timezone.now()
    waiting = ScrapeTask.objects.filter(state=TaskState.PENDING, run_at__lte=now, hinted_at__isnull=True)
    ids = list(waiting.order_by("priority", "run_at").values_list("pk", flat=True)[:BATCH])
    ScrapeTask.objects.filter(pk__in=ids, state=TaskState.PENDING).update(hinted_at=now)
    for start in range(0, len(ids), HINT_SIZE):
        due.put(ids[start : start + HINT_SIZE])
    return len(ids)


def work(due: Queue[list[int] | None], done: Queue[int], threads: int, number: int) -> None:
    import django

    django.setup()
    stop = threading.Event()

    def one() -> None:
        from django.db import connection
        from django.utils import timezone

        from scraping import journal

        name = f"bench-{number}-{threading.get_ident()}"
        while not stop.is_set():
            ids = due.get()
            if ids is None:
                stop.set()
                due.put(None)
                break
            for task_id in ids:
                claim = journal.claim(task_id, worker_id=name, lease_seconds=LEASE_SECONDS, now=timezone.now())
                if claim is None:
                    raise RuntimeError(f"task {task_id} could not be claimed")
                with journal.finishing(claim, now=timezone.now()):
                    pass
            done.put(len(ids))
        connection.close()

    worker_threads = [threading.Thread(target=one, daemon=True) for _ in range(threads)]
    for each in worker_threads:
        each.start()
    done.put(0)
    for each in worker_threads:
        each.join()


if __name__ == "__main__":
    main()
