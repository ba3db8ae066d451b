"""Web processes that end while requests are under way: every answered request is in the log."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from scripts.test import clean_environment
from tests import migrated
from tests.patience import stretched, wait_for
from tests.processes import end_group
from tests.servers import free_port
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python, spawn

pytestmark = [pytest.mark.slow, pytest.mark.requirement("FR-028")]

PREPARE = """
import json, django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
from django.utils import timezone
from apiauth import keys, tokens
now = timezone.now()
issued = keys.issue(consumer_name="acme", tier="premium", scopes=("read",), now=now)
print(json.dumps(tokens.make(issued.key, now).text))
"""


class Crowd:
    """Callers that send requests without a pause until the server is gone."""

    def __init__(self, url: str, token: str, size: int) -> None:
        self.url, self.token = url, token
        self.answered: list[str] = []
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(size)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(stretched(30))

    def _ask(self, number: int) -> None:
        for count in range(100_000):
            name = f"{number}-{count}"
            headers = {"Authorization": f"Bearer {self.token}", "X-Request-Id": name}
            try:
                with urllib.request.urlopen(
                    urllib.request.Request(self.url, headers=headers), timeout=stretched(10)
                ) as answer:
                    answer.read()
            except urllib.error.HTTPError as refusal:
                refusal.close()  # beyond the limit, which is an answer too
            except OSError:
                return
            self.answered.append(name)


@pytest.mark.parametrize(
    ("workers", "half_sent"),
    [
        pytest.param(1, b"", marks=pytest.mark.faults_only),
        (2, b""),
        # A process that waits for the rest of a body can't end by itself, and is killed after its five seconds.
        pytest.param(1, b'{"api_key": ', marks=pytest.mark.faults_only),
    ],
)
def test_every_answered_request_is_logged(tmp_path: Path, workers: int, half_sent: bytes) -> None:
    database, port = tmp_path / "victoryline.sqlite3", free_port()
    migrated.place(database)
    env = {
        **clean_environment(),
        "DJANGO_SETTINGS_MODULE": "victoryline.settings",
        "VAR_DIR": str(tmp_path),
        "LOG_LEVEL": "ERROR",
    }
    done = subprocess.run(python("-c", PREPARE), cwd=PROJECT_ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    url, token = f"http://127.0.0.1:{port}/api/v1/usage", json.loads(done.stdout.splitlines()[-1])
    command = ("-m", "granian", "--interface", "wsgi", "victoryline.wsgi:application", "--port", str(port))
    options = ("--workers", str(workers), "--blocking-threads", "4", "--workers-kill-timeout", "5")
    with (tmp_path / "web.log").open("wb") as log:
        web = spawn(python(*command, *options), cwd=PROJECT_ROOT, env={**os.environ, **env}, stdout=log, stderr=log)
    try:
        wait_for(lambda: _answers(port), seconds=60, what="the web is up")
        crowd = Crowd(url, token, size=6)
        crowd.start()
        wait_for(lambda: len(crowd.answered) > 300, seconds=30, what="requests are under way")
        with _half_a_request(port, half_sent):
            web.send_signal(signal.SIGTERM)
            web.wait(stretched(20))
            crowd.join()
    finally:
        end_group(web, grace_seconds=8)
    with closing(sqlite3.connect(database)) as connection:
        logged = {name for (name,) in connection.execute("SELECT request_id FROM apiauth_accesslog")}
        (summed,) = connection.execute("SELECT sum(requests) FROM apiauth_usagehour").fetchone()
        (rows,) = connection.execute("SELECT count(*) FROM apiauth_accesslog").fetchone()
    missing = set(crowd.answered) - logged
    assert not missing, f"{len(missing)} of {len(crowd.answered)}: {(tmp_path / 'web.log').read_text()[-1500:]}"
    assert (summed, len(logged)) == (rows, rows)


@contextmanager
def _half_a_request(port: int, body: bytes) -> Iterator[None]:
    if not body:
        yield
        return
    head = "POST /token/generate-token HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", port)) as caller:
        caller.sendall(f"{head}Content-Length: {len(body) + 1}\r\n\r\n".encode() + body)
        yield


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/live", timeout=stretched(2)) as answer:
            return answer.status == 200
    except OSError:
        return False
