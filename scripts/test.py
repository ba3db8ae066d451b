"""`make test`: all tests, on both databases where it matters, with private servers that are removed afterwards.

Settings read the environment when they are imported, so each phase is its own pytest process:
fast (SQLite, on all cores), scaled (tests marked `both` or `scaled`, on PostgreSQL and Redis), slow (browsers and whole
systems, some in parallel), slow-alone (measured tests).
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.requirements import RESULTS  # noqa: E402 - needs the path above
from tests.servers import PostgresServer, RedisServer  # noqa: E402

LIMIT_SECONDS = 720.0  # the limit of continuous integration for the whole run
COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?|xfailed|xpassed)")
NOTHING_COLLECTED = 5


@dataclass(frozen=True)
class Phase:
    name: str
    title: str
    marks: str
    options: tuple[str, ...] = ()
    files: str = ""  # only files that name one of these marks are opened; empty: all of them
    needs_servers: bool = False


# In the order of their names, which puts simulated nights and whole systems first: a file with few, long tests would
# otherwise start last, and prolong the run while the other processes have nothing to do.
BY_FILE = ("--dist", "loadfile", "--no-loadscope-reorder")
PARALLEL = ("-n", "2", *BY_FILE)
MOSTLY_WAITING = ("-n", "3", *BY_FILE)  # for browsers and processes to start, and for times to run out
PHASES = (
    Phase("fast", "SQLite", "not slow and not scaled", PARALLEL),
    Phase(
        "scaled",
        "PostgreSQL and Redis",
        "(both or scaled) and not faults_only",
        PARALLEL,
        files="both,scaled",
        needs_servers=True,
    ),
    Phase(
        "slow",
        "browsers and systems",
        "slow and not alone and not scaled and not faults_only",
        MOSTLY_WAITING,
        files="slow",
    ),
    Phase(
        "slow-alone",
        "a measured system, without other tests",
        "slow and alone and not scaled and not faults_only",
        files="alone",
    ),
)


@dataclass
class Totals:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    codes: list[int] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)  # by phase

    def add(self, summary: str, code: int) -> None:
        for number, outcome in COUNT.findall(summary):
            if outcome in {"passed", "xfailed"}:
                self.passed += int(number)
            elif outcome == "skipped":
                self.skipped += int(number)
            else:
                self.failed += int(number)
        self.codes.append(0 if code == NOTHING_COLLECTED else code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("fast", "scaled", "slow", "alone"))
    parser.add_argument("arguments", nargs="*", help="passed on to pytest")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    if not options.only and not options.arguments:
        RESULTS.unlink(missing_ok=True)  # a complete run starts empty: renamed tests would stay forever
    totals = Totals()
    with tempfile.TemporaryDirectory(prefix="vl-test-") as shared:
        for phase in PHASES:
            if not options.only or phase.name.startswith(options.only) or phase.name.endswith(options.only):
                run(phase, options.arguments, totals, Path(shared))
    print(f"\n{times(totals.seconds)}")
    print(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped", flush=True)
    return 1 if totals.failed or any(totals.codes) else 0


def run(phase: Phase, arguments: list[str], totals: Totals, shared: Path) -> None:
    """Runs a phase. `shared` is a folder for files that a later phase can use."""
    print(f"\n== {phase.name}: {phase.title} ==", flush=True)
    began = time.monotonic()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="vl-test-", ignore_cleanup_errors=True))
        env = {**clean_environment(), "VAR_DIR": folder, "MIGRATED_DATABASE": str(shared / "migrated.sqlite3")}
        env |= remembered_chromium()
        if phase.needs_servers:
            env |= {
                "DATABASE_URL": stack.enter_context(PostgresServer()).url,
                "REDIS_URL": stack.enter_context(RedisServer()).url,
                "SECRET_KEY": "a secret key for the tests only, 50 characters or more",
                "JWT_SIGNING_KEY": "a signing key for the tests only, 50 characters or more",
            }
        code, summary = run_pytest(["-m", phase.marks, "--marked", phase.files, *phase.options, *arguments], env)
    totals.add(summary, code)
    totals.seconds[phase.name] = time.monotonic() - began
    print(f"   {phase.name} took {totals.seconds[phase.name]:.0f} s", flush=True)


def run_pytest(arguments: list[str], env: dict[str, str]) -> tuple[int, str]:
    """Runs pytest, prints its output, and returns exit code and last line."""
    command = [sys.executable, "-m", "pytest", "-q", "--durations=5", "--durations-min=5", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    last = ""
    try:
        for line in process.stdout:
            print(line, end="", flush=True)
            if COUNT.search(line) and " in " in line:
                last = line
        return process.wait(), last
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def times(seconds: dict[str, float]) -> str:
    """Returns one line with all phases and the sum, and a warning above the limit."""
    total = sum(seconds.values())
    line = ", ".join(f"{name} {each:.0f} s" for name, each in seconds.items()) + f"; {total:.0f} s in all"
    if total <= LIMIT_SECONDS:
        return line
    return (
        f"{line}\nWARNING: over the limit of {LIMIT_SECONDS / 60:.0f} minutes. The slowest tests are listed under each "
        "phase: make them faster, or move tests that another one covers to make faults (mark faults_only)."
    )


def clean_environment() -> dict[str, str]:
    """Returns the environment without the developer's own settings, which must not affect the tests.

    Python must write compiled files: otherwise every started process compiles the whole project, a second each.
    """
    from victoryline.configuration import Config

    ours = {name.upper() for name in Config.model_fields} - {"CHROMIUM_PATH"} | {"PYTHONDONTWRITEBYTECODE"}
    return {name: value for name, value in os.environ.items() if name not in ours}


def remembered_chromium() -> dict[str, str]:
    """Returns the path of the browser that bootstrap found: tests have their own VAR_DIR, without it."""
    note = ROOT / "var" / "chromium_path"
    if os.environ.get("CHROMIUM_PATH") or not note.is_file():
        return {}
    return {"CHROMIUM_PATH": note.read_text().strip()}


def _leave(*_: int | FrameType | None) -> None:
    raise SystemExit(143)  # unwinds the exit stack, which stops the servers


if __name__ == "__main__":
    sys.exit(main())
