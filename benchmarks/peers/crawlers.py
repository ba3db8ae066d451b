"""Peer crawlers: installed in their own virtual environments, and run on the pages of the stadium for a time."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.cpu import Cpu, CpuTimes, tree
from benchmarks.errors import BenchError
from benchmarks.ground_truth import ObservedScore, printed_score
from benchmarks.peers import virtualenvs
from benchmarks.progress import wait_until
from tests.processes import end_group
from tests.stadium_process import StadiumProcess
from victoryline.lib.processes import spawn

HERE = Path(__file__).parent
START_SECONDS = 60.0


@dataclass(frozen=True)
class CrawlResult:
    """The results of a peer within its time window."""

    seconds: float
    seen: list[ObservedScore]
    milliseconds: list[float]
    errors: list[str]
    cpu: Cpu


@dataclass(frozen=True)
class PeerCrawler:
    name: str
    package: str  # the name of its virtual environment; its pins are in PACKAGE.txt
    program: Path
    arguments: tuple[str, ...] = ()

    @property
    def venv(self) -> Path:
        return virtualenvs.FOLDER / f"{self.package}-venv"

    def pins(self) -> dict[str, str]:
        return virtualenvs.pins(HERE / f"{self.package}.txt")

    def ensure_installed(self) -> None:
        if self.pins()["playwright"] != version("playwright"):
            raise BenchError(
                f"{self.package}.txt has Playwright {self.pins()['playwright']} and VictoryLine "
                f"{version('playwright')}: the comparison would not be fair. Write the same version into both."
            )
        virtualenvs.ensure_installed(self.package, HERE / f"{self.package}.txt", self.venv)

    def visit(
        self, matches: list[dict[str, str]], *, seconds: float, pages: int, chromium: Path, stadium: StadiumProcess
    ) -> CrawlResult:
        """Runs it once; only visits that finish within its window count."""
        folder = stadium.folder
        wanted, output, log = (folder / f"peer.{end}" for end in ("matches.json", "jsonl", "log"))
        wanted.write_text(json.dumps(matches), encoding="utf-8")
        output.write_text("")
        command = [
            # -P: its folder is not in the path, so that no module there hides a package of the same name.
            *(self.venv / "bin" / "python", "-P", self.program, "--matches", wanted, "--output", output),
            *("--chromium", chromium, "--seconds", f"{seconds:g}", "--pages", str(pages), *self.arguments),
        ]
        with log.open("wb") as log_file:
            process = spawn(command, cwd=folder, stdout=log_file, stderr=log_file)
        meter = CpuMeter(
            {self.name: process.pid, "stadium": stadium.process.pid if stadium.process else 0}, output, seconds
        )
        try:
            wait_until(
                lambda: meter.update() or process.poll() is not None,
                seconds=seconds + START_SECONDS,
                what=f"{self.name}:",
                progress=lambda: f"{_lines(output)} pages visited",
            )
        finally:
            end_group(process, grace_seconds=5)
        if process.returncode != 0:
            output_text = log.read_text(errors="replace")[-3000:]
            raise BenchError(f"{self.name} ended with code {process.returncode}:\n{output_text}")
        return read(output.read_text(encoding="utf-8"), meter.cpu())


def _lines(output: Path) -> int:
    with output.open(encoding="utf-8") as lines:
        return sum(1 for _ in lines)


class CpuMeter:
    """Measures CPU from the start of the peer's window to its end."""

    def __init__(self, parts: dict[str, int], output: Path, seconds: float) -> None:
        self._parts, self._output, self._seconds = parts, output, seconds
        self._first: CpuTimes | None = None
        self._last: CpuTimes | None = None

    def update(self) -> bool:
        """Takes the CPU times at the start and the end of the window. Always returns False."""
        if self._first is None:
            if '"window"' in self._output.read_text(encoding="utf-8"):
                self._first = self._cpu_times()
        elif self._last is None and time.monotonic() >= self._first.at + self._seconds:
            self._last = self._cpu_times()
        return False

    def _cpu_times(self) -> CpuTimes:
        return CpuTimes.of({part: tree(pid) for part, pid in self._parts.items() if pid})

    def cpu(self) -> Cpu:
        return self._first.until(self._last) if self._first and self._last else Cpu(0.0, {})


def read(text: str, cpu: Cpu) -> CrawlResult:
    lines = [json.loads(line) for line in text.splitlines()]
    start, end = next((line["window"] for line in lines if "window" in line), (0.0, 0.0))
    inside = [line for line in lines if start < line["at"] <= end]
    done = [line for line in inside if "scores" in line]
    seen = [
        ObservedScore(
            key=line["key"],
            asked_at=line["asked_at"],
            read_at=line["at"],
            scores=(printed_score(line["scores"][0]), printed_score(line["scores"][1])),
        )
        for line in done
    ]
    errors = [f"{line['key']}: {line['error']}" for line in lines if "error" in line]
    return CrawlResult(end - start, seen, [round(1000 * (one.read_at - one.asked_at), 1) for one in seen], errors, cpu)


SPIDER = HERE / "scrapy_playwright_spider.py"
PLAIN = PeerCrawler("scrapy-playwright", "scrapy-playwright", SPIDER)
TUNED = PeerCrawler("scrapy-playwright, pages reused", "scrapy-playwright", SPIDER, ("--reuse-pages",))
CRAWLEE = PeerCrawler("crawlee", "crawlee", HERE / "crawlee_crawler.py")
# The first is the one that `ratio` compares with.
PEER_CRAWLERS = (PLAIN, TUNED, CRAWLEE)
