"""The whole embedded system, started by `manage.py run` in a folder of its own."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

import psutil

from tests import migrated
from tests.patience import stretched, wait_for
from tests.servers import free_port
from victoryline.configuration import PROJECT_ROOT

START_SECONDS = 90.0


class NoSuchChildError(AssertionError):
    """The system has not exactly one such child at this moment."""


class EmbeddedSystem:
    """`manage.py run`. `env` overrides the configuration; `folder` is its VAR_DIR and survives restarts."""

    def __init__(self, folder: Path, *, has_tables: bool = True, **env: str) -> None:
        """`has_tables`: its database need not be migrated, if that was done in this run already."""
        self.folder, self.port, self.has_tables = folder, free_port(), has_tables
        self.env = {"PORT": str(self.port), "PROMETHEUS_PORT": str(free_port()), "VAR_DIR": str(folder), **env}
        self.terminal = folder / "terminal"
        self.process: subprocess.Popen[bytes] | None = None
        self._family: set[psutil.Process] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def demo(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.folder / "demo.json").read_text())
        return found

    def launch(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.has_tables:
            migrated.place(self.folder / "victoryline.sqlite3")
        with self.terminal.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "run"],
                cwd=PROJECT_ROOT,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return self

    def start(self) -> Self:
        """Starts it and waits for the banner."""
        self.launch()
        try:
            wait_for(self._is_up, seconds=START_SECONDS, what="the banner")
        except AssertionError as error:
            raise AssertionError(
                f"{error}\n{self.said()}\n{self.log('web')[-2000:]}{self.log('engine')[-2000:]}"
            ) from None
        self.family()
        return self

    def _is_up(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"it ended by itself:\n{self.said()}"
        return "VictoryLine is running" in self.said()

    def said(self) -> str:
        return self.terminal.read_text(errors="replace")

    def log(self, name: str) -> str:
        path = self.folder / "log" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def family(self) -> set[psutil.Process]:
        """Returns all present and earlier processes of the system."""
        assert self.process is not None
        if self.process.poll() is None:
            self._family |= set(psutil.Process(self.process.pid).children(recursive=True))
        return self._family

    def survivors(self) -> list[psutil.Process]:
        return [each for each in self._family if each.is_running() and _words(each)]

    def child(self, words: str) -> psutil.Process:
        """Returns the direct child whose command line has these words; raises NoSuchChildError unless there is one."""
        assert self.process is not None
        children = psutil.Process(self.process.pid).children()
        living = [each for each in children if each.status() != psutil.STATUS_ZOMBIE]
        found = [each for each in living if words in " ".join(each.cmdline())]
        if len(found) != 1:
            raise NoSuchChildError(f"{len(found)} children with {words!r}; the terminal shows:\n{self.said()[-2000:]}")
        return found[0]

    def left_behind(self) -> list[str]:
        """Returns processes and temporary folders that should be gone."""
        temporary = self.folder / "tmp"
        folders = [str(each) for each in temporary.iterdir()] if temporary.exists() else []
        return [words for each in self.survivors() if (words := _words(each))] + folders

    def stop(self, signal_number: int | None = None, *, seconds: float = 15) -> float:
        """Stops it as Ctrl-C or an init system would; returns the seconds that it took."""
        assert self.process is not None
        self.family()
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal_number) if signal_number else self.process.terminate()
        self.process.wait(timeout=stretched(seconds))
        return time.monotonic() - began

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process and self.process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for each in self.survivors():
            each.kill()

    def get(self, path: str, *, token: str | None = None) -> tuple[int, Any, dict[str, str]]:
        """Returns status, body (parsed if it is JSON) and headers."""
        return self._ask(urllib.request.Request(self.url + path), token)

    def post(self, path: str, body: Any, *, token: str | None = None) -> tuple[int, Any, dict[str, str]]:
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        return self._ask(request, token)

    def token(self) -> str:
        status, body, _ = self.post("/token/generate-token", {"api_key": self.demo["api_key"]})
        assert status == 200, body
        token: str = body["token"]
        return token

    def curl_lines(self) -> list[str]:
        return re.findall(r"^ +(curl .*)$", self.said(), re.MULTILINE)

    def _ask(self, request: urllib.request.Request, token: str | None) -> tuple[int, Any, dict[str, str]]:
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=stretched(10)) as answer:
                status, text, headers = answer.status, answer.read(), dict(answer.headers)
        except urllib.error.HTTPError as refusal:
            with refusal:
                status, text, headers = refusal.code, refusal.read(), dict(refusal.headers)
        try:
            return status, json.loads(text), headers
        except ValueError:
            return status, text.decode(errors="replace"), headers


def _words(process: psutil.Process) -> str:
    """Returns the command line of a process; empty if it is gone or a zombie, which holds no resources."""
    try:
        return "" if process.status() == psutil.STATUS_ZOMBIE else " ".join(process.cmdline())[:120] or process.name()
    except psutil.Error:
        return ""
