from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

DEADLINE_SECONDS = 20
ROOT = Path(__file__).parents[2]


@contextmanager
def stadium(folder: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    port_file = folder / "port"
    port_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "stadium", "--port", "0", "--port-file", str(port_file), *more]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process, _port(process, port_file)
        finally:
            process.kill()


def _port(process: subprocess.Popen[str], port_file: Path) -> int:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not port_file.exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "the stadium did not open"
        time.sleep(0.02)
    return int(port_file.read_text())


def ask(port: int, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data=data, timeout=10) as response:
        return json.load(response)


class TestProcess:
    def test_continues_after_being_killed(self, tmp_path: Path) -> None:
        more = ("--state-file", str(tmp_path / "state.json"), "--programme", "single", "--pace", "50")
        with stadium(tmp_path, *more) as (process, port):
            ask(port, "/control/pace", {"pace": 0})
            (match,) = ask(port, "/truth/matches")
            before = ask(port, f"/truth/matches/crex/{match['key']}")
            process.kill()
        with stadium(tmp_path, *more) as (_, port):
            after = ask(port, f"/truth/matches/crex/{match['key']}")
            assert len(before["events"]) > 5
            assert [after[name] for name in ("events", "score", "start_time")] == [
                before[name] for name in ("events", "score", "start_time")
            ]
            assert ask(port, "/control/health")["pace"] == 0

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_stops_quickly_even_with_hanging_clients(self, tmp_path: Path, number: signal.Signals) -> None:
        with stadium(tmp_path) as (process, port):
            ask(port, "/control/faults", {"kind": "hang"})
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/crex/")
            deadline = time.monotonic() + 5
            while ask(port, "/control/requests")["total"] < 1:
                assert time.monotonic() < deadline
            process.send_signal(number)
            assert process.wait(timeout=10) == 0
            connection.close()

    @pytest.mark.parametrize("wrong", [["--programme", "circus"], ["--pace", "-3"]])
    def test_explains_invalid_options(self, wrong: list[str]) -> None:
        command = [sys.executable, "-m", "stadium", *wrong]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "must be" in done.stderr

    def test_refuses_a_state_file_it_cannot_read(self, tmp_path: Path) -> None:
        (tmp_path / "state.json").write_text("{")
        command = [sys.executable, "-m", "stadium", "--port", "0", "--state-file", str(tmp_path / "state.json")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "remove it to start again" in done.stderr
        assert (tmp_path / "state.json").read_text() == "{"
