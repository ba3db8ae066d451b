"""A child process of a bench that takes commands on stdin and returns JSON lines: start it, take turns, end it."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.cpu import Cpu, CpuTimes, tree
from benchmarks.errors import BenchError
from benchmarks.progress import say
from tests.processes import end_group
from victoryline.configuration import PROJECT_ROOT

START_SECONDS = 900.0  # filling a journal with a million rows takes a while
ROUND_SECONDS = 300.0


@dataclass
class Turn:
    tasks: int = 0
    seconds: float = 0.0
    open_seconds: float = 0.0
    cpu: list[Cpu] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.tasks / self.seconds if self.seconds else 0.0


class BenchProcess:
    def __init__(
        self,
        name: str,
        command: Sequence[object],
        *,
        env: Mapping[str, str],
        folder: Path,
        server_pid: int = 0,
        shares_stderr: bool = False,
    ) -> None:
        """`shares_stderr`: its stderr is shown as the progress of the bench."""
        self.name, self.stored, self._shares_stderr = name, 0, shares_stderr
        self._command, self._env, self._server_pid = [str(part) for part in command], env, server_pid
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._output: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread()

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=PROJECT_ROOT,
                env=dict(self._env),
                stdin=subprocess.PIPE,  # it ends at end of file, so it cannot outlive the bench
                stdout=subprocess.PIPE,
                stderr=None if self._shares_stderr else log,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        try:
            self._next_response(START_SECONDS)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        end_group(process, grace_seconds=5)
        self._reader.join()
        process.stdout.close()

    def take_turn(self, *, seconds: float, tasks: int) -> Turn:
        """Runs rounds of `tasks` tasks until `seconds` have passed; at least one."""
        turn = Turn()
        while turn.seconds < seconds:
            before = self._cpu_times()
            response = self._run_round(tasks)
            turn.cpu.append(before.until(self._cpu_times()))
            turn.tasks += response["tasks"]
            turn.seconds += response["seconds"]
            turn.open_seconds += response["open_seconds"]
        say(f"  {self.name}: {turn.rate:.0f} tasks a second ({turn.tasks} in {turn.seconds:.1f} s)")
        return turn

    def request(self, text: str) -> dict[str, Any]:
        """Sends a line and returns the response."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n".encode())
        self._process.stdin.flush()
        return self._next_response(ROUND_SECONDS)

    def _run_round(self, tasks: int) -> dict[str, Any]:
        response = self.request(f"go {tasks}")
        if response["stored"] != self.stored + tasks:
            raise BenchError(f"{self.name} did {response['stored'] - self.stored} of {tasks} tasks")
        self.stored = response["stored"]
        return response

    def _cpu_times(self) -> CpuTimes:
        assert self._process is not None
        parts = {"program": tree(self._process.pid)}
        return CpuTimes.of(parts | ({"postgresql": tree(self._server_pid)} if self._server_pid else {}))

    def _read_output(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        for line in process.stdout:
            self._output.put(line)
        self._output.put(b"")

    def _next_response(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._output.get(timeout=seconds)
        except queue.Empty:
            line = b""
        if not line:
            raise BenchError(f"{self.name} sent no response:\n{self._log.read_text(errors='replace')[-3000:]}")
        response: dict[str, Any] = json.loads(line)
        return response
