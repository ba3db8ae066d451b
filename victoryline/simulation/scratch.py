"""Runs a night in a process of its own, on a scratch SQLite database: `python -m victoryline.simulation.scratch`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python
from victoryline.replay.system import environment


class SimulationError(Exception):
    """The night could not be run to its end; the message is the last line of its process."""


def simulate(*, seed: int, matches: int, hours: float, faults: str, is_shown: bool = False) -> dict[str, Any]:
    """Returns the figures, violations, text and picture of a night. `is_shown`: progress on stderr."""
    options = (str(seed), str(matches), f"{hours:g}", faults)
    with tempfile.TemporaryDirectory(prefix="vl-night-") as folder:
        done = subprocess.run(
            python("-m", "victoryline.simulation.scratch", *options),
            env=environment({"VAR_DIR": folder, "PYTHONHASHSEED": "0"}),
            cwd=PROJECT_ROOT,
            stdout=subprocess.PIPE,
            stderr=None if is_shown else subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SimulationError(((done.stderr or done.stdout).strip() or f"code {done.returncode}").splitlines()[-1])
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main(seed: int, matches: int, hours: float, faults: str) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from victoryline.simulation import plot, report
    from victoryline.simulation.night import Night
    from victoryline.simulation.world import Script

    call_command("migrate", verbosity=0)
    script = Script(seed=seed, matches=matches, hours=hours, faults=faults)
    result = Night(script, progress=lambda text: print(text, file=sys.stderr, flush=True)).run()  # noqa: T201
    answer = {"document": report.document(result), "text": report.text(result), "svg": plot.svg(result)}
    sys.stdout.write(f"{json.dumps(answer)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]))
