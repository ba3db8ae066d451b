"""`make faults`: injects faults into whole systems, row by row of the fault matrix, and measures their recovery.

Each fault runs against real PostgreSQL, Redis and Chromium. FAULT=6 runs one row; the table at the end has them all.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.test import clean_environment, remembered_chromium  # noqa: E402 - needs the path above

NOTHING_COLLECTED = 5
RECOVERED_SECONDS = 300.0
TEST_PATHS = [
    "tests/faults",
    "tests/scraping",
    "tests/api/test_fuzz.py",
    "tests/victoryline/test_run.py",
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", type=int, default=0, help="only this row of the matrix")
    parser.add_argument("arguments", nargs="*", help="passed on to pytest")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vl-faults-", ignore_cleanup_errors=True) as folder:
        report = Path(folder) / "report.jsonl"
        env = {**clean_environment(), **remembered_chromium(), "VAR_DIR": folder, "FAULT_REPORT": str(report)}
        code = _run(options.fault, options.arguments, env)
        figures = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    if code == NOTHING_COLLECTED:
        print(f"There is no fault {options.fault}. Rows with tests are listed by: make faults")
        return 2
    _print_table(figures)
    print(f"{_summary(figures)} in {time.monotonic() - began:.0f} s", flush=True)
    return code


def _run(fault: int, arguments: list[str], env: dict[str, str]) -> int:
    selection = ["--fault", str(fault), *TEST_PATHS] if fault else TEST_PATHS
    command = [sys.executable, "-m", "pytest", "-q", "-m", "fault or faults_only", *selection, *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _print_table(figures: list[dict[str, Any]]) -> None:
    print(f"\n{'':>3}  {'recovered':>9}  {'bound':>6}  {'':6} fault")
    for figure in sorted(figures, key=lambda each: (each["fault"], each["what"])):
        seconds = "-" if figure["seconds"] is None else f"{figure['seconds']:.1f} s"
        bound = "-" if figure["bound"] is None else f"{figure['bound']:g} s"
        print(f"{figure['fault'] or '':>3}  {seconds:>9}  {bound:>6}  {_status(figure):6} {figure['what']}")


def _status(figure: dict[str, Any]) -> str:
    """Returns the status of a row. Tests fail only beyond three times the bound, because machines are noisy."""
    if figure["seconds"] is None:
        return "FAILED"
    return "late" if figure["bound"] is not None and figure["seconds"] > figure["bound"] else "ok"


def _summary(figures: list[dict[str, Any]]) -> str:
    failed = sum(figure["seconds"] is None for figure in figures)
    timed = [figure["seconds"] for figure in figures if figure["seconds"] is not None]
    recovered = sum(seconds <= RECOVERED_SECONDS for seconds in timed)
    return f"{recovered} of {len(figures)} faults recovered within five minutes, {failed} tests failed"


def _leave(*_: int | FrameType | None) -> None:
    raise SystemExit(143)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
