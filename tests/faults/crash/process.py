"""Starts the forking process of driver.py and sends commands to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.patience import stretched
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python


class Driver:
    """Its children use the database and the stadium of `env`."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._path = Path(env["VAR_DIR"]) / "driver.log"
        self._log = self._path.open("ab")
        self._process = subprocess.Popen(  # it ends with its input, which this process holds open
            python("-m", "tests.faults.crash.driver"),
            env={**os.environ, "DATABASE_URL": "", "REDIS_URL": "", **env},
            cwd=PROJECT_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Returns the child's result and the signal that ended it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline() or "{}")
        assert answer, f"the driver ended:\n{self.log()}"
        assert answer["code"] in (0, -signal.SIGKILL), f"{do} {arguments} failed:\n{self.log()}"
        return answer

    def broken(self, *, bound: float = 60.0) -> dict[str, list[str]]:
        """Returns the violated invariants with the rows that violate them."""
        found: dict[str, list[str]] = self.ask("check", bound=bound)["result"]["broken"]
        return found

    def log(self) -> str:
        return self._path.read_text(errors="replace")[-4000:]

    def close(self) -> None:
        self._process.communicate(timeout=stretched(10))
        self._log.close()
