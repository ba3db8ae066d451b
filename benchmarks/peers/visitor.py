"""A peer that visits pages: installed where it disturbs nobody, and let loose on the stadium's pages for a time."""

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

HERE = Path(__file__).parent
START_SECONDS = 60.0


@dataclass(frozen=True)
class Visits:
    """What the peer brought back within its window."""

    seconds: float
    seen: list[Seen]
    milliseconds: list[float]
    errors: list[str]
    cpu: Cpu


@dataclass(frozen=True)
class Visitor:
    name: str
    package: str  # its environment is called so, and its pins are in PACKAGE.txt
    program: Path
    manner: tuple[str, ...] = ()  # arguments of the program

    @property
    def venv(self) -> Path:
        return environment.FOLDER / f"{self.package}-venv"

    def pins(self) -> dict[str, str]:
        return environment.pins(HERE / f"{self.package}.txt")

    def ensure_installed(self) -> None:
        if self.pins()["playwright"] != version("playwright"):
            raise BenchError(
                f"{self.package}.txt has Playwright {self.pins()['playwright']} and VictoryLine "
                f"{version('playwright')}: the comparison would not be fair. Write the same version into both."
            )
        environment.ensure_installed(self.package, HERE / f"{self.package}.txt", self.venv)

    def visit(
        self, matches: list[dict[str, str]], *, seconds: float, pages: int, chromium: Path, stadium: StadiumProcess
    ) -> Visits:
        """Run it once; only what it finished within its window counts."""
        folder = stadium.folder
        wanted, output, log = (folder / f"peer.{end}" for end in ("matches.json", "jsonl", "log"))
        wanted.write_text(json.dumps(matches), encoding="utf-8")
        output.write_text("")
        command = [
            # -P: its folder stays out of the path, or a module there would be taken for the package of its name.
            *(self.venv / "bin" / "python", "-P", self.program, "--matches", wanted, "--output", output),
            *("--chromium", chromium, "--seconds", f"{seconds:g}", "--pages", str(pages), *self.manner),
        ]
        with log.open("wb") as words:
            process = spawn(command, cwd=folder, stdout=words, stderr=words)
        meter = Meter(
            {self.name: process.pid, "stadium": stadium.process.pid if stadium.process else 0}, output, seconds
        )
        try:
            wait_until(
                lambda: meter.look() or process.poll() is not None,
                seconds=seconds + START_SECONDS,
                what=f"{self.name}:",
                how_far=lambda: f"{_lines(output)} pages visited",
            )
        finally:
            end_group(process, grace_seconds=5)
        if process.returncode != 0:
            said = log.read_text(errors="replace")[-3000:]
            raise BenchError(f"{self.name} ended with code {process.returncode}:\n{said}")
        return read(output.read_text(encoding="utf-8"), meter.cpu())


def _lines(output: Path) -> int:
    with output.open(encoding="utf-8") as lines:
        return sum(1 for _ in lines)


class Meter:
    """CPU from the moment the peer says that it is warm to the end of its time."""

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
