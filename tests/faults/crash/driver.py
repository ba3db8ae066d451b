"""A process that forks workers, which are killed: `python -m tests.faults.crash.driver`, one JSON command per line.

Loading Django takes a second, a fork takes no time. Each command runs in a child with its own connections. The parent
never uses the database.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
django.setup()

import dramatiq  # noqa: E402 - Django must be set up first
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from monitoring.invariants import (  # noqa: E402
    CheckContext,
    check_rules,
    consistent_view,
)
from scraping.scheduler.hint import ACTOR, QUEUE  # noqa: E402
from tests.faults.crash import flows, writing  # noqa: E402
from victoryline.lib import crash  # noqa: E402
from victoryline.lib.hint_broker import install_broker  # noqa: E402

Report = Callable[[Any], None]


def prepare(report: Report) -> None:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("sync_sources", stdout=sys.stderr)
    flows.recover()
    check(report)


def die(report: Report, *, flow: str, at: str) -> None:
    def ready() -> None:
        report(flows.written_rows())
        crash.arm(at)

    flows.FLOWS[flow](ready)


def check(report: Report, *, bound: float = 60.0) -> None:
    with consistent_view():
        results = list(check_rules(CheckContext(timezone.now(), bound)))
        rows = flows.written_rows()
    broken = {f"{each.invariant} {each.name}": each.broken for each in results if not each.is_ok}
    report({"broken": broken, "rows": rows})


def recover(report: Report) -> None:
    flows.recover()
    check(report)


def rescue(report: Report) -> None:
    """Rescues tasks as the scheduler does every second; reports the state of the newest task."""
    report(flows.rescue())


def hint_again(report: Report, *, times: int) -> None:
    """Sends a number of hints for every open task of a match at the same time."""
    broker = install_broker(settings.CONFIG.redis_url)
    broker.declare_queue(QUEUE)
    tasks = list(flows.open_tasks())
    for _ in range(times):
        for task in tasks:
            broker.enqueue(dramatiq.Message(queue_name=QUEUE, actor_name=ACTOR, args=(task,), kwargs={}, options={}))
    report({"tasks": tasks})


def crowd(report: Report, *, writers: int, polls: int) -> None:
    """Runs a number of processes at once, each polling its own match a number of times."""
    call_command("migrate", verbosity=0, interactive=False)
    report(writing.crowd(writers, polls))


COMMANDS: dict[str, Callable[..., None]] = {
    "prepare": prepare,
    "die": die,
    "check": check,
    "recover": recover,
    "rescue": rescue,
    "hint_again": hint_again,
    "crowd": crowd,
}


def in_a_child(command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Runs a command in a child; returns its result and the signal that ended it (0: none)."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        code = 0
        try:
            COMMANDS[command](lambda result: os.write(writing, json.dumps(result, default=str).encode()), **arguments)
        except BaseException:  # noqa: BLE001 - printed to the log; the exit code reports the failure
            traceback.print_exc()
            code = 1
        sys.stderr.flush()
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        result = pipe.read()
    _, status = os.waitpid(pid, 0)
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {
        "result": json.loads(result) if result else None,
        "signal": ended,
        "code": os.waitstatus_to_exitcode(status),
    }


def main() -> None:
    for line in sys.stdin:
        wanted = json.loads(line)
        answer = in_a_child(wanted.pop("do"), wanted)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
