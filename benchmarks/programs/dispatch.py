"""The scheduler's dispatch over a journal of a given size. `-m benchmarks.programs.dispatch --rows 1000000`.

Every tick has all matches due: it rescues expired tasks, opens due ones, and sends hints to a broker that drops them.
Between two ticks the opened tasks are finished, outside the measured time.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from benchmarks.progress import say

RUNNING = 20  # tasks that workers are executing meanwhile
FILL = """
    INSERT INTO scrape_tasks (
        request_id, source_id, ref_id, job_id, resource, priority, state, stage, attempt, charged_attempts, rescues,
        run_at, hinted_at, worker_id, fence, lease_until, created_at, started_at, finished_at, error_class, reason,
        error)
    SELECT gen_random_uuid(), %(source)s, %(first_ref)s + n %% %(refs)s, NULL, %(resource)s, 0,
        CASE WHEN n %% 1000 = 0 THEN 'DEAD' ELSE 'SUCCESS' END, 'DONE', 1, 0, 0,
        t, t, 'bench-worker', 1, NULL, t, t, t, '', CASE WHEN n %% 1000 = 0 THEN 'of no interest' ELSE '' END, NULL
    FROM (SELECT n, now() - (%(rows)s - n) * interval '1 day' / %(rows)s AS t
          FROM generate_series(%(first)s, %(last)s) AS n) AS made
"""
PART = 50_000


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--matches", type=int, default=300)
    options = parser.parse_args()
    import django

    django.setup()
    import dramatiq
    from dramatiq.brokers.stub import StubBroker

    dramatiq.set_broker(StubBroker(middleware=[]))
    prepare(options.rows, options.matches)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(int(line.split()[1]), options.matches)), flush=True)


def prepare(rows: int, matches: int) -> None:
    from django.db import connection
    from django.utils import timezone

    from scraping.models import Match, MatchLifecycle, MatchRef, Source, Stage
    from scraping.payloads import Resource, Status

    now = timezone.now()
    source = Source.objects.create(
        key="bench",
        name="Bench",
        sport="cricket",
        base_url="https://bench.example",
        # The limits of a source must not hide matches: every tick opens a task for each of them.
        max_concurrency=2 * matches + RUNNING,
        burst_allowance=matches,
        min_interval_seconds=0.0,
    )
    made = Match.objects.bulk_create(
        Match(sport="cricket", status=Status.LIVE, lifecycle=MatchLifecycle.ACTIVE, priority=0, created_at=now)
        for _ in range(matches + RUNNING)
    )
    refs = MatchRef.objects.bulk_create(
        MatchRef(
            source=source,
            match=match,
            source_event_id=str(index),
            url="https://bench.example/",
            next_poll_at=now if index < matches else now + timedelta(days=1),
            created_at=now,
        )
        for index, match in enumerate(made)
    )
    values: dict[str, Any] = {"source": source.pk, "first_ref": refs[0].pk, "refs": len(refs), "rows": rows}
    with connection.cursor() as cursor:
        for first in range(1, rows + 1, PART):
            last = min(first + PART - 1, rows)
            cursor.execute(FILL, {**values, "resource": Resource.SCORECARD.value, "first": first, "last": last})
            if rows > PART:
                say(f"  {last:,} of {rows:,} rows are in")
    _start_tasks([ref.pk for ref in refs[matches:]], Stage.CAPTURED)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")  # autovacuum would have run by then


def _start_tasks(ref_ids: list[int], stage: str) -> None:
    from django.utils import timezone

    from scraping import journal
    from scraping.models import MatchRef, ScrapeTask
    from scraping.payloads import Resource
    from victoryline.lib import identity

    now, name = timezone.now(), identity.new_name()
    new = [
        journal.NewTask(ref.source_id, ref.pk, Resource.SCORECARD, 0, run_at=now)
        for ref in MatchRef.objects.filter(pk__in=ref_ids)
    ]
    journal.open_tasks(new, now=now)
    for task_id in ScrapeTask.objects.filter(ref__in=ref_ids, state="PENDING").values_list("pk", flat=True):
        journal.claim(task_id, worker_id=name, lease_seconds=86_400, now=now)
    ScrapeTask.objects.filter(worker_id=name).update(stage=stage)


def run(ticks: int, matches: int) -> dict[str, Any]:
    from django.utils import timezone

    from scraping.models import MatchRef, ScrapeTask, TaskState
    from scraping.scheduler.due import open_due
    from scraping.scheduler.hint import hint_due_tasks
    from scraping.scheduler.recover import rescue_expired

    steps = {"rescue": rescue_expired, "open": lambda now: len(open_due(now)), "hint": hint_due_tasks}
    took: dict[str, list[float]] = {name: [] for name in (*steps, "all")}
    for _ in range(ticks):
        now = timezone.now()
        began = time.perf_counter()
        for name, step in steps.items():
            start = time.perf_counter()
            done = step(now)
            took[name].append(1000 * (time.perf_counter() - start))
            if done != (0 if name == "rescue" else matches):
                raise RuntimeError(f"the step {name} found {done} of {matches}")
        took["all"].append(1000 * (time.perf_counter() - began))
        _drop_messages()
        opened = ScrapeTask.objects.filter(state=TaskState.PENDING)
        opened.update(state=TaskState.SUCCESS, stage="DONE", started_at=now, finished_at=now)
        MatchRef.objects.filter(next_poll_at__lte=now).update(next_poll_at=now)
    return {"milliseconds": took}


def _drop_messages() -> None:
    import dramatiq

    broker: Any = dramatiq.get_broker()
    broker.flush_all()


if __name__ == "__main__":
    main()
