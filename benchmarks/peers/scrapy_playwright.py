"""Installs scrapy-playwright where it disturbs nobody, and lets it visit the stadium's pages for a time."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.cpu import Cpu, CpuMark, tree
from benchmarks.errors import BenchError
from benchmarks.peers import environment
from benchmarks.progress import wait_until
from benchmarks.truth import Seen, printed_score
from tests.stadium_process import StadiumProcess
from victoryline.lib.processes import end_group, spawn

NAME = "scrapy-playwright"
PINS = Path(__file__).with_name("scrapy-playwright.txt")
SPIDER = Path(__file__).with_name("scrapy_playwright_spider.py")
VENV = environment.FOLDER / "scrapy-venv"
START_SECONDS = 60.0


@dataclass(frozen=True)
class Visits:
    """What the spider brought back within its window."""

    seconds: float
    seen: list[Seen]
    milliseconds: list[float]
    errors: list[str]
    cpu: Cpu


def pins() -> dict[str, str]:
    return environment.pins(PINS)


def ensure_installed() -> None:
    if pins()["playwright"] != version("playwright"):
        raise BenchError(
            f"{PINS.name} has Playwright {pins()['playwright']} and VictoryLine {version('playwright')}: "
            "the comparison would not be fair. Write the same version into both."
        )
    environment.ensure_installed(NAME, PINS, VENV)


def visit(
    matches: list[dict[str, str]],
    *,
    seconds: float,
    pages: int,
    is_fresh: bool,
    chromium: Path,
    stadium: StadiumProcess,
) -> Visits:
    """Run the spider once; only what it finished within its window counts."""
    folder = stadium.folder
    wanted, output, log = (folder / f"peer.{end}" for end in ("matches.json", "jsonl", "log"))
    wanted.write_text(json.dumps(matches), encoding="utf-8")
    output.write_text("")
    command = [
        # -P: the spider's folder stays out of the path, or this module would be taken for the package of its name.
        *(VENV / "bin" / "python", "-P", SPIDER, "--matches", wanted, "--output", output, "--chromium", chromium),
        *("--seconds", f"{seconds:g}", "--pages", str(pages), *(["--fresh-pages"] if is_fresh else [])),
    ]
    with log.open("wb") as words:
        process = spawn(command, cwd=folder, stdout=words, stderr=words)
    meter = Meter({NAME: process.pid, "stadium": stadium.process.pid if stadium.process else 0}, output, seconds)
    try:
        wait_until(
            lambda: meter.look() or process.poll() is not None,
            seconds=seconds + START_SECONDS,
            what=f"{NAME}:",
            how_far=lambda: f"{_lines(output)} pages visited",
        )
    finally:
        end_group(process, grace_seconds=5)
    if process.returncode != 0:
        raise BenchError(f"{NAME} ended with code {process.returncode}:\n{log.read_text(errors='replace')[-3000:]}")
    return read(output.read_text(encoding="utf-8"), meter.cpu())


def _lines(output: Path) -> int:
    with output.open(encoding="utf-8") as lines:
        return sum(1 for _ in lines)


class Meter:
    """CPU from the moment the spider says that it is warm to the end of its time."""

    def __init__(self, parts: dict[str, int], output: Path, seconds: float) -> None:
        self._parts, self._output, self._seconds = parts, output, seconds
        self._first: CpuMark | None = None
        self._last: CpuMark | None = None

    def look(self) -> bool:
        """Always False: it only watches."""
        if self._first is None:
            if '"window"' in self._output.read_text(encoding="utf-8"):
                self._first = self._mark()
        elif self._last is None and time.monotonic() >= self._first.at + self._seconds:
            self._last = self._mark()
        return False

    def _mark(self) -> CpuMark:
        return CpuMark.of({part: tree(pid) for part, pid in self._parts.items() if pid})

    def cpu(self) -> Cpu:
        return self._first.until(self._last) if self._first and self._last else Cpu(0.0, {})


def read(text: str, cpu: Cpu) -> Visits:
    lines = [json.loads(line) for line in text.splitlines()]
    start, end = next((line["window"] for line in lines if "window" in line), (0.0, 0.0))
    inside = [line for line in lines if start < line["at"] <= end]
    done = [line for line in inside if "scores" in line]
    seen = [
        Seen(
            key=line["key"],
            asked_at=line["asked_at"],
            read_at=line["at"],
            scores=(printed_score(line["scores"][0]), printed_score(line["scores"][1])),
        )
        for line in done
    ]
    errors = [f"{line['key']}: {line['error']}" for line in lines if "error" in line]
    return Visits(end - start, seen, [round(1000 * (one.read_at - one.asked_at), 1) for one in seen], errors, cpu)
