"""The console's lists over a journal of a given size: `-m benchmarks.programs.console --rows 1000000`, then `go 20`.

Fills the database of DATABASE_URL (or SQLite), and answers each line with the milliseconds of each page, rendered by
the whole chain of middleware, without a network.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.progress import say

if TYPE_CHECKING:
    from django.db.models import Model

PART = 100_000
MATCHES = 200
KEY, URL = "bench_77", "https://bench.example/match/77"
# Of n rows: the number n, and what differs between two engines.
EXPRESSIONS = {
    "sqlite": {
        "uuid": "lower(hex(randomblob(16)))",
        "time": "strftime('%Y-%m-%d %H:%M:%f', 'now', '-' || n || ' seconds')",
    },
    "postgresql": {"uuid": "gen_random_uuid()", "time": "now() - n * interval '1 second'"},
}
TASK = "scraping/scrapetask/"
ERROR = "scraping/scrapeerror/"
PAGES = {
    "tasks": TASK,
    "tasks, tenth page": f"{TASK}?p=10",
    "tasks that succeeded": f"{TASK}?state__exact=SUCCESS",
    "dead letters": f"{TASK}?state__exact=DEAD",
    "tasks that wait": f"{TASK}?state__exact=PENDING",
    "tasks of a rare type": f"{TASK}?resource__exact=lineups",
    "tasks of a source": f"{TASK}?source__id__exact=1",
    "tasks by class of error": f"{TASK}?error_class__exact=auth",
    "tasks, search: id": f"{TASK}?q=1000",
    "tasks, search: key of a match": f"{TASK}?q={KEY}",
    "tasks, search: url": f"{TASK}?q={URL}",
    "tasks, search: text of an error": f"{TASK}?q=layout+7",
    "tasks, search: nothing found": f"{TASK}?q=nothing+like+it",
    "errors": ERROR,
    "errors that are open": f"{ERROR}?resolved__exact=0",
    "errors by class": f"{ERROR}?error_class__exact=auth",
    "errors, search: text": f"{ERROR}?q=layout+7",
    "errors, search: nothing found": f"{ERROR}?q=nothing+like+it",
    "error groups": "scraping/errorgroup/",
    "audit": "monitoring/auditentry/",
    "audit by action": "monitoring/auditentry/?action_type__exact=resume",
    "audit, search": "monitoring/auditentry/?q=nothing+like+it",
    "log entries": "monitoring/logentry/",
    "log entries by level": "monitoring/logentry/?level__exact=ERROR",
    "log entries, search": "monitoring/logentry/?q=nothing+like+it",
    "access log": "apiauth/accesslog/",
    "access log of failures": "apiauth/accesslog/?outcome=failed",
    "events": "scraping/matchevent/",
    "snapshots": "scraping/snapshot/",
    "matches": "scraping/match/",
}


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, required=True)
    options = parser.parse_args()
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    prepare(options.rows)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"milliseconds": measure(int(line.split()[1]))}), flush=True)


def measure(rounds: int) -> dict[str, list[float]]:
    from django.contrib.auth.models import User
    from django.test import Client

    client, user = Client(headers={"host": "localhost"}), User.objects.get_or_create(username="bench")[0]
    User.objects.update(is_staff=True, is_superuser=True)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    took: dict[str, list[float]] = {name: [] for name in PAGES}
    for _ in range(rounds):
        for name, page in PAGES.items():
            began = time.perf_counter()
            answer = client.get(f"/admin/{page}")
            took[name].append(1000 * (time.perf_counter() - began))
            if answer.status_code != 200:
                raise RuntimeError(f"{page} was answered with {answer.status_code}")
    return took


def prepare(rows: int) -> None:
    """Fills the tables: of a hundred tasks one is dead, ten have an error; as many audit entries, logs and events."""
    from django.db import connection
    from django.utils import timezone

    now = timezone.now()
    for template, number, columns in _templates(rows, now):
        say(f"  {number:,} rows of {type(template)._meta.db_table}")  # noqa: SLF001 - documented under this name
        _multiply(template, number, columns)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "PRAGMA optimize")


def _templates(rows: int, now: datetime) -> list[tuple[Model, int, dict[str, str]]]:
    """Returns a row of each table, how often it is repeated, and the SQL of the columns that differ."""
    from apiauth.models import AccessLog, Consumer
    from monitoring.models import AuditEntry, LogEntry
    from scraping.models import ErrorGroup, Match, MatchEvent, MatchRef, ScrapeError, ScrapeTask, Snapshot, Source

    source = Source.objects.create(key="bench", name="Bench", sport="cricket", base_url="https://bench.example")
    Match.objects.bulk_create(Match(sport="cricket", title=f"Team {n} v Other", created_at=now) for n in range(MATCHES))
    match = Match.objects.order_by("pk")[0]
    MatchRef.objects.bulk_create(
        MatchRef(source=source, match_id=match.pk + n, source_event_id=str(n), url=f"{URL[:-2]}{n}", created_at=now)
        for n in range(MATCHES)
    )
    ref = MatchRef.objects.order_by("pk")[0]
    ErrorGroup.objects.bulk_create(
        ErrorGroup(
            fingerprint=f"{n:064}",
            source=source,
            error_class="drift",
            error_code="layout",
            sample_message=f"layout {n} of the page has changed",
            first_seen_at=now - timedelta(days=1),
            last_seen_at=now,
        )
        for n in range(100)
    )
    group = ErrorGroup.objects.order_by("pk")[0]
    task = ScrapeTask.objects.create(
        source=source, ref=ref, resource="scorecard", state="SUCCESS", run_at=now, created_at=now, finished_at=now
    )
    error = ScrapeError.objects.create(
        task=task,
        match=match,
        match_key=KEY,
        group=group,
        timestamp=now,
        url=URL,
        error_class="drift",
        error_type="parsing",
        error_code="layout",
        stack_trace="at line\n" * 40,
        error_message="layout of the page has changed",
        evidence="<html>" * 200,
    )
    of_match = f"{match.pk} + n % {MATCHES}"
    audit = AuditEntry.objects.create(timestamp=now, actor="scheduler", action_type="hint", trigger_condition="silent")
    log = LogEntry.objects.create(timestamp=now, level="INFO", event="A match was read", action="x", line={"a": 1})
    consumer = Consumer.objects.create(name="Bench", created_at=now)
    access = AccessLog.objects.create(
        consumer=consumer, timestamp=now, method="GET", endpoint="/api/v1/matches", response_status=200, request_id="r"
    )
    event = MatchEvent.objects.create(
        match=match,
        source=source,
        event_id="b:1:1:1",
        kind="ball",
        created_at=now,
        is_current=False,
        sequence=1,
        revision=1,
    )
    snapshot = Snapshot.objects.create(match=match, sequence=0, created_at=now, captured_at=now, payload={"a": 1})
    rare = {"state": "CASE n % 100 WHEN 0 THEN 'DEAD' WHEN 1 THEN 'SKIPPED' ELSE 'SUCCESS' END"}
    rare["resource"] = "CASE n % 100000 WHEN 7 THEN 'lineups' ELSE 'scorecard' END"
    rare["reason"] = "CASE n % 100 WHEN 0 THEN 'layout of the page' ELSE '' END"
    rare["error_class"] = "CASE n % 100 WHEN 0 THEN CASE n % 100000 WHEN 0 THEN 'auth' ELSE 'drift' END ELSE '' END"
    times = dict.fromkeys(("run_at", "created_at", "finished_at"), "{time}")
    tenth = rows // 10
    return [
        (task, rows, {"request_id": "{uuid}", "ref_id": f"{ref.pk} + n % {MATCHES}", **times, **rare}),
        (
            error,
            tenth,
            {
                "timestamp": "{time}",
                "task_id": f"{task.pk} + 10 * n",
                "match_number": of_match,
                "group_id": f"{group.pk} + n % 100",
                "resolved": "n % 3 <> 0",
                "error_class": "CASE n % 10000 WHEN 0 THEN 'auth' ELSE 'drift' END",
            },
        ),
        (
            audit,
            tenth,
            {
                "timestamp": "{time}",
                "entry_id": "{uuid}",
                "action_type": "CASE n % 10000 WHEN 0 THEN 'resume' ELSE 'hint' END",
            },
        ),
        (log, tenth, {"timestamp": "{time}", "level": "CASE n % 10000 WHEN 0 THEN 'ERROR' ELSE 'INFO' END"}),
        (
            access,
            tenth,
            {"timestamp": "{time}", "response_status": "CASE n % 10000 WHEN 0 THEN 500 ELSE 200 END"},
        ),
        (event, tenth, {"created_at": "{time}", "match_id": of_match, "event_id": "'b:' || n"}),
        (snapshot, tenth, {"created_at": "{time}", "match_id": of_match, "sequence": "n"}),
    ]


def _multiply(template: Model, number: int, columns: dict[str, str]) -> None:
    """Repeats a row; `columns` are those that differ, as SQL of n."""
    from django.db import connection

    meta, known = template._meta, EXPRESSIONS[connection.vendor]  # noqa: SLF001 - documented under this name
    names = [field.column for field in meta.concrete_fields if not field.primary_key]
    values = ", ".join(columns.get(name, f't."{name}"').format(**known) for name in names)
    quoted = ", ".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor:
        for first in range(1, number, PART):
            last = min(first + PART, number) - 1
            cursor.execute(
                f"WITH RECURSIVE s(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n < {last}) "  # noqa: S608
                f"INSERT INTO {meta.db_table} ({quoted}) SELECT {values} FROM s, {meta.db_table} t "
                f"WHERE t.id = {template.pk}"
            )


if __name__ == "__main__":
    main()
