"""Recorded matches, played at high speed through stadium, browser, adapters, database and API: is every ball there?

Each recording is played four times: from one source, and from two that disagree (the second one is late and shows some
balls wrongly), each without and with an outage of all sites in the middle. Expected and present are balls and wickets;
a score after an over, an innings or a result that differs from the recording is wrong as well.
"""

from __future__ import annotations

import os
import tempfile
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchError
from benchmarks.progress import say
from stadium.replay.player import ReplayError, ReplayPlan, play, recordings_in, summary
from stadium.replay.recording import InvalidRecordingError
from victoryline.lib.processes import remove_tree

SUMMARY = "recorded matches ball by ball: expected, present, missing, doubled, wrong"
RECORDINGS = "VICTORYLINE_RECORDINGS"
MISTAKES = 0.05


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--recordings", type=Path, help=f"Cricsheet files, or a folder of them (${RECORDINGS}/cricsheet)"
    )
    parser.add_argument("--speed", type=float, default=300.0, help="times life (%(default)s)")
    parser.add_argument("--outage", type=float, default=60.0, help="seconds without any source (%(default)s)")
    parser.add_argument("--second", default="espncricinfo", help="the site that disagrees (%(default)s)")
    parser.add_argument("--only", choices=("one", "two"), help="only from one source, or only from two")


def run(options: Namespace) -> dict[str, Any]:
    files = _recordings(options.recordings)
    runs = {
        f"{name}{', outage' if outage else ''}": ReplayPlan(
            files=files, speed=options.speed, sites=sites, outage_seconds=outage, mistakes=mistakes
        )
        for name, sites, mistakes in (
            ("one source", ("crex",), 0.0),
            ("two sources", ("crex", options.second), MISTAKES),
        )
        if options.only is None or name.startswith(options.only)
        for outage in (0.0, options.outage)
    }
    found = {name: _one(name, plan) for name, plan in runs.items()}
    names = ("expected", "present", "missing", "doubled", "wrong", "overs")
    totals = {key: sum(one[key] for one in found.values()) for key in names}
    return {
        **totals,
        "recordings": len(files),
        "speed": options.speed,
        "outage_seconds": options.outage,
        "runs": {name: {key: value for key, value in one.items() if key != "problems"} for name, one in found.items()},
        "problems": [problem for one in found.values() for problem in one["problems"]],
    }


def _recordings(chosen: Path | None) -> tuple[Path, ...]:
    folder = os.environ.get(RECORDINGS, "")
    if chosen is None and not folder:
        raise BenchError(f"no recordings: name a folder of Cricsheet files with --recordings, or set {RECORDINGS}")
    try:
        return tuple(recordings_in((chosen or Path(folder) / "cricsheet").resolve()))
    except InvalidRecordingError as error:
        raise BenchError(str(error)) from error


def _one(name: str, plan: ReplayPlan) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="vl-accuracy-"))
    try:
        results = play(plan, folder, log=lambda text: say(f"{name}: {text}"))
    except (ReplayError, InvalidRecordingError) as error:
        raise BenchError(f"{name}: {error}") from error
    finally:
        remove_tree(folder)
    problems = [f"{name}: {one.name}: {text}" for one in results for text in one.differences]
    corrections = sum(one.corrections for one in results)
    overs = sum(one.overs for one in results)
    return {**summary(results), "overs": overs, "corrections": corrections, "problems": problems}
