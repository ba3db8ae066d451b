"""A record told into a SQLite database of its own, by a process whose settings know no other one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from victoryline.env import PROJECT_ROOT
from victoryline.lib.processes import python
from victoryline.rehearsal.recording import BadRecordingError
from victoryline.rehearsal.system import RehearsalError, environment
from victoryline.rehearsal.verdict import Verdict

BAD_RECORD = 3


def retold(record: Path, folder: Path, *, speed: float) -> Verdict:
    """The verdict on one record. The database stays in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    command = python("-m", "victoryline.rehearsal.scratch", str(record), f"{speed:g}")
    own = environment({"VAR_DIR": str(folder)})
    done = subprocess.run(command, env=own, cwd=PROJECT_ROOT, capture_output=True, text=True, check=False)
    said = (done.stderr.strip() or done.stdout.strip() or f"code {done.returncode}").splitlines()[-1]
    if done.returncode == BAD_RECORD:
        raise BadRecordingError(said)
    if done.returncode:
        raise RehearsalError(f"{record.name} could not be told: {said}")
    return Verdict(**json.loads(done.stdout.splitlines()[-1]))


def main(record: Path, speed: float) -> int:
    """In a process of its own: prints the verdict."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from victoryline.rehearsal.archived import load
    from victoryline.rehearsal.retelling import retell

    try:
        found = load(record)
    except BadRecordingError as error:
        sys.stderr.write(f"{error}\n")
        return BAD_RECORD
    call_command("migrate", verbosity=0)
    sys.stdout.write(f"{json.dumps(asdict(retell(found, speed=speed, wait=time.sleep)))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2])))
