"""Replays recordings as live matches through stadium, browser, adapters, database and API, and compares the outcome."""

from __future__ import annotations

import time
import urllib.error
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from victoryline.replay.comparison import ENDED, ReplayResult, compare
from victoryline.replay.recording import InvalidRecordingError, Recording, load
from victoryline.replay.system import ReplayError, ReplaySystem

Log = Callable[[str], None]
REPORT_EVERY_SECONDS = 10.0
CHECK_EVERY_SECONDS = 2.0
SETTLE_SECONDS = 240.0  # after the last ball, for missing data to arrive
NOT_FOUND = 404
OUTAGE_AT = 0.4  # share played of the match that is furthest
# At high speed a break takes seconds, and an outage of a minute is most of the match.
SETTINGS = {
    "POLLING_INTERVAL_SECONDS": "1",
    "BREAK_INTERVAL_SECONDS": "2.5",
    "ERROR_CALM_SECONDS": "3",
    "DISCOVERY_INTERVAL_SECONDS": "10",
    "CIRCUIT_BREAKER_TIMEOUT_SECONDS": "10",
    "SOURCE_BREAKER_COOLDOWN_SECONDS": "10",
    "RETRY_MAX_ATTEMPTS": "5",
    "DEMO": "false",
}


@dataclass(frozen=True)
class ReplayPlan:
    """Recordings, speed, sites, and the faults during the replay."""

    files: tuple[Path, ...]
    speed: float
    sites: tuple[str, ...] = ("crex",)
    outage_seconds: float = 0.0
    mistakes: float = 0.0  # share of balls that all sites except the first show wrongly


def recordings_in(path: Path) -> list[Path]:
    """Returns the recordings of a folder, or the one file."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise InvalidRecordingError(f"{path} contains no .json file")
    return files


def play(plan: ReplayPlan, folder: Path, *, log: Log) -> list[ReplayResult]:
    """Plays all recordings at the same time, to their end. The data of the system stay in `folder`."""
    recordings = {file.stem: load(file) for file in plan.files}
    with ReplaySystem(folder, stadium=_stadium_options(plan), settings=SETTINGS) as system:
        count = "1 match" if len(recordings) == 1 else f"{len(recordings)} matches"
        log(f"{count} at {plan.speed:g} times real time; API at {system.url}, scratch in {folder}")
        keys = _keys(system, recordings)
        if plan.mistakes:
            for site in plan.sites[1:]:
                system.stadium("/control/distortions", {"site": site, "mistakes": plan.mistakes})
        _watch(system, plan, keys, recordings, log)
        return [_compared(system, recordings[name], match_id) for name, match_id in sorted(keys.items())]


def _stadium_options(plan: ReplayPlan) -> list[str]:
    paths = {str(file.parent if len(plan.files) > 1 else file) for file in plan.files}
    if len(paths) != 1:
        raise ReplayError("all recordings must be in one folder")
    return ["--replay", paths.pop(), "--speed", f"{plan.speed:g}", "--sites", ",".join(plan.sites)]


def _keys(system: ReplaySystem, recordings: dict[str, Recording]) -> dict[str, str]:
    """Returns the API's match id of each recording, by name."""
    shown = system.stadium("/truth/matches")
    keys = {str(one["recording"]): f"{one['site']}_{one['key']}" for one in reversed(shown) if one.get("recording")}
    if absent := recordings.keys() - keys.keys():
        raise ReplayError(f"the stadium does not play {', '.join(sorted(absent))}")
    return {name: keys[name] for name in recordings}


def _watch(
    system: ReplaySystem, plan: ReplayPlan, keys: dict[str, str], recordings: dict[str, Recording], log: Log
) -> None:
    """Waits until every match has ended at the source and is correct at the API, or until the time limit."""
    reported_at, settled_at, had_outage = 0.0, 0.0, plan.outage_seconds == 0
    correct: set[str] = set()
    while True:
        system.check()
        truth = {one["recording"]: one for one in system.stadium("/truth/matches") if one.get("recording")}
        ended = sum(truth[name]["status"] in ENDED for name in keys)
        if not had_outage and _share_played(truth) >= OUTAGE_AT:
            had_outage = True
            log(f"all sites are unavailable for {plan.outage_seconds:g} s")
            fault = {"kind": "status", "value": 503, "seconds": plan.outage_seconds}
            system.stadium("/control/faults", fault)
        for name in sorted(name for name in keys.keys() - correct if truth[name]["status"] in ENDED):
            if _compared(system, recordings[name], keys[name]).is_correct:
                correct.add(name)
        if ended == len(keys):
            settled_at = settled_at or time.monotonic()
            if len(correct) == len(keys) or time.monotonic() - settled_at > SETTLE_SECONDS:
                return
        if time.monotonic() - reported_at >= REPORT_EVERY_SECONDS:
            reported_at = time.monotonic()
            log(f"ended: {ended} of {len(keys)}, correct to the last ball: {len(correct)}")
        time.sleep(CHECK_EVERY_SECONDS)


def _share_played(truth: dict[str, Any]) -> float:
    """Returns how much of its recording the furthest match has shown."""
    return max((float(one["played"]) for one in truth.values()), default=0.0)


def _compared(system: ReplaySystem, recording: Recording, match_id: str) -> ReplayResult:
    try:
        match = system.api(f"/api/v1/matches/{match_id}")
        return compare(recording, match, system.events(match_id))
    except urllib.error.HTTPError as error:
        if error.code != NOT_FOUND:
            raise
    result = ReplayResult(recording.name, expected=len(recording.balls), missing=len(recording.balls))
    result.add_difference("the API does not have the match")
    return result


def summary(results: Sequence[ReplayResult]) -> dict[str, int]:
    names = ("expected", "present", "missing", "doubled", "wrong")
    return {name: sum(getattr(one, name) for one in results) for name in names}
