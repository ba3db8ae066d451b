"""Runs a night in a process of its own, on a scratch SQLite database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchError
from stadium.replay.player import environment
from tests import migrated
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python


def simulate(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures and violations of the night with these options of `Script`."""
    with tempfile.TemporaryDirectory(prefix="vl-night-") as folder:
        done = subprocess.run(
            python("-m", "benchmarks.night.scratch", json.dumps(plan)),
            env=environment({"VAR_DIR": folder, "PYTHONHASHSEED": "0"}),
            cwd=PROJECT_ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        message = (done.stderr.strip() or f"code {done.returncode}").splitlines()[-1]
        raise BenchError(f"the night of seed {plan['seed']} could not be run to its end: {message}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main(plan: str) -> None:
    """Entry point of the process: prints the result as JSON."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
    import django

    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    from benchmarks.night.night import Night
    from benchmarks.night.world import Script

    migrated.place(Path(settings.DATABASES["default"]["NAME"]))  # in a run of `make test`
    call_command("migrate", verbosity=0)
    print(json.dumps(Night(Script(**json.loads(plan))).run().document()))


if __name__ == "__main__":
    main(sys.argv[1])
