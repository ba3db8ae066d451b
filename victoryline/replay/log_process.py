"""Replays a match log in a separate process, whose settings have only a scratch SQLite database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python
from victoryline.replay.comparison import ReplayResult
from victoryline.replay.recording import InvalidRecordingError
from victoryline.replay.system import ReplayError, environment

INVALID_LOG = 3


def replay_in_process(path: Path, folder: Path, *, speed: float) -> ReplayResult:
    """Returns the result of one match log. The database stays in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    command = python("-m", "victoryline.replay.log_process", str(path), f"{speed:g}")
    own = environment({"VAR_DIR": str(folder)})
    done = subprocess.run(command, env=own, cwd=PROJECT_ROOT, capture_output=True, text=True, check=False)
    message = (done.stderr.strip() or done.stdout.strip() or f"code {done.returncode}").splitlines()[-1]
    if done.returncode == INVALID_LOG:
        raise InvalidRecordingError(message)
    if done.returncode:
        raise ReplayError(f"{path.name} could not be replayed: {message}")
    return ReplayResult(**json.loads(done.stdout.splitlines()[-1]))


def main(path: Path, speed: float) -> int:
    """Entry point of the process: prints the result as JSON."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from victoryline.replay.log_replay import replay_log
    from victoryline.replay.match_log import load

    try:
        log = load(path)
    except InvalidRecordingError as error:
        sys.stderr.write(f"{error}\n")
        return INVALID_LOG
    call_command("migrate", verbosity=0)
    sys.stdout.write(f"{json.dumps(asdict(replay_log(log, speed=speed, wait=time.sleep)))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2])))
