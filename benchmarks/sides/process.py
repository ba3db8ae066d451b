"""A side of a comparison as seen by the bench: start it, let it take a turn, end it."""

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

from benchmarks.cpu import Cpu, CpuMark, tree
from benchmarks.errors import BenchError
from benchmarks.progress import say
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import end_group

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


class Side:
    def __init__(
        self,
        name: str,
        command: Sequence[object],
        *,
        env: Mapping[str, str],
        folder: Path,
        server_pid: int = 0,
        tells: bool = False,
    ) -> None:
        """`tells`: what it says on stderr is the bench's own progress."""
        self.name, self.stored, self._tells = name, 0, tells
        self._command, self._env, self._server_pid = [str(word) for word in command], env, server_pid
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._said: queue.Queue[bytes] = queue.Queue()
        self._listener = threading.Thread()

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=PROJECT_ROOT,
                env=dict(self._env),
                stdin=subprocess.PIPE,  # it ends when this does, so it can't outlive us
                stdout=subprocess.PIPE,
                stderr=None if self._tells else log,
                start_new_session=True,
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        try:
            self._next(START_SECONDS)
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
        self._listener.join()
        process.stdout.close()

    def take_turn(self, *, seconds: float, tasks: int) -> Turn:
        """As many rounds of so many tasks as fit; at least one."""
        turn = Turn()
        while turn.seconds < seconds:
            before = self._mark()
            told = self._go(tasks)
            turn.cpu.append(before.until(self._mark()))
            turn.tasks += told["tasks"]
            turn.seconds += told["seconds"]
            turn.open_seconds += told["open_seconds"]
        say(f"  {self.name}: {turn.rate:.0f} tasks a second ({turn.tasks} in {turn.seconds:.1f} s)")
        return turn

    def ask(self, text: str) -> dict[str, Any]:
        """Say a line; what it answers."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n".encode())
        self._process.stdin.flush()
        return self._next(ROUND_SECONDS)

    def _go(self, tasks: int) -> dict[str, Any]:
        told = self.ask(f"go {tasks}")
        if told["stored"] != self.stored + tasks:
            raise BenchError(f"{self.name} did {told['stored'] - self.stored} of {tasks} tasks")
        self.stored = told["stored"]
        return told

    def _mark(self) -> CpuMark:
        assert self._process is not None
        parts = {"program": tree(self._process.pid)}
        return CpuMark.of(parts | ({"postgresql": tree(self._server_pid)} if self._server_pid else {}))

    def _listen(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        for line in process.stdout:
            self._said.put(line)
        self._said.put(b"")

    def _next(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._said.get(timeout=seconds)
        except queue.Empty:
            line = b""
        if not line:
            raise BenchError(f"{self.name} said nothing more:\n{self._log.read_text(errors='replace')[-3000:]}")
        told: dict[str, Any] = json.loads(line)
        return told
