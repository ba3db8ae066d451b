"""A night through a SQLite database of its own, by a process whose settings know no other one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from typing import Any

from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python
from victoryline.replay.system import environment


class ScratchError(Exception):
    """The night through the database could not be lived through; the message is what was said last."""


def compared(*, seed: int, matches: int, hours: float, faults: str) -> dict[str, Any]:
    """The figures of both ways, and where they differ by more than they may."""
    with tempfile.TemporaryDirectory(prefix="vl-night-") as folder:
        command = python("-m", "victoryline.night.scratch", str(seed), str(matches), f"{hours:g}", faults)
        own = environment({"VAR_DIR": folder})
        done = subprocess.run(command, env=own, cwd=PROJECT_ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ScratchError((done.stderr.strip() or done.stdout.strip() or f"code {done.returncode}").splitlines()[-1])
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main(seed: int, matches: int, hours: float, faults: str) -> int:
    """In a process of its own: prints the figures."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from victoryline.night.comparison import differences, pure_counts
    from victoryline.night.through_database import DatabaseNight
    from victoryline.night.world import Script

    call_command("migrate", verbosity=0)
    script = Script(seed=seed, matches=matches, hours=hours, faults=faults, is_crowded=False, quiet_seconds=0.0)
    real, pure = DatabaseNight(script).run(), pure_counts(script)
    answer = {"database": asdict(real), "simulator": asdict(pure), "differences": differences(real, pure)}
    sys.stdout.write(f"{json.dumps(answer)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]))
