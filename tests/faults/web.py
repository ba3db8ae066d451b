"""The API of a system under fault: a real web process and a client with a real key."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from typing import Any

from tests.faults.system import System
from tests.patience import stretched, wait_for
from tests.servers import free_port
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python


class Web:
    def __init__(self, system: System) -> None:
        self.port = free_port()
        system.launch_program(
            "web",
            python(
                *("-m", "granian", "--interface", "wsgi", "victoryline.wsgi:application"),
                *("--host", "127.0.0.1", "--port", str(self.port), "--workers", "1", "--blocking-threads", "8"),
            ),
            PORT=str(self.port),
        )
        issued = subprocess.run(
            python("manage.py", "api_keys", "issue", "fault tests", "--tier", "premium"),
            cwd=PROJECT_ROOT,
            env=system.environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        wait_for(lambda: self.get("/health/live")[0] == 200, seconds=60, what="the web process")
        _, body = self.get("/token/generate-token", {"api_key": issued.stdout.split()[0]})
        self._token = body["token"]
        self.seen: Counter[int] = Counter()

    def look(self, path: str = "/api/v1/matches") -> Any:
        """Sends a request as a consumer and counts the status."""
        status, body = self.get(path, token=self._token)
        self.seen[status] += 1
        return body

    def get(self, path: str, body: Any = None, *, token: str = "") -> tuple[int, Any]:
        """Returns status and body; status 0 without a response within five seconds."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data)
        request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=stretched(5)) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode(errors="replace")
        except OSError:
            return 0, None
