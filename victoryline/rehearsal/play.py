"""Recordings played as live matches through stadium, browser, adapters, database and API, and judged at the end."""

from __future__ import annotations

import time
import urllib.error
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from victoryline.rehearsal.recording import BadRecordingError, Recording, load
from victoryline.rehearsal.system import RehearsalError, RehearsalSystem
from victoryline.rehearsal.verdict import ENDED, Verdict, judge

Say = Callable[[str], None]
TOLD_EVERY_SECONDS = 10.0
LOOK_EVERY_SECONDS = 2.0
SETTLE_SECONDS = 240.0  # after the last ball, for what is still to be fetched
NOT_FOUND = 404
OUTAGE_AT = 0.4  # of the match that is furthest
# At high speed a break of the match passes in seconds, and an outage of a minute is most of it.
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
class Script:
    """How to play: what, how fast, where, and what goes wrong in the middle."""

    files: tuple[Path, ...]
    speed: float
    sites: tuple[str, ...] = ("crex",)
    outage_seconds: float = 0.0
    mistakes: float = 0.0  # share of balls that every site but the first tells wrongly


def recordings_in(path: Path) -> list[Path]:
    """The files of a folder that hold recorded matches, or the one file."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise BadRecordingError(f"{path} holds no .json file")
    return files


def play(script: Script, folder: Path, *, say: Say) -> list[Verdict]:
    """Play all recordings at the same time, to their end. The scratch system stays in `folder`, stopped."""
    recordings = {file.stem: load(file) for file in script.files}
    with RehearsalSystem(folder, stadium=_stadium_options(script), settings=SETTINGS) as system:
        many = "1 match" if len(recordings) == 1 else f"{len(recordings)} matches"
        say(f"{many} at {script.speed:g} times life; API at {system.url}, scratch in {folder}")
        keys = _keys(system, recordings)
        if script.mistakes:
            for site in script.sites[1:]:
                system.stadium("/control/distortions", {"site": site, "mistakes": script.mistakes})
        _watch(system, script, keys, recordings, say)
        return [_judged(system, recordings[name], match_id) for name, match_id in sorted(keys.items())]


def _stadium_options(script: Script) -> list[str]:
    paths = {str(file.parent if len(script.files) > 1 else file) for file in script.files}
    if len(paths) != 1:
        raise RehearsalError("all recordings must lie in one folder")
    return ["--replay", paths.pop(), "--speed", f"{script.speed:g}", "--sites", ",".join(script.sites)]


def _keys(system: RehearsalSystem, recordings: dict[str, Recording]) -> dict[str, str]:
    """By the recording's name, the match as the API names it."""
    shown = system.stadium("/truth/matches")
    keys = {str(one["recording"]): f"{one['site']}_{one['key']}" for one in reversed(shown) if one.get("recording")}
    if absent := recordings.keys() - keys.keys():
        raise RehearsalError(f"the stadium does not play {', '.join(sorted(absent))}")
    return {name: keys[name] for name in recordings}


def _watch(
    system: RehearsalSystem, script: Script, keys: dict[str, str], recordings: dict[str, Recording], say: Say
) -> None:
    """Until every match is over at the source and complete at the API, or time is up."""
    told_at, settled_at, had_outage = 0.0, 0.0, script.outage_seconds == 0
    right: set[str] = set()
    while True:
        system.check()
        truth = {one["recording"]: one for one in system.stadium("/truth/matches") if one.get("recording")}
        over = sum(truth[name]["status"] in ENDED for name in keys)
        if not had_outage and _share_played(truth) >= OUTAGE_AT:
            had_outage = True
            say(f"every site is away for {script.outage_seconds:g} s")
            fault = {"kind": "status", "value": 503, "seconds": script.outage_seconds}
            system.stadium("/control/faults", fault)
        for name in sorted(name for name in keys.keys() - right if truth[name]["status"] in ENDED):
            if _judged(system, recordings[name], keys[name]).is_right:
                right.add(name)
        if over == len(keys):
            settled_at = settled_at or time.monotonic()
            if len(right) == len(keys) or time.monotonic() - settled_at > SETTLE_SECONDS:
                return
        if time.monotonic() - told_at >= TOLD_EVERY_SECONDS:
            told_at = time.monotonic()
            say(f"over: {over} of {len(keys)}, right to the last ball: {len(right)}")
        time.sleep(LOOK_EVERY_SECONDS)


def _share_played(truth: dict[str, Any]) -> float:
    """Of the match that is furthest: how much of its recording has been shown."""
    return max((float(one["played"]) for one in truth.values()), default=0.0)


def _judged(system: RehearsalSystem, recording: Recording, match_id: str) -> Verdict:
    try:
        match = system.api(f"/api/v1/matches/{match_id}")
        return judge(recording, match, system.events(match_id))
    except urllib.error.HTTPError as error:
        if error.code != NOT_FOUND:
            raise
    verdict = Verdict(recording.name, expected=len(recording.balls), missing=len(recording.balls))
    verdict.tell("the API does not know the match")
    return verdict


def summary(verdicts: Sequence[Verdict]) -> dict[str, int]:
    names = ("expected", "present", "missing", "doubled", "wrong")
    return {name: sum(getattr(one, name) for one in verdicts) for name in names}
