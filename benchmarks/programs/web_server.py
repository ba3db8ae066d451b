"""A web server for any application, with the server software, processes and threads of ours."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import psutil

from benchmarks.cpu import CpuTimes, tree
from benchmarks.errors import BenchError
from benchmarks.programs import http_connections
from benchmarks.progress import wait_until
from tests.processes import end_group
from tests.servers import free_port
from victoryline.configuration import PROJECT_ROOT, load
from victoryline.lib.processes import spawn

OURS = "victoryline.wsgi:application"
START_SECONDS = 60.0
STOP_SECONDS = 15.0


class WebServer:
    def __init__(self, name: str, application: str, *, env: Mapping[str, str], folder: Path, ready: str) -> None:
        """`ready` is an address that returns 200 when the server is up."""
        self.name, self.port = name, free_port()
        self._application, self._env, self._folder, self._ready = application, dict(env), folder, ready
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    def command(self) -> list[str]:
        """Returns the command of `manage.py run` for the web process, with this application."""
        from victoryline.embedded import web_command

        arguments = web_command(load({"PORT": str(self.port), "HOST": "127.0.0.1"}))
        if OURS not in arguments:
            raise BenchError(f"{OURS} is not in the command of the web process: {' '.join(arguments)}")
        return [self._application if part == OURS else part for part in arguments]

    def __enter__(self) -> Self:
        with self.log.open("ab") as log:
            self.process = spawn(self.command(), env=self._env, cwd=PROJECT_ROOT, stdout=log, stderr=log)
        try:
            wait_until(self._is_up, seconds=START_SECONDS, what=f"waiting for {self.name}")
        except BenchError as error:
            self.close()
            raise BenchError(f"{error}\n{self.log.read_text(errors='replace')[-3000:]}") from error
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def log(self) -> Path:
        return self._folder / f"{self.name}.log"

    def close(self) -> None:
        """Stops it gracefully, so that it writes its queued rows."""
        process, self.process = self.process, None
        if process is not None:
            self._signal(process, signal.SIGCONT)
            process.terminate()
            end_group(process, grace_seconds=STOP_SECONDS)

    def freeze(self) -> None:
        """Stops it (SIGSTOP) while other servers take their turn."""
        if self.process is not None:
            self._signal(self.process, signal.SIGSTOP)

    def thaw(self) -> None:
        if self.process is not None:
            self._signal(self.process, signal.SIGCONT)

    def processes(self) -> list[psutil.Process]:
        return tree(self.process.pid) if self.process is not None else []

    def cpu_times(self, others: Mapping[str, int]) -> CpuTimes:
        return CpuTimes.of({"server": self.processes(), **{name: tree(pid) for name, pid in others.items()}})

    def _is_up(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            raise BenchError(f"{self.name} ended with {self.process.returncode}")
        with contextlib.suppress(OSError):
            return (
                http_connections.request_once(self.address, http_connections.request("127.0.0.1", self._ready)).status
                < 500
            )
        return False

    def _signal(self, process: subprocess.Popen[bytes], number: int) -> None:
        for one in tree(process.pid):
            with contextlib.suppress(psutil.Error):
                one.send_signal(number)
