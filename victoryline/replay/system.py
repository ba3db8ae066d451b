"""A private system for one replay: stadium, web and engine in a scratch folder, and a client of its API."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import end_group, python, spawn

START_SECONDS = 90.0
STOP_SECONDS = 20.0
EVENTS_PER_PAGE = 100
MAX_REQUESTS = 10
TOO_MANY_REQUESTS = 429
# A replay writes to its own folder only: neither to the configured database, nor to the configured match logs, whose
# match numbers begin with 1 as well.
EXTERNAL_SETTINGS = ("DATABASE_URL", "REDIS_URL", "MATCH_LOG_DIR", "CONFIG_FILE")


class ReplayError(Exception):
    """The replay can't continue; the message is for operators."""


class ReplaySystem:
    """Starts its processes on free ports, and stops them in any case."""

    def __init__(self, folder: Path, *, stadium: Sequence[str], settings: Mapping[str, str]) -> None:
        self.folder = folder
        self._stadium_options = list(stadium)
        self._settings = dict(settings)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.stadium_url = self.url = ""
        self._token = ""

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start_stadium()
            self._start_system()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        while self._processes:
            end_group(self._processes.pop(), grace_seconds=STOP_SECONDS)

    def stadium(self, path: str, body: Any = None) -> Any:
        return _request_json(f"{self.stadium_url}{path}", body=body)

    def api(self, path: str) -> Any:
        return _request_json(path if path.startswith("http") else f"{self.url}{path}", token=self._token)

    def events(self, match_id: str) -> list[dict[str, Any]]:
        """Returns the complete feed of a match."""
        rows: list[dict[str, Any]] = []
        since, has_more = 0, True
        while has_more:
            page = self.api(f"/api/v1/matches/{match_id}/events?since={since}&limit={EVENTS_PER_PAGE}")
            rows += page["events"]
            since, has_more = page["next_since"], page["has_more"]
        return rows

    def check(self) -> None:
        for process in self._processes:
            if process.poll() is not None:
                raise ReplayError(f"A process ended unexpectedly (code {process.returncode}); logs: {self.folder}")

    def _start_stadium(self) -> None:
        port_file = self.folder / "stadium.port"
        port_file.unlink(missing_ok=True)
        command = python("-m", "stadium", "--port", "0", "--port-file", str(port_file), *self._stadium_options)
        process = self._spawn("stadium", command, {})
        deadline = time.monotonic() + START_SECONDS
        while not (port_file.exists() and port_file.read_text(encoding="utf-8").strip()):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ReplayError(f"The stadium did not start:\n{self._log('stadium')[-2000:]}")
            time.sleep(0.05)
        self.stadium_url = f"http://127.0.0.1:{int(port_file.read_text(encoding='utf-8'))}"

    def _start_system(self) -> None:
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        own = {
            "VAR_DIR": str(self.folder / "var"),
            "HOST": "127.0.0.1",
            "PORT": str(port),
            "STADIUM_URL": self.stadium_url,
            "ENABLE_PROMETHEUS_METRICS": "false",
        }
        process = self._spawn("system", python("manage.py", "run", "--with-parent"), own | self._settings)
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ReplayError(f"The system did not start:\n{self._log('system')[-2000:]}")
            time.sleep(0.2)
        key = json.loads((self.folder / "var" / "demo.json").read_text(encoding="utf-8"))["api_key"]
        self._token = _request_json(f"{self.url}/token/generate-token", body={"api_key": key})["token"]

    def _is_ready(self) -> bool:
        if not (self.folder / "var" / "demo.json").exists():
            return False
        try:
            with urllib.request.urlopen(f"{self.url}/health/ready", timeout=5) as response:  # noqa: S310 - our own server
                return bool(response.status == 200)
        except OSError:
            return False

    def _spawn(self, name: str, command: list[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = spawn(command, env=environment(env), cwd=PROJECT_ROOT, stdout=log, stderr=log)
        self._processes.append(process)
        return process

    def _log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a replay process, without settings that point outside its folder."""
    return {**os.environ, **dict.fromkeys(EXTERNAL_SETTINGS, ""), **own}


def _request_json(url: str, *, body: Any = None, token: str = "") -> Any:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers)  # noqa: S310 - our own servers only
    for _ in range(MAX_REQUESTS):
        try:
            with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            if error.code != TOO_MANY_REQUESTS:
                raise
            time.sleep(float(error.headers.get("Retry-After") or 1))
    raise ReplayError(f"{url} is rate limited")


def _free_port() -> int:
    with closing(socket.socket()) as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])
