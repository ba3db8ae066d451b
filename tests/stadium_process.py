"""A stadium server process on a free port, and a client for its control endpoints."""

import json
import ssl
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

from tests.processes import end_group
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python, remove_tree, spawn

START_SECONDS = 20.0


class StadiumProcess:
    def __init__(
        self,
        *,
        programme: str = "demo",
        pace: float = 10,
        seed: int = 7,
        browser_only: tuple[str, ...] = (),
        tls: Path | None = None,
    ) -> None:
        """`browser_only`: sites that refuse every client but a browser; `tls`: a file with key and certificate."""
        self.programme, self.pace, self.seed, self.browser_only, self.tls = programme, pace, seed, browser_only, tls
        self.folder = Path(tempfile.mkdtemp(prefix="vl-stadium-"))
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Also restarts a stopped one, with its port and state."""
        port_file = self.folder / "port"
        port_file.unlink(missing_ok=True)
        command = python(
            *("-m", "stadium", "--port", str(self.port), "--programme", self.programme, "--pace", f"{self.pace:g}"),
            *(("--browser-only", ",".join(self.browser_only)) if self.browser_only else ()),
            *(("--tls", str(self.tls)) if self.tls else ()),
            *("--seed", str(self.seed), "--state-file", str(self.folder / "state"), "--port-file", str(port_file)),
        )
        with (self.folder / "log").open("ab") as log:
            self.process = spawn(command, cwd=PROJECT_ROOT, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not (port_file.exists() and port_file.read_text().strip()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"The stadium did not start:\n{(self.folder / 'log').read_text()[-3000:]}")
            time.sleep(0.02)
        self.port = int(port_file.read_text())
        return self

    def stop(self) -> None:
        if self.process:
            end_group(self.process, grace_seconds=5)
            self.process = None

    def close(self) -> None:
        self.stop()
        remove_tree(self.folder)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, path: str, body: Any = None, *, method: str | None = None) -> Any:
        """Sends GET, or POST with a JSON body; returns the JSON of the response."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(
            f"{self.url}{path}", data=data, method=method, headers={"Content-Type": "application/json"}
        )
        trusted = ssl.create_default_context(cafile=self.tls) if self.tls else None
        with urllib.request.urlopen(request, timeout=10, context=trusted) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def matches(self) -> list[dict[str, Any]]:
        """Returns all listed matches: site, key, url, status, phase."""
        shown: list[dict[str, Any]] = self.ask("/truth/matches")
        return shown

    def truth(self, site: str, key: str, *, at: float | str | None = None) -> dict[str, Any]:
        """Returns the ground truth of a match, now or at a past time (unix seconds or ISO 8601)."""
        answer: dict[str, Any] = self.ask(f"/truth/matches/{site}/{key}" + (f"?at={at}" if at is not None else ""))
        return answer

    def fault(self, **what: Any) -> dict[str, Any]:
        """Injects a fault; see stadium/faults.py for the kinds."""
        fault: dict[str, Any] = self.ask("/control/faults", what)
        return fault

    def clear(self) -> None:
        """Removes faults and resets counters; matches and clock continue."""
        self.ask("/control/reset", {})

    def skip(self, simulated_seconds: float) -> None:
        self.ask("/control/skip", {"seconds": simulated_seconds})

    def requests(self) -> dict[str, Any]:
        """Returns the request counts of each endpoint."""
        counts: dict[str, Any] = self.ask("/control/requests")
        return counts
