"""Runs the engine under our supervisor, which starts killed processes again, until it is stopped.

A bench kills processes several times a minute. The supervisor would take this for a crash loop and wait longer each
time. Here each death counts as the first one.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser

from victoryline.configuration import PROJECT_ROOT, load
from victoryline.lib.processes import python
from victoryline.supervisor import FIRST_DELAY_SECONDS, Child, Supervisor


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--embedded", action="store_true", help="scheduler and worker in one process")
    options = parser.parse_args()
    with Supervisor(var_dir=load(os.environ).var_dir, cwd=PROJECT_ROOT, say=say, grace_seconds=10) as supervisor:
        for name, command in commands(options.workers, is_embedded=options.embedded).items():
            supervisor.start(Child(name, python("manage.py", *command), stops_first=name != "scheduler"))
        supervisor.watch(until=lambda: reset_restart_delays(supervisor))


def commands(workers: int, *, is_embedded: bool) -> dict[str, tuple[str, ...]]:
    if is_embedded:
        return {"engine": ("run_worker", "--with-scheduler")}
    return {f"worker-{number + 1}": ("run_worker",) for number in range(workers)} | {"scheduler": ("run_scheduler",)}


def reset_restart_delays(supervisor: Supervisor) -> bool:
    """Resets the restart delays. Never returns True, so that the supervisor continues."""
    for child in supervisor.children.values():
        child.delay_seconds = FIRST_DELAY_SECONDS
    return False


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
