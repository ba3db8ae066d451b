"""Runs schemathesis with the API's OpenAPI document against a real web process with data.

Used by `make fuzz` and tests/api/test_fuzz.py. Limits are high and the token has all scopes, so that no 429 or 403
hides an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.test import clean_environment
from tests import migrated
from tests.fuzz_checks import DATA_DECIDES
from tests.patience import stretched, wait_for
from tests.processes import end_group
from tests.servers import free_port
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python, spawn

START_SECONDS = 60.0
NO_LIMITS = {f"RATE_LIMIT_{kind}_PER_MINUTE": "1000000" for kind in ("STANDARD", "PREMIUM")}
SECRETS = {
    "SECRET_KEY": "for this run only, and long enough for everyone who counts",
    "JWT_SIGNING_KEY": "for this run only too, and just as long as the other one is",
}
# Half of the generated ids exist; otherwise nearly every response would be a 404.
KNOWN_PARAMETERS = {
    "path.match_id": ("matches", 0.5),
    "path.job_id": ("jobs", 0.5),
    "path.sequence": ("sequences", 0.5),
    "header.X-API-Key": ("keys", 0.5),
}
ACCEPTED = ("2xx", "3xx", 401, 403, 404, 409, 410, 429, "5xx")  # 410: deleted by retention
REFUSED = (400, 401, 403, 404, 405, 406, 409, 415, 422, 428, 429, "5xx")
STATEFUL_FACTOR = 6
PHASES = ("examples", "coverage", "fuzzing", "stateful")


@dataclass(frozen=True)
class Target:
    """The address of the web process, its credentials, and the existing ids."""

    url: str
    token: str
    key: str
    words: dict[str, list[str] | list[int]]
    log: Path

    def description(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/api/schema", timeout=stretched(30)) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    def failures(self) -> list[str]:
        """Returns the logged errors of the web process that have a stack."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if "Traceback" in line]


@contextmanager
def target(folder: Path, **env: str) -> Iterator[Target]:
    """Starts a granian process on SQLite in `folder`, or on the database of `env`."""
    port = free_port()
    environment = {
        **clean_environment(),
        **SECRETS,
        **NO_LIMITS,
        "DJANGO_SETTINGS_MODULE": "victoryline.settings",
        "VAR_DIR": str(folder),
        **env,
    }
    migrated.place(folder / "victoryline.sqlite3")
    prepared = _prepare(environment)
    command = ("-m", "granian", "--interface", "wsgi", "tests.fuzz_wsgi:application", "--port", str(port))
    log = folder / "web.log"
    with log.open("wb") as output:
        process = spawn(
            python(*command, "--workers", "1", "--blocking-threads", "8"),
            cwd=PROJECT_ROOT,
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        found = Target(url=f"http://127.0.0.1:{port}", log=log, **prepared)
        wait_for(lambda: _is_live(found.url), seconds=START_SECONDS, what="the web process is up")
        yield found
    finally:
        end_group(process, grace_seconds=8)


def _prepare(environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        python("-m", "tests.fuzz_world"), cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise AssertionError(f"the data for the run can't be made:\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _is_live(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/live", timeout=stretched(5)) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


@dataclass(frozen=True)
class Outcome:
    code: int
    said: str

    @property
    def is_clean(self) -> bool:
        return self.code == 0


def fuzz(
    where: Target,
    folder: Path,
    *,
    seed: int,
    examples: int,
    seconds: int = 0,
    phases: tuple[str, ...] = PHASES,
    workers: int = 1,
    more: tuple[str, ...] = (),
    is_shown: bool = False,
) -> Outcome:
    """Runs all checks of schemathesis with `examples` per operation; with `seconds`, repeatedly until they are over.

    `is_shown`: prints the output; otherwise the outcome has it.
    """
    settings = folder / "schemathesis.toml"
    settings.write_text(_settings(where, examples))
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings), "run", f"{where.url}/api/schema"),
        *("--checks", "all", "--phases", ",".join(phases), "--seed", str(seed)),
        *("--workers", str(workers), "--no-color", "--no-shrink", "--generation-database", "none"),
        *(("--max-time", str(seconds)) if seconds else ()),
        *("--suppress-health-check", "all", "--continue-on-failure", "--request-timeout", "30", *more),
    ]
    output = None if is_shown else subprocess.PIPE
    env = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, stdout=output, stderr=output, text=True, check=False)
    return Outcome(done.returncode, "" if is_shown else done.stdout + done.stderr)


def _settings(where: Target, examples: int) -> str:
    """Returns its configuration: credentials, existing ids, and exceptions of its checks."""
    lines = [
        'hooks = "tests.fuzz_checks"',
        "",
        "[auth.openapi.bearer]",
        f"bearer = {json.dumps(where.token)}",
        "",
        # A 503 may be documented (too-stale); `unavailability_is_promised` checks each of them.
        "[checks.not_a_server_error]",
        f"expected-statuses = {json.dumps(['2xx', '3xx', '4xx', 503])}",
        "",
        "[checks.positive_data_acceptance]",
        f"expected-statuses = {json.dumps(ACCEPTED)}",
        "",
        # A body that is too large is refused as such before its content is validated.
        "[checks.negative_data_rejection]",
        f"expected-statuses = {json.dumps([*REFUSED, 413])}",
        "",
        "[generation]",
        f"max-examples = {examples}",
        "",
        # Most sequences of requests are short: generate more, so that every link is followed.
        "[phases.stateful.generation]",
        f"max-examples = {examples * STATEFUL_FACTOR}",
        "",
        *_parameters(where),
        *_data_dependent_operations(),
    ]
    for name, words in {**where.words, "keys": [where.key]}.items():
        lines += [f"[dictionaries.{name}]", f"values = {json.dumps(words)}", ""]
    return "\n".join(lines)


def _parameters(where: Target) -> list[str]:
    rows = [
        f'"{place}" = {{ dictionary = "{words}", probability = {probability} }}'
        for place, (words, probability) in KNOWN_PARAMETERS.items()
    ]
    return ["[parameters]", *rows, ""]


def _data_dependent_operations() -> list[str]:
    """Returns operations that may refuse schema-valid requests; a check of fuzz_checks.py looks at each 400."""
    lines = []
    for operation in DATA_DECIDES:
        lines += [
            "[[operations]]",
            f'include-operation-id = "{operation}"',
            f"checks.positive_data_acceptance.expected-statuses = {json.dumps([*ACCEPTED, 400])}",
            "",
        ]
    return lines
